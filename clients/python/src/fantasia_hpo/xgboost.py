"""Reports of XGBoost's training, and early stopping by the study."""

from __future__ import annotations

from typing import Any

from xgboost.callback import TrainingCallback

from .errors import SpaceError, TrialPruned
from .trial import Trial


class PruningCallback(TrainingCallback):
    """Reports a metric after each round, and ends the training where the study stops the trial.

    `observation` is the name of an evaluation set and a metric, such as `validation-logloss`.

    Raises:
        SpaceError: while training, if there is no such metric.

    Examples:
        >>> import numpy, xgboost
        >>> from fantasia_hpo.xgboost import PruningCallback
        >>> x = numpy.arange(40.0).reshape(20, 2)
        >>> data = xgboost.DMatrix(x, label=x[:, 0] > 20)
        >>> trial = study.ask()
        >>> model = xgboost.train(
        ...     {"objective": "binary:logistic"},
        ...     data,
        ...     num_boost_round=3,
        ...     evals=[(data, "validation")],
        ...     callbacks=[PruningCallback(trial, "validation-logloss")],
        ...     verbose_eval=False,
        ... )
        >>> sorted(study.curve(study.tell(trial)))
        [1, 2, 3]
    """

    def __init__(self, trial: Trial, observation: str):
        super().__init__()
        self._trial = trial
        self._observation = observation

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Report the round; raise TrialPruned if the study stops the trial."""
        found = {
            f"{data}-{metric}": v for data, metrics in evals_log.items() for metric, v in metrics.items()
        }
        if self._observation not in found:
            raise SpaceError(f"observation: expected one of {sorted(found)}, got {self._observation!r}")
        self._trial.report(float(found[self._observation][-1]), epoch + 1)
        if self._trial.should_prune():
            raise TrialPruned(f"stopped after round {epoch + 1}")
        return False
