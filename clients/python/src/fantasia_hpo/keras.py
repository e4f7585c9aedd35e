"""Reports of the training of a Keras model, and early stopping by the study."""

from __future__ import annotations

from typing import Any

from keras.callbacks import Callback

from ._report import Reporter, metric_of
from .trial import Trial


class PruningCallback(Callback):
    """Reports a metric after each epoch, and ends the training where the study stops the trial.

    `monitor` is a metric of the epoch's logs, such as `val_loss`.
    """

    def __init__(self, trial: Trial, monitor: str = "val_loss"):
        super().__init__()
        self._reporter = Reporter(trial)
        self._monitor = monitor

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report the epoch; raise TrialPruned if the study stops the trial."""
        self._reporter.report(lambda: metric_of(logs, self._monitor, "monitor"), epoch + 1, "epoch")
