"""Reports of a Trainer of Hugging Face's transformers, and early stopping by the study."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ._report import Reporter, metric_of
from .trial import Trial


class PruningCallback(TrainerCallback):
    """Reports a metric after each evaluation, and ends the training where the study stops the trial.

    `metric` is a name among the evaluation's metrics, such as `eval_loss`. The step is the epoch if
    the Trainer evaluates once an epoch, and its global step otherwise. In a training of several
    processes, `trial` is None in all but rank 0, and all of them stop.

    Examples:
        >>> from fantasia_hpo.transformers import PruningCallback
        >>> callbacks = [PruningCallback(study.ask(), "eval_loss")]  # of transformers.Trainer(callbacks=…)
    """

    def __init__(self, trial: Trial | None, metric: str = "eval_loss"):
        self._reporter = Reporter(trial)
        self._metric = metric

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Report the evaluation; raise TrialPruned if the study stops the trial."""
        by_epoch = args.eval_strategy == "epoch"
        step = round(state.epoch) if by_epoch else state.global_step
        self._reporter.report(
            lambda: metric_of(metrics, self._metric, "metric"), step, "epoch" if by_epoch else "step"
        )
