"""A search over the parameters of scikit-learn's estimators, with cross-validation."""

from __future__ import annotations

import dataclasses
import logging
import math
import numbers
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state

from ._distributions import parameter_of_distribution
from ._optimize import last_line
from .create import Algorithm, create_study
from .errors import FantasiaError, SpaceError, StudyEndedError
from .parameters import Categorical, Fidelity, Fixed, Parameter, key
from .record import TrialState
from .study import Study
from .trial import Trial

log: logging.Logger = logging.getLogger("fantasia_hpo")

_GRID = "grid"  # the parameter that chooses one of several mappings

Candidates = Callable[[list[dict[str, Any]]], dict[str, Any]]


class FantasiaSearchCV(BaseSearchCV):  # type: ignore[misc]
    """GridSearchCV's interface, with points that Fantasia suggests.

    `parameters` maps an estimator's parameters to those of fantasia_hpo, to lists or arrays of
    values of any type, or to distributions of scipy.stats or Optuna. A list of such mappings has a grid
    in each, as for GridSearchCV; `study_` has the parameter `grid` then, the number of the mapping from 0.
    `n_iter` points are evaluated, or all of them if there are fewer. With `n_jobs` above the number of
    folds, several points at once. `name`, `storage`, `algorithm` and `seed` are those of create_study, and
    `random_state`, if given, takes the place of `seed`; a search with a name continues an earlier one.
    With several metrics and `refit=False`, the first of `scoring` is optimised. After `fit`, `study_` is
    the study. After `timeout` seconds no further point begins, and the search ends. `n_trials`, if given,
    takes the place of `n_iter`. OptunaSearchCV has both names. The other arguments and attributes are those
    of GridSearchCV.

    Raises:
        SpaceError: in `fit`, for a parameter that is none of these.

    Examples:
        >>> from fantasia_hpo.sklearn import FantasiaSearchCV
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> space = {"C": fantasia.Float(1e-3, 1e3, scale="log"), "kernel": ["rbf", "linear"]}
        >>> search = FantasiaSearchCV(SVC(), space, n_iter=4, cv=3).fit(*load_iris(return_X_y=True))
        >>> len(search.study_.trials)
        4
    """

    def __init__(
        self,
        estimator: Any,
        parameters: Mapping[str, Any],
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
        random_state: Any = None,
        n_trials: int | None = None,
        timeout: float | None = None,
    ):
        common: dict[str, Any] = {  # scikit-learn has no types, and those of its defaults are too narrow
            "estimator": estimator,
            "scoring": scoring,
            "n_jobs": n_jobs,
            "refit": refit,
            "cv": cv,
            "verbose": verbose,
            "pre_dispatch": pre_dispatch,
            "error_score": error_score,
            "return_train_score": return_train_score,
        }
        super().__init__(**common)
        self.parameters = parameters
        self.n_iter = n_iter
        self.name = name
        self.storage = storage
        self.algorithm = algorithm
        self.seed = seed
        self.random_state = random_state
        self.n_trials = n_trials
        self.timeout = timeout

    def _run_search(self, evaluate_candidates: Candidates) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        metric = self._metric()
        self.study_: Study = create_study(
            name=self.name,
            storage=self.storage,
            load_if_exists=True,
            metric=metric,
            direction="maximize",
            parameters=_space(self.parameters),
            algorithm=self.algorithm,
            seed=self._random_seed(),
        )
        jobs: Any = self.n_jobs
        at_once = max(1, effective_n_jobs(jobs) // self.n_splits_)
        wanted = self.n_iter if self.n_trials is None else self.n_trials
        end = math.inf if self.timeout is None else time.monotonic() + self.timeout
        left, scored = wanted, False
        failure: Exception | None = None
        while left > 0 and (left == wanted or time.monotonic() < end):
            try:
                trials = self.study_._ask(min(left, at_once))
            except StudyEndedError as e:  # every point of a finite space has been evaluated
                if left == wanted:
                    raise
                log.info("%s", e)
                break
            left -= len(trials)
            try:
                self._evaluate(evaluate_candidates, trials, metric)
                scored = True
            except _AllFitsFailed as e:
                failure = e.error
        if failure is not None and not scored:
            raise failure

    def _metric(self) -> str:
        """Return the metric to optimise: the one to refit by, or the first of several."""
        if isinstance(self.refit, str):
            return self.refit
        scoring: Any = self.scoring
        several = isinstance(scoring, Mapping | list | tuple | set)
        return str(next(iter(scoring))) if several and not self.refit else "score"

    def _random_seed(self) -> int | None:
        """Return random_state, or the seed if there is none."""
        if self.random_state is None:
            return self.seed
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _evaluate(self, evaluate_candidates: Candidates, trials: Sequence[Trial], metric: str) -> None:
        """Evaluate the trials and tell the study; they do not stay open whatever happens."""
        try:
            scores = self._scores(evaluate_candidates, trials, metric)
            for trial, score in zip(trials, scores, strict=True):
                if math.isfinite(score):
                    self.study_.tell(trial, float(score))
                else:
                    self._tell_infeasible(trial, f"the score is {score}")
        except _AllFitsFailed as e:
            for trial in trials:
                self._tell_infeasible(trial, last_line(e.error), str(e.error))
            raise
        except BaseException:
            for trial in trials:
                self.study_._hand_back(trial, "the search was interrupted")
            raise

    def _tell_infeasible(self, trial: Trial, reason: str, details: str = "") -> None:
        # Not FAILED: invalid combinations of parameters are usual in a search, and must not end the study.
        self.study_.tell(trial, state=TrialState.INFEASIBLE, reason=reason, details=details)

    def _scores(
        self, evaluate_candidates: Candidates, trials: Sequence[Trial], metric: str
    ) -> Sequence[float]:
        try:
            results = evaluate_candidates([_candidate(self.parameters, trial.params) for trial in trials])
        except ValueError as e:
            # Raised if no fit of these candidates succeeds, which need not hold for the next ones.
            if str(e).lstrip().startswith("All the ") and self.error_score != "raise":
                raise _AllFitsFailed(e) from None
            raise
        key = f"mean_test_{metric}"
        if key not in results:
            found = sorted(k for k in results if k.startswith("mean_test_"))
            raise SpaceError(f"refit: expected the metric to optimise, one of {found}, got {self.refit!r}")
        scores: Sequence[float] = results[key][-len(trials) :]
        return scores


class _AllFitsFailed(FantasiaError):
    """No fit of the candidates succeeded; `error` is scikit-learn's."""

    def __init__(self, error: ValueError):
        super().__init__(str(error))
        self.error = error


def _space(parameters: Any) -> dict[str, Parameter]:
    """Return the space of a mapping, or of a list of them, where a parameter chooses one of them."""
    if isinstance(parameters, Mapping):
        return {name: _parameter(name, given) for name, given in parameters.items()}
    grids = _grids(parameters)
    space: dict[str, Parameter] = {}
    if len(grids) > 1:
        space[_GRID] = Categorical(tuple(range(len(grids))))
    for i, grid in enumerate(grids):
        for name, given in grid.items():
            parameter = _parameter(name, given)
            if len(grids) > 1:
                if getattr(parameter, "when", None) or isinstance(parameter, Fidelity):
                    raise SpaceError(
                        f"parameters[{i}][{name!r}]: expected no condition in a list of mappings"
                    )
                parameter = dataclasses.replace(parameter, when={_GRID: [i]})
            space[_name_in(grids, i, name)] = parameter
    return space


def _grids(parameters: Any) -> Sequence[Mapping[str, Any]]:
    listed = isinstance(parameters, Sequence) and not isinstance(parameters, str) and len(parameters) > 0
    if not listed or not all(isinstance(grid, Mapping) for grid in parameters):
        raise SpaceError(f"parameters: expected a mapping, or a list of them, got {parameters!r}")
    if not any(parameters):
        raise SpaceError("parameters: expected at least one, got none")
    return parameters  # type: ignore[no-any-return]


def _name_in(grids: Sequence[Mapping[str, Any]], place: int, name: str) -> str:
    """Return the study's name of a parameter of one mapping: another one than in the others."""
    return f"{name} {place}" if len(grids) > 1 else name


def _candidate(parameters: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the estimator at a point of the space."""
    if isinstance(parameters, Mapping):
        return dict(params)
    place = params.get(_GRID, 0)
    names = {_name_in(parameters, place, name): name for name in parameters[place]}
    return {names[name]: value for name, value in params.items() if name in names}


def _parameter(name: str, given: Any) -> Parameter:
    try:
        if hasattr(given, "document"):
            return given  # type: ignore[no-any-return]
        if hasattr(given, "rvs"):
            return parameter_of_distribution(given)
        if hasattr(given, "to_external_repr"):
            from .optuna import parameter_of  # whoever has one of its distributions has Optuna

            return parameter_of(given)
        values = _values(given)
        return Categorical(values) if len(values) > 1 else Fixed(values[0])
    except SpaceError as e:
        raise SpaceError(f"parameters[{name!r}]: {e}") from None


def _values(given: Any) -> list[Any]:
    """Return the elements of a list or an array, without those that are there already."""
    array = getattr(given, "__array__", None)
    listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if not listed and (array is None or np.ndim(given) != 1):
        raise SpaceError(
            "expected a parameter of fantasia_hpo, a list or an array of one dimension, or a distribution "
            f"of scipy.stats or Optuna, got {given!r}"
        )
    values = list({key(value): value for value in given}.values())
    if not values:
        raise SpaceError("expected at least one value, got none")
    return values
