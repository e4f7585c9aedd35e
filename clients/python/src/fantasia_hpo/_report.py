"""Reports from training loops that may run in several processes at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .errors import FantasiaError, SpaceError, TrialPruned
from .trial import Trial


class Reporter:
    """Reports for a trial, and ends the training in each of its processes where the study stops it.

    In a training of several processes (torch.distributed), rank 0 has the trial, and the others
    have None. Each process MUST call `report` equally often.
    """

    def __init__(self, trial: Trial | None):
        self._trial = trial

    def report(self, value: Callable[[], float], step: int, unit: str) -> None:
        """Report a value at a step; raise TrialPruned in every process if the study stops the trial.

        `value` is called where the trial is. What it raises is raised there, and the other
        processes raise a FantasiaError, so that none waits for one that has failed.
        """
        distributed = _distributed()
        if self._trial is None and (distributed is None or distributed.get_rank() == 0):
            raise SpaceError("trial: expected a trial, got None: only ranks other than 0 have none")
        stop, failure = False, None
        if self._trial is not None:
            try:
                self._trial.report(float(value()), step)
                stop = self._trial.should_prune()
            except Exception as e:
                failure = e
        if distributed is not None:
            word = [(stop, str(failure) if failure else "")]
            distributed.broadcast_object_list(word, src=0)
            stop, failed = word[0]
            if failed and failure is None:
                raise FantasiaError(f"rank 0 could not report: {failed}")
        if failure is not None:
            raise failure
        if stop:
            raise TrialPruned(f"stopped after {unit} {step}")


def _distributed() -> Any:
    """Return torch.distributed if this process trains with others, without importing torch for it."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    return module


def metric_of(metrics: Any, name: str, argument: str) -> float:
    """Return a metric by its name; the error names the argument and what is accepted."""
    if metrics is None or name not in metrics:
        raise SpaceError(f"{argument}: expected one of {sorted(metrics or ())}, got {name!r}")
    return float(metrics[name])
