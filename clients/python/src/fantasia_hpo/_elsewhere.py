"""Evaluating trials in other processes, which an executor has."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Protocol

from .trial import Trial


class Submitted(Protocol):
    """A call that an executor runs; `concurrent.futures.Future` is one."""

    def result(self) -> Any:
        """Wait for the call, and return its result or raise its exception."""

    def cancel(self) -> Any:
        """Do not run the call, if it has not begun."""


class Executor(Protocol):
    """What runs calls somewhere else.

    Those of `concurrent.futures`, joblib's `loky.get_reusable_executor()`, and Dask's `Client` are executors.
    """

    def submit(self, call: Callable[..., Any], /, *args: Any) -> Any:
        """Start a call, and return it as a Submitted."""


class _Traceback(Exception):
    """The traceback of another process, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def elsewhere(objective: Callable[[Trial], Any], executor: Executor) -> Callable[[Trial], Any]:
    """Return a function that has an executor evaluate trials, and waits for each."""
    of_client = getattr(executor, "get_executor", None)
    if of_client is not None:  # a client of Dask: without pure=False it would reuse results
        executor = of_client(pure=False)

    def evaluate(trial: Trial) -> Any:
        future: Submitted = executor.submit(_evaluate, objective, trial)
        try:
            value, error, details, found = future.result()
        except BaseException:
            future.cancel()
            raise
        trial._absorb(found)
        if error is not None:
            raise error from _Traceback(details)
        return value

    return evaluate


def _evaluate(
    objective: Callable[[Trial], Any], trial: Trial
) -> tuple[Any, Exception | None, str, dict[str, Any]]:
    """Evaluate in this process; return the value or the error, and what the trial has learned here."""
    value, error, details = None, None, ""
    try:
        value = objective(trial)
    except Exception as e:
        error, details = e, "".join(traceback.format_exception(e))
    return value, error, details, trial._evaluated()
