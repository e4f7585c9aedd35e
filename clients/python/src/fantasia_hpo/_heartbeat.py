"""Renews the leases of the trials that this process evaluates."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from .trial import Trial

log: logging.Logger = logging.getLogger("fantasia_hpo")


class Heartbeat:
    """Calls `beat` with all open trials three times a lease, in a thread that lives while there are any."""

    def __init__(self, beat: Callable[[Sequence[Trial]], None]):
        self._beat = beat
        self._changed = threading.Condition()
        self._trials: dict[int, Trial] = {}
        self._interval = 10.0
        self._thread: threading.Thread | None = None

    def add(self, trial: Trial, lease: float) -> None:
        """Renew a trial's lease, of that many seconds, from now on."""
        with self._changed:
            self._trials[id(trial)] = trial
            self._interval = lease / 3
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="fantasia-heartbeat", daemon=True)
                self._thread.start()

    def remove(self, trial: Trial) -> None:
        """Renew a trial's lease no longer."""
        with self._changed:
            self._trials.pop(id(trial), None)
            self._changed.notify_all()

    def open(self) -> list[Trial]:
        """Return the trials whose leases are renewed."""
        with self._changed:
            return list(self._trials.values())

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._trials, timeout=self._interval)
                if not self._trials:
                    self._thread = None
                    return
                trials = list(self._trials.values())
            try:
                self._beat(trials)
            except Exception as e:  # the next beat tries again; the lease has room for two
                log.warning("a heartbeat failed: %s", e)
