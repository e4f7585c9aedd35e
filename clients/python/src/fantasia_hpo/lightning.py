"""Reports of Lightning's training, and early stopping by the study."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:  # the same library has two names
    from pytorch_lightning import Callback

from ._report import Reporter, metric_of
from .trial import Trial


class PruningCallback(Callback):
    """Reports a metric after the validation of each epoch, and ends the training where the study says so.

    `monitor` is a metric that the module logs, such as `val_loss`. In a training of several processes,
    as with the strategy `ddp`, `trial` is None in all but rank 0, and all of them stop.

    Examples:
        >>> from fantasia_hpo.lightning import PruningCallback
        >>> callbacks = [PruningCallback(study.ask(), "val_loss")]  # of lightning.Trainer(callbacks=…)
    """

    def __init__(self, trial: Trial | None, monitor: str):
        super().__init__()
        self._reporter = Reporter(trial)
        self._monitor = monitor

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Report the epoch; raise TrialPruned if the study stops the trial."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return  # the batches before the training, or trainer.validate
        self._reporter.report(
            lambda: metric_of(trainer.callback_metrics, self._monitor, "monitor"),
            trainer.current_epoch + 1,
            "epoch",
        )
