"""Sends what evaluations report, in the background."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ._server import before_close
from .trial import Trial

Report = tuple[int, dict[str, float]]  # a step and its metrics

_MOST = 2000  # reports that may wait; `add` waits beyond it
_BATCH = 500  # reports of one trial that one call sends


@dataclass
class _Line:
    """The reports of one trial, which are sent in their order."""

    trial: Trial
    waiting: deque[Report] = field(default_factory=deque)
    sending: bool = False
    failure: Exception | None = None


class Reports:
    """Calls `send` with the waiting reports of a trial, in a thread that lives while there are any.

    What `send` raises is raised by the next `add` or `flush` of that trial.
    """

    def __init__(self, send: Callable[[Trial, Sequence[Report]], None]):
        self._send = send
        self._changed = threading.Condition()
        self._lines: dict[int, _Line] = {}  # by the trial's identity; the longest waiting first
        self._waiting = 0
        self._thread: threading.Thread | None = None
        self._process = os.getpid()  # a fork has a copy, but no thread
        _known.add(self)

    def add(self, trial: Trial, report: Report) -> None:
        """Send a report soon."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting < _MOST)
            line = self._lines.setdefault(id(trial), _Line(trial))
            self._check(line)
            line.waiting.append(report)
            self._waiting += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="fantasia-reports", daemon=True)
                self._thread.start()

    def flush(self, trial: Trial, timeout: float | None = None) -> None:
        """Wait until all reports of a trial have been answered, or for a time."""
        with self._changed:
            line = self._lines.get(id(trial))
            if line is not None:
                self._changed.wait_for(lambda: not line.waiting and not line.sending, timeout)
                self._check(line)

    def flush_all(self) -> None:
        """Wait until no report waits."""
        if self._process != os.getpid():
            return
        with self._changed:
            self._changed.wait_for(lambda: self._thread is None)

    def forget(self, trial: Trial) -> None:
        """Drop what a trial that has ended has not sent."""
        with self._changed:
            if line := self._lines.pop(id(trial), None):
                self._waiting -= len(line.waiting)
                line.waiting.clear()
            self._changed.notify_all()

    def _check(self, line: _Line) -> None:
        failure, line.failure = line.failure, None
        if failure is not None:
            raise failure

    def _loop(self) -> None:
        while (taken := self._take()) is not None:
            line, batch = taken
            failure = None
            try:
                self._send(line.trial, batch)
            except Exception as e:
                failure = e
            with self._changed:
                line.sending, line.failure = False, failure
                if not line.waiting and failure is None:
                    self._lines.pop(id(line.trial), None)
                self._changed.notify_all()

    def _take(self) -> tuple[_Line, list[Report]] | None:
        """Return the next reports to send; None, and end the thread, if there are none."""
        with self._changed:
            for key, line in self._lines.items():
                if line.waiting:
                    batch = [line.waiting.popleft() for _ in range(min(_BATCH, len(line.waiting)))]
                    self._waiting -= len(batch)
                    line.sending = True
                    self._lines[key] = self._lines.pop(key)  # the others come first next time
                    return line, batch
            self._thread = None
            self._changed.notify_all()
            return None


_known: weakref.WeakSet[Reports] = weakref.WeakSet()


def _flush() -> None:
    for reports in list(_known):
        reports.flush_all()


before_close(_flush)
