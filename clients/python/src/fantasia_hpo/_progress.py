"""How far `optimize` is: a bar on a terminal, a picture in a notebook."""

from __future__ import annotations

import html
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from . import errors
from . import logging as _logging
from ._objectives import dominates
from ._results import Results
from .record import FrozenTrial, TrialState

_REDRAW = 0.1  # seconds between two drawings of a bar
_REPAINT = 2.0  # seconds between two pictures, which a server draws


class Display(Protocol):
    """Something that shows the progress."""

    def show(self, state: State) -> None:
        """Show a state."""

    def close(self) -> None:
        """End with the last state."""


class State:
    """What is shown: how many trials of how many have ended, and how."""

    def __init__(self, study: Results, total: int | None, timeout: float | None):
        self.study, self.total, self._timeout = study, total, timeout
        self.ended: Counter[TrialState] = Counter()
        self.running = 0
        self.front: list[Sequence[float]] = []  # values that no others dominate; of one objective, the best
        self._began = time.monotonic()

    @property
    def done(self) -> int:
        """How many trials have ended in this call."""
        return sum(self.ended.values())

    @property
    def left(self) -> float | None:
        """How many seconds are left, as far as they can be told."""
        passed = time.monotonic() - self._began
        guesses = [] if self._timeout is None else [max(0.0, self._timeout - passed)]
        if self.total is not None and self.done:
            guesses.append(passed / self.done * (self.total - self.done))
        return min(guesses, default=None)

    def _best(self) -> str:
        if len(self.study.objectives) > 1:
            return f"front {len(self.front)}"
        return f"best {format(self.front[0][0], '.6g') if self.front else '-'}"

    def add(self, values: Sequence[float]) -> None:
        """Take the values of a completed trial into the front."""
        aims = self.study.objectives
        if not any(dominates(aims, old, values) for old in self.front):
            self.front = [old for old in self.front if not dominates(aims, values, old)]
            self.front.append(values)

    def text(self) -> str:
        """Return the state in a line."""
        words = [f"{self.done}/{self.total} trials" if self.total is not None else f"{self.done} trials"]
        words.append(self._best())
        words.append(f"running {self.running}")
        words += [f"{s.value.lower()} {n}" for s, n in self.ended.items() if s is not TrialState.COMPLETED]
        if self.left is not None:
            words.append(f"left {duration(self.left)}")
        return ", ".join(words)


class Progress:
    """Shows the progress of one call of `optimize`. Threads may share it."""

    def __init__(self, state: State, display: Display | None):
        self._state, self._display = state, display
        self._lock = threading.Lock()
        self._shown = float("-inf")

    def begin(self, best: Sequence[Sequence[float]]) -> None:
        """Note the values of the study's best trials from before the call."""
        with self._lock:
            for values in best:
                self._state.add(values)

    def started(self, running: int) -> None:
        """Note how many trials run."""
        with self._lock:
            self._state.running = running
            self._show(self._state)

    def ended(self, record: FrozenTrial, running: int) -> str:
        """Note how a trial ended, and return the line about it."""
        with self._lock:
            state = self._state
            state.ended[record.state] += 1
            state.running = running
            if record.state is TrialState.COMPLETED and record.values is not None and not record.exceeded:
                state.add(record.values)
            self._show(state)
            best = ""
            if state.front:
                several = len(state.study.objectives) > 1
                best = f"; {len(state.front)} on the front" if several else f"; best {state.front[0][0]!r}"
        value = "" if record.values is None else f" with {', '.join(map(repr, record.values))}"
        value += f", outside of {', '.join(record.exceeded)}" if record.exceeded else ""
        reason = f" ({record.reason})" if record.reason else ""
        return f"trial {record.number} {record.state.value.lower()}{value}{reason}, {record.params}{best}"

    def close(self) -> None:
        """Show the end."""
        with self._lock:
            if self._display is not None:
                self._state.running = 0
                self._display.show(self._state)
                self._display.close()

    def _show(self, state: State) -> None:
        now = time.monotonic()
        if self._display is not None and (now - self._shown >= _REDRAW or state.done == state.total):
            self._shown = now
            self._display.show(state)


def progress_of(study: Results, total: int | None, timeout: float | None, show: bool | None) -> Progress:
    """Return the progress of a call; by default it is shown on a terminal and in a notebook."""
    state = State(study, total, timeout)
    notebook = _in_notebook()
    if show is None:
        show = notebook or sys.stderr.isatty()
    if not show:
        return Progress(state, None)
    if notebook:
        return Progress(state, _Notebook())
    try:
        return Progress(state, _Tqdm(state))
    except ImportError:
        return Progress(state, _Line())


class _Tqdm:
    """A bar of tqdm."""

    def __init__(self, state: State):
        from tqdm import tqdm

        self._bar: Any = tqdm(total=state.total, unit="trial", file=sys.stderr, dynamic_ncols=True)
        self._write = lambda line, level: tqdm.write(line, file=sys.stderr)
        _logging._write_by(self._write)

    def show(self, state: State) -> None:
        self._bar.n = state.done
        self._bar.set_postfix_str(state.text().partition(", ")[2])

    def close(self) -> None:
        _logging._write_no_longer_by(self._write)
        self._bar.close()


class _Line:
    """A line that is written again and again."""

    def __init__(self) -> None:
        self._text = ""
        _logging._write_by(self._write)

    def show(self, state: State) -> None:
        self._text = state.text()
        self._draw("")

    def close(self) -> None:
        _logging._write_no_longer_by(self._write)
        sys.stderr.write("\n")

    def _write(self, line: str, level: int) -> None:
        self._draw(line + "\n")

    def _draw(self, before: str) -> None:
        sys.stderr.write(f"\r\x1b[K{before}{self._text}")
        sys.stderr.flush()


class _Notebook:
    """One output of a notebook, which is replaced: two lines, and the history of the study."""

    def __init__(self) -> None:
        from IPython import display

        show: Any = display.display  # it has no types
        self._handle: Any = show({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
        self._picture, self._painted, self._latest = "", float("-inf"), ""
        _logging._write_by(self._write)

    def show(self, state: State) -> None:
        if time.monotonic() - self._painted >= _REPAINT or state.done == state.total:
            self._paint(state)
        text = state.text()
        lines = "".join(f"<div>{html.escape(line)}</div>" for line in (text, self._latest))
        shown = {"text/html": lines + self._picture, "text/plain": text}
        self._handle.update(shown, raw=True)

    def _paint(self, state: State) -> None:
        self._painted = time.monotonic()
        try:
            self._picture = str(state.study.picture("history"))
        except errors.FantasiaError:  # the picture that there is stays
            return

    def close(self) -> None:
        """Leave what is shown."""
        _logging._write_no_longer_by(self._write)

    def _write(self, line: str, level: int) -> None:
        """Keep a line about a trial for the output, which must not grow; write a warning."""
        if level < _logging.WARNING:
            self._latest = line
        else:
            sys.stderr.write(line + "\n")


def _in_notebook() -> bool:
    """Whether this code runs in a kernel of Jupyter."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return getattr(found, "kernel", None) is not None


def duration(seconds: float) -> str:
    """Return a number of seconds as a clock shows it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
