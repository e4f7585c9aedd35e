"""The loop of `Study.optimize`."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from . import errors
from ._ask import Asking
from ._elsewhere import Executor, elsewhere
from ._progress import progress_of
from .record import FrozenTrial, TrialState
from .trial import Trial

log: logging.Logger = logging.getLogger("fantasia_hpo")

inside: ContextVar[tuple[Run, ...]] = ContextVar("inside", default=())  # the calls that this code is within

_T = TypeVar("_T")
_WAIT = 1.0  # seconds that a job waits for a trial before it looks whether it should stop


@dataclass(frozen=True)
class _Outcome:
    """How an evaluation ended."""

    state: TrialState = TrialState.COMPLETED
    value: dict[str, float] | None = None
    reason: str = ""
    details: str = ""
    uncaught: Exception | None = None


class _Caller(Protocol):
    """Calls a function and returns its result."""

    def __call__(self, call: Callable[[], _T], /) -> _T: ...


class Run:
    """One call of `Study.optimize`."""

    def __init__(
        self,
        study: Asking,
        objective: Callable[[Trial], Any],
        n_trials: int | None,
        timeout: float | None,
        n_jobs: int,
        callbacks: Sequence[Callable[[Any, FrozenTrial], None]],
        catch: type[Exception] | tuple[type[Exception], ...] = Exception,
        show_progress_bar: bool | None = None,
        executor: Executor | None = None,
    ):
        if n_trials is not None and n_trials < 0:
            raise errors.SpaceError(f"n_trials: expected a number from 0, or None, got {n_trials}")
        if n_jobs == 0 or n_jobs < -1:
            raise errors.SpaceError(f"n_jobs: expected a number from 1, or -1 for all cores, got {n_jobs}")
        self._study = study
        self._objective = objective if executor is None else elsewhere(objective, executor)
        self._left = n_trials
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
        if n_trials is not None:
            self._jobs = min(self._jobs, n_trials)
        self._callbacks = callbacks
        self._catch = catch
        self._progress = progress_of(study, n_trials, timeout, show_progress_bar)
        self._callback_lock = threading.Lock()
        self._stopping = threading.Event()
        self._interrupted = False
        self._changed = threading.Condition()  # guards the following
        self._calls = 0  # how many calls of the server give or end a trial just now
        self._open: dict[int, Trial] = {}  # those that are evaluated: who takes one out ends it
        self._last_error: Exception | None = None
        self._ended: errors.StudyEndedError | None = None
        self._fatal: BaseException | None = None

    def run(self) -> None:
        """Evaluate until the end; raise what ended it, unless that is a good end."""
        try:
            self._evaluate()
        finally:
            self._progress.close()

    def _evaluate(self) -> None:
        try:
            _apart(self._begin)
            if self._jobs == 1:
                self._job(_apart)
            else:
                self._run_threads()
        except BaseException:
            self._interrupt()
            raise
        self._finish()

    def _begin(self) -> None:
        """Show the study's best so far, and go on with one that has failed: its cause has been mended."""
        message = self._study._get()
        if len(self._study.objectives) == 1:
            found = [[float(message["best"].get("value", 0))]] if "best" in message else []
        else:
            found = [trial.values for trial in self._study.best_trials if trial.values is not None]
        self._progress.begin(found)
        if message.get("state") != "STUDY_STATE_FAILED" or self._left == 0:
            return
        try:
            self._study._write("ResumeStudy", {"name": self._study._id})
        except errors.PreconditionError:
            return  # the first call for a trial says why
        log.warning(
            "the study %r had failed (%s); it goes on, and the failures so far no longer count for its end",
            self._study.name,
            message.get("reason", ""),
        )

    async def run_async(self) -> None:
        """Do the same in an event loop, with an objective that is a coroutine function."""
        await asyncio.to_thread(self._begin)
        tasks = [asyncio.create_task(self._job_async()) for _ in range(self._jobs)]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            self._stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(self._interrupt)
            raise
        finally:
            self._progress.close()
        self._finish()

    def _finish(self) -> None:
        if isinstance(self._ended, errors.StudyFailedError):
            text = str(self._ended)
            if self._last_error is not None:
                text += "\n\nThe last error was:\n" + "".join(traceback.format_exception(self._last_error))
            raise errors.StudyFailedError(text.rstrip()) from None
        if self._ended is not None and self._left:  # there are fewer trials than were asked for
            log.warning("%s", self._ended)
        elif self._ended is not None:
            log.info("%s", self._ended)

    def stop(self) -> None:
        """Start no further trial."""
        self._stopping.set()

    def _run_threads(self) -> None:
        # Daemons: after Ctrl-C, an objective that does not look at should_prune must not keep
        # the process alive. Otherwise all of them are waited for here.
        threads = [
            threading.Thread(
                target=copy_context().run, args=(self._guarded,), name=f"fantasia-job-{i}", daemon=True
            )
            for i in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)  # a join without a limit would hold Ctrl-C back on some systems
                if self._fatal is not None and not isinstance(self._fatal, Exception):
                    break  # KeyboardInterrupt in an objective: nothing is waited for
        if self._fatal is not None:
            raise self._fatal

    def _guarded(self) -> None:
        try:
            self._job(_here)
        except BaseException as e:
            with self._changed:
                self._fatal = self._fatal or e
            self.stop()

    def _job(self, call: _Caller) -> None:
        client = self._study._new_client()
        while (trial := call(lambda: self._start(client))) is not None:
            try:
                outcome = _Outcome(value=self._checked(self._objective(trial)))
            except errors.DeclarationError:
                raise
            except Exception as e:
                outcome = self._failed(trial, e)
            self._call_back(call(functools.partial(self._end, trial, outcome)))
            self._raise_uncaught(outcome)

    async def _job_async(self) -> None:
        client = self._study._new_client()
        while (trial := await asyncio.to_thread(self._start, client)) is not None:
            try:
                outcome = _Outcome(value=self._checked(await self._objective(trial)))
            except errors.DeclarationError:
                raise
            except Exception as e:
                outcome = self._failed(trial, e)
            record = await asyncio.to_thread(self._end, trial, outcome)
            await asyncio.to_thread(self._call_back, record)
            self._raise_uncaught(outcome)

    def _start(self, client: str) -> Trial | None:
        """Return the next trial to evaluate, or None at the end."""
        if not self._take_ticket():
            return None
        try:
            while self._enter():
                trials: list[Trial] = []
                try:
                    trials = self._study._suggest(client, _WAIT)
                finally:
                    self._leave(trials)
                if self._interrupted:  # the trial is among those that are handed back
                    return None
                if trials:
                    return trials[0]
        except errors.StudyEndedError as e:
            self._ended = e
            self.stop()
        return None

    def _enter(self) -> bool:
        """Note a call that gives a trial, and return whether it may still be made."""
        with self._changed:
            if self._over():
                return False
            self._calls += 1
            return True

    def _leave(self, trials: Sequence[Trial]) -> None:
        """Note the end of a call, and the trials that are open after it."""
        with self._changed:
            self._calls -= 1
            self._open.update((trial.number, trial) for trial in trials)
            self._changed.notify_all()
        if trials:
            self._progress.started(len(self._open))

    def _take_ticket(self) -> bool:
        with self._changed:
            if self._over() or self._left == 0:
                return False
            if self._left is not None:
                self._left -= 1
            return True

    def _over(self) -> bool:
        return self._stopping.is_set() or (self._deadline is not None and time.monotonic() >= self._deadline)

    def _checked(self, result: Any) -> dict[str, float] | None:
        return None if result is None else self._study._metrics(result)

    def _failed(self, trial: Trial, error: Exception) -> _Outcome:
        """Return what an exception of the objective means."""
        if isinstance(error, errors.TrialPruned):
            if trial.should_prune():
                return _Outcome(TrialState.PRUNED)
            return _Outcome(TrialState.FAILED, reason="raised TrialPruned, but should_prune was not True")
        if isinstance(error, errors.TrialInfeasible):
            return _Outcome(TrialState.INFEASIBLE, reason=str(error))
        self._last_error = error
        reason = last_line(error)
        details = "".join(traceback.format_exception(error))
        if not isinstance(error, self._catch):
            return _Outcome(TrialState.FAILED, reason=reason, details=details, uncaught=error)
        log.warning("trial %d failed: %s", trial.number, reason, exc_info=error)
        return _Outcome(TrialState.FAILED, reason=reason, details=details)

    def _raise_uncaught(self, outcome: _Outcome) -> None:
        """Raise an exception of the objective that is not to be caught; its trial has been told."""
        if outcome.uncaught is not None:
            raise outcome.uncaught

    def _end(self, trial: Trial, outcome: _Outcome) -> FrozenTrial | None:
        """Tell the study how a trial ended, and return its record, or None if that was not used."""
        with self._changed:
            if self._interrupted or self._open.pop(trial.number, None) is None:
                return None  # it is handed back
            self._calls += 1
        still_open = [trial]
        try:
            record = self._tell(trial, self._complete(trial, outcome))
            still_open = []
        except errors.PreconditionError as e:  # cancelled, or lost and given to somebody else
            still_open = []
            self._study._forget(trial)
            log.warning("trial %d: its result is not used: %s", trial.number, e)
            return None
        finally:
            self._leave(still_open)
        log.info("%s", self._progress.ended(record, len(self._open)))
        return record

    def _complete(self, trial: Trial, outcome: _Outcome) -> _Outcome:
        """Return the outcome, or a failure if a completed trial has no value."""
        if outcome.state is not TrialState.COMPLETED:
            return outcome
        metrics = trial._reported.metrics() if outcome.value is None else outcome.value
        missing = self._study._missing(metrics)
        if not missing:
            return outcome
        if outcome.value is None:
            return _Outcome(TrialState.FAILED, reason=f"returned None and did not report {missing}")
        return _Outcome(TrialState.FAILED, reason=f"returned {sorted(metrics)}, without the metric {missing}")

    def _tell(self, trial: Trial, outcome: _Outcome) -> FrozenTrial:
        tell = functools.partial(self._study.tell, trial)
        try:
            return tell(outcome.value, state=outcome.state, reason=outcome.reason, details=outcome.details)
        except (errors.SpaceError, errors.ServerError) as e:
            if isinstance(e, errors.ServerError) and e.code != "invalid_argument":
                raise
            log.warning("trial %d failed: its result was refused: %s", trial.number, e)
            return tell(state=TrialState.FAILED, reason=f"the result was refused: {e}")

    def _call_back(self, record: FrozenTrial | None) -> None:
        if record is not None:
            with self._callback_lock:
                for callback in self._callbacks:
                    callback(self._study, record)

    def _interrupt(self) -> None:
        """Hand the open trials back; objectives in other threads see should_prune."""
        self._interrupted = True
        self.stop()
        open_ = self._open
        try:
            _apart(self._hand_back)
        finally:  # a second Ctrl-C ends at once, and the leases end by themselves
            for trial in list(open_.values()):
                self._study._forget(trial)

    def _hand_back(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._calls == 0)
            running, self._open = list(self._open.values()), {}
        for trial in running:
            trial._instruct("ABANDON", "interrupted")
            self._study._hand_back(trial, "interrupted")


def _here(call: Callable[[], _T]) -> _T:
    return call()


def _apart(call: Callable[[], _T]) -> _T:
    """Call in another thread, where no signal raises an exception, and return the result."""
    result: Future[_T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as e:
            result.set_exception(e)

    threading.Thread(target=run, name="fantasia-call", daemon=True).start()
    return result.result()


def last_line(error: BaseException) -> str:
    """Return the last line of a traceback, which names the exception."""
    return traceback.format_exception_only(error)[-1].strip().partition("\n")[0]
