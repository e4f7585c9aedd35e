"""Reports of the training of a Keras model, and early stopping by the study."""

from __future__ import annotations

from typing import Any

from keras.callbacks import Callback

from ._report import Reporter, metric_of
from .trial import Trial


class PruningCallback(Callback):
    """Reports a metric after each epoch, and ends the training where the study stops the trial.

    `monitor` is a metric of the epoch's logs, such as `val_loss`.

    Raises:
        SpaceError: while training, if there is no such metric.

    Examples:
        >>> import keras, numpy
        >>> from fantasia_hpo.keras import PruningCallback
        >>> model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
        >>> model.compile(loss="mse")
        >>> ones = numpy.ones((4, 1))
        >>> trial = study.ask()
        >>> callbacks = [PruningCallback(trial, "loss")]
        >>> history = model.fit(ones, ones, epochs=2, verbose=0, callbacks=callbacks)
        >>> sorted(study.curve(study.tell(trial)))
        [1, 2]
    """

    def __init__(self, trial: Trial, monitor: str = "val_loss"):
        super().__init__()
        self._reporter = Reporter(trial)
        self._monitor = monitor

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report the epoch; raise TrialPruned if the study stops the trial."""
        self._reporter.report(lambda: metric_of(logs, self._monitor, "monitor"), epoch + 1, "epoch")
