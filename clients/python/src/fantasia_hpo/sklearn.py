"""A search over the parameters of scikit-learn's estimators, with cross-validation."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from joblib import effective_n_jobs
from sklearn.model_selection._search import BaseSearchCV

from .create import Algorithm, create_study
from .errors import SpaceError
from .parameters import Categorical, Fixed, Parameter
from .study import Study
from .trial import TrialState


class FantasiaSearchCV(BaseSearchCV):  # type: ignore[misc]
    """GridSearchCV's interface, with points that Fantasia suggests.

    `parameters` maps an estimator's parameters to those of fantasia_hpo, or to lists of values.
    `n_iter` points are evaluated. With `n_jobs` above the number of folds, several points at once.
    `name`, `storage`, `algorithm` and `seed` are those of create_study; a search with a name
    continues an earlier one. After `fit`, `study_` is the study. The other arguments and
    attributes are scikit-learn's.
    """

    def __init__(
        self,
        estimator: Any,
        parameters: Mapping[str, Parameter | Sequence[Any]],
        *,
        n_iter: int = 20,
        name: str | None = None,
        storage: str | os.PathLike[str] | None = None,
        algorithm: str | Algorithm = "hebo",
        seed: int | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = math.nan,
        return_train_score: bool = False,
    ):
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.parameters = parameters
        self.n_iter = n_iter
        self.name = name
        self.storage = storage
        self.algorithm = algorithm
        self.seed = seed

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> None:
        metric = self.refit if isinstance(self.refit, str) else "score"
        self.study_: Study = create_study(
            name=self.name,
            storage=self.storage,
            load_if_exists=True,
            metric=metric,
            direction="maximize",
            parameters={name: _parameter(name, p) for name, p in self.parameters.items()},
            algorithm=self.algorithm,
            seed=self.seed,
        )
        folds = self.n_splits_ if hasattr(self, "n_splits_") else 1
        left = self.n_iter
        while left > 0:
            at_once = min(left, max(1, effective_n_jobs(self.n_jobs) // folds))
            trials = [self.study_.ask() for _ in range(at_once)]
            results = evaluate_candidates([dict(trial.params) for trial in trials])
            key = f"mean_test_{metric}"
            if key not in results:
                found = sorted(k for k in results if k.startswith("mean_test_"))
                raise SpaceError(
                    f"refit: expected the metric to optimise, one of {found}, got {self.refit!r}"
                )
            for trial, score in zip(trials, results[key][-at_once:], strict=True):
                if math.isfinite(score):
                    self.study_.tell(trial, float(score))
                else:
                    self.study_.tell(trial, state=TrialState.FAILED, reason=f"the score is {score}")
            left -= at_once


def _parameter(name: str, given: Parameter | Sequence[Any]) -> Parameter:
    if hasattr(given, "document"):
        return given  # type: ignore[return-value]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise SpaceError(
            f"parameters[{name!r}]: expected a parameter of fantasia_hpo or a list, got {given!r}"
        )
    return Categorical(given) if len(given) > 1 else Fixed(given[0])
