"""Makes a function the program of a study in stream mode, which workers run."""

from __future__ import annotations

import functools
import json
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, TextIO, overload

from . import errors
from ._optimize import last_line


class WorkerTrial:
    """A trial as a worker gives it to an evaluator.

    `params` holds the value of each active parameter; `seed` is for the trial's own randomness
    and the same in every attempt; `checkpoint_dir` is a directory that all attempts share;
    `checkpoint` is what an earlier attempt saved, or None.

    Examples:
        >>> @fantasia.evaluator(metric="loss")
        ... def train(trial):
        ...     return trial.params["x"] ** 2 + trial.seed % 2
    """

    def __init__(self, message: Mapping[str, Any], metric: str | None, send: Callable[..., None]):
        self.study: str = message["study"]
        self.number: int = message["trial"]
        self.attempt: int = message["attempt"]
        self.seed: int = message.get("seed", 0)
        self.params: dict[str, Any] = message["parameters"]
        self.checkpoint_dir: str | None = message.get("checkpointDir")
        self.checkpoint: str | None = message.get("checkpoint")
        self._metric = metric
        self._send = functools.partial(send, trial=self.number)
        self._step = 0
        self._stopped = threading.Event()

    def report(self, value: float | Mapping[str, float], step: int | None = None) -> None:
        """Report what the evaluation has reached at a step: a metric, or a mapping of metrics.

        Examples:
            >>> @fantasia.evaluator(metric="loss")
            ... def train(trial):
            ...     for step in range(1, 11):
            ...         trial.report(trial.params["x"] / step, step)
        """
        self._step = self._step + 1 if step is None else int(step)
        self._send(step=self._step, metrics=self._metrics(value))

    def save_checkpoint(self, text: str) -> None:
        """Report a checkpoint, a text such as a path, which the next attempt gets.

        Examples:
            >>> @fantasia.evaluator(metric="loss")
            ... def train(trial):
            ...     done = int(trial.checkpoint or 0)
            ...     trial.save_checkpoint(str(done + 1))
            ...     return 1 / (done + 1)
        """
        self._send(checkpoint=text)

    def should_prune(self) -> bool:
        """Return whether the evaluation should stop: raise TrialPruned then.

        Examples:
            >>> @fantasia.evaluator(metric="loss")
            ... def train(trial):
            ...     trial.report(trial.params["x"], 1)
            ...     if trial.should_prune():
            ...         raise fantasia.TrialPruned
            ...     return trial.params["x"]
        """
        return self._stopped.is_set()

    def _metrics(self, value: float | Mapping[str, float]) -> dict[str, float]:
        if isinstance(value, Mapping):
            return {str(name): float(number) for name, number in value.items()}
        if self._metric is None:
            raise errors.SpaceError(
                f"got {value!r} without a metric: return {{'loss': …}}, or use evaluator(metric='loss')"
            )
        return {self._metric: float(value)}


Function = Callable[[WorkerTrial], "float | Mapping[str, float] | None"]


class Evaluator:
    """A function that can be called as before, and that `serve` runs for a worker.

    Examples:
        >>> @fantasia.evaluator(metric="loss")
        ... def train(trial):
        ...     return trial.params["x"] ** 2
        >>> isinstance(train, fantasia.Evaluator)
        True
    """

    def __init__(self, function: Function, metric: str | None):
        self._function = function
        self._metric = metric
        functools.update_wrapper(self, function)

    def __call__(self, trial: WorkerTrial) -> float | Mapping[str, float] | None:
        """Call the function."""
        return self._function(trial)

    def serve(self, source: TextIO | None = None, sink: TextIO | None = None) -> None:
        """Evaluate the trials that a worker writes to `source`, until it closes it.

        The results are written to `sink`. These are standard input and output by default.

        Examples:
            >>> import io
            >>> @fantasia.evaluator(metric="loss")
            ... def train(trial):
            ...     return trial.params["x"] ** 2
            >>> line = '{"fantasia": {"study": "s", "trial": 1, "attempt": 1, "parameters": {"x": 3}}}'
            >>> written = io.StringIO()
            >>> train.serve(io.StringIO(line), written)
            >>> print(written.getvalue())
            {"fantasia": {"stoppable": true}}
            {"fantasia": {"trial": 1, "metrics": {"loss": 9.0}}}
            {"fantasia": {"trial": 1, "done": true}}
        """
        source, written = source or sys.stdin, sink or sys.stdout
        lock = threading.Lock()

        def send(**report: Any) -> None:
            with lock:
                written.write(json.dumps({"fantasia": report}) + "\n")
                written.flush()

        work: queue.Queue[WorkerTrial | None] = queue.Queue()
        threading.Thread(target=self._read, args=(source, work, send), daemon=True).start()
        send(stoppable=True)
        while (trial := work.get()) is not None:
            self._evaluate(trial)

    def _read(self, source: TextIO, work: queue.Queue[WorkerTrial | None], send: Callable[..., None]) -> None:
        """Queue each trial, and tell the one that a line says to stop."""
        last: WorkerTrial | None = None
        for line in source:
            message = json.loads(line)["fantasia"]
            if not message.get("stop"):
                last = WorkerTrial(message, self._metric, send)
                work.put(last)
            elif last is not None and (last.number, last.attempt) == (message["trial"], message["attempt"]):
                last._stopped.set()
        work.put(None)

    def _evaluate(self, trial: WorkerTrial) -> None:
        try:
            result = self._function(trial)
            if result is not None:
                trial._send(metrics=trial._metrics(result))
        except errors.TrialPruned:
            pass
        except errors.TrialInfeasible as e:
            trial._send(infeasible=str(e) or "infeasible", done=True)
            return
        except Exception as e:
            sys.excepthook(type(e), e, e.__traceback__)  # the worker keeps standard error as the log
            trial._send(error=last_line(e), done=True)
            return
        trial._send(done=True)


@overload
def evaluator(function: Function) -> Evaluator: ...


@overload
def evaluator(*, metric: str) -> Callable[[Function], Evaluator]: ...


def evaluator(
    function: Function | None = None, *, metric: str | None = None
) -> Evaluator | Callable[[Function], Evaluator]:
    """Make a function the program of a study with `mode: stream`.

    The function gets a WorkerTrial and returns a mapping of metrics or, with `metric`, a number.
    The program ends with `if __name__ == "__main__": function.serve()`.

    Examples:
        >>> @fantasia.evaluator
        ... def train(trial):
        ...     return {"loss": trial.params["x"] ** 2, "seconds": 0.1}
        >>> train(type("Trial", (), {"params": {"x": 3}}))
        {'loss': 9, 'seconds': 0.1}
    """
    if function is not None:
        return Evaluator(function, metric)
    return lambda function: Evaluator(function, metric)
