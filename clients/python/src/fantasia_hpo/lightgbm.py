"""Reports of LightGBM's training, and early stopping by the study."""

from __future__ import annotations

from typing import Any

from .errors import SpaceError, TrialPruned
from .trial import Trial


class PruningCallback:
    """Reports a metric after each round, and ends the training where the study stops the trial.

    `metric` is a metric of LightGBM, and `valid_name` the evaluation set.

    Raises:
        SpaceError: while training, if there is no such metric.

    Examples:
        >>> import lightgbm, numpy
        >>> from fantasia_hpo.lightgbm import PruningCallback
        >>> x = numpy.arange(80.0).reshape(40, 2)
        >>> data = lightgbm.Dataset(x, label=x[:, 0] > 40)
        >>> trial = study.ask()
        >>> model = lightgbm.train(
        ...     {"objective": "binary", "verbose": -1},
        ...     data,
        ...     num_boost_round=3,
        ...     valid_sets=[data],
        ...     valid_names=["valid_0"],
        ...     callbacks=[PruningCallback(trial, "binary_logloss")],
        ... )
        >>> sorted(study.curve(study.tell(trial)))
        [1, 2, 3]
    """

    def __init__(self, trial: Trial, metric: str, valid_name: str = "valid_0"):
        self._trial = trial
        self._metric = metric
        self._valid_name = valid_name

    def __call__(self, env: Any) -> None:
        """Report the round; raise TrialPruned if the study stops the trial."""
        found = {(result[0], result[1]): result[2] for result in env.evaluation_result_list}
        wanted = (self._valid_name, self._metric)
        if wanted not in found:
            raise SpaceError(f"valid_name and metric: expected one of {sorted(found)}, got {wanted}")
        self._trial.report(float(found[wanted]), env.iteration + 1)
        if self._trial.should_prune():
            raise TrialPruned(f"stopped after round {env.iteration + 1}")
