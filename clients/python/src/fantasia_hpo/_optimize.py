"""The loop of `Study.optimize`."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import errors
from .trial import Trial, TrialState

if TYPE_CHECKING:
    from .study import Callback, Study

log = logging.getLogger("fantasia_hpo")

_WAIT = 1.0  # seconds that a job waits for a trial before it looks whether it should stop


@dataclass(frozen=True)
class _Outcome:
    """How an evaluation ended."""

    state: TrialState = TrialState.COMPLETED
    value: dict[str, float] | None = None
    reason: str = ""
    details: str = ""


class Run:
    """One call of `Study.optimize`."""

    def __init__(
        self,
        study: Study,
        objective: Callable[[Trial], Any],
        n_trials: int | None,
        timeout: float | None,
        n_jobs: int,
        callbacks: Sequence[Callback],
    ):
        if n_trials is not None and n_trials < 0:
            raise errors.SpaceError(f"n_trials: expected a number from 0, or None, got {n_trials}")
        if n_jobs == 0 or n_jobs < -1:
            raise errors.SpaceError(f"n_jobs: expected a number from 1, or -1 for all cores, got {n_jobs}")
        self._study = study
        self._objective = objective
        self._left = n_trials
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._jobs = (os.cpu_count() or 1) if n_jobs == -1 else n_jobs
        if n_trials is not None:
            self._jobs = min(self._jobs, n_trials)
        self._callbacks = callbacks
        self._lock = threading.Lock()
        self._callback_lock = threading.Lock()
        self._stopping = threading.Event()
        self._interrupted = False
        self._running: dict[int, Trial] = {}
        self._last_error: Exception | None = None
        self._ended: errors.StudyEndedError | None = None
        self._fatal: BaseException | None = None

    def run(self) -> None:
        """Evaluate until the end; raise what ended it, unless that is a good end."""
        self._begin()
        try:
            if self._jobs == 1:
                self._job()
            else:
                self._run_threads()
        except KeyboardInterrupt:
            self._interrupt()
            raise
        finally:
            self._study._run = None
        self._finish()

    async def run_async(self) -> None:
        """Do the same in an event loop, with an objective that is a coroutine function."""
        self._begin()
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
            self._study._run = None
        self._finish()

    def _begin(self) -> None:
        if self._study._run is not None:
            raise errors.FantasiaError(
                "optimize is running already: use n_jobs to evaluate several trials at once"
            )
        self._study._run = self

    def _finish(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        if isinstance(self._ended, errors.StudyFailedError):
            raise self._ended from self._last_error
        if self._ended is not None:
            log.info("%s", self._ended)

    def stop(self) -> None:
        """Start no further trial."""
        self._stopping.set()

    def _run_threads(self) -> None:
        # Daemons: after Ctrl-C, an objective that does not look at should_prune must not keep
        # the process alive. Otherwise all of them are waited for here.
        threads = [
            threading.Thread(target=self._guarded, name=f"fantasia-job-{i}", daemon=True)
            for i in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)  # a join without a limit would hold Ctrl-C back on some systems

    def _guarded(self) -> None:
        try:
            self._job()
        except BaseException as e:
            with self._lock:
                self._fatal = self._fatal or e
            self.stop()

    def _job(self) -> None:
        client = self._study._new_client()
        while (trial := self._start(client)) is not None:
            try:
                outcome = _Outcome(value=self._checked(self._objective(trial)))
            except Exception as e:
                outcome = self._failed(trial, e)
            self._end(trial, outcome)

    async def _job_async(self) -> None:
        client = self._study._new_client()
        while (trial := await asyncio.to_thread(self._start, client)) is not None:
            try:
                outcome = _Outcome(value=self._checked(await self._objective(trial)))
            except Exception as e:
                outcome = self._failed(trial, e)
            await asyncio.to_thread(self._end, trial, outcome)

    def _start(self, client: str) -> Trial | None:
        """Return the next trial to evaluate, or None at the end."""
        if not self._take_ticket():
            return None
        try:
            while not self._over():
                for trial in self._study._suggest(client, _WAIT):
                    with self._lock:
                        self._running[trial.number] = trial
                    return trial
        except errors.StudyEndedError as e:
            self._ended = e
            self.stop()
        return None

    def _take_ticket(self) -> bool:
        with self._lock:
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
        log.warning("trial %d failed: %s", trial.number, reason, exc_info=error)
        return _Outcome(TrialState.FAILED, reason=reason, details="".join(traceback.format_exception(error)))

    def _end(self, trial: Trial, outcome: _Outcome) -> None:
        """Tell the study how a trial ended, and call the callbacks."""
        if self._interrupted:  # the trial has been handed back
            return
        study, metric = self._study, self._study.metric
        if outcome.state is TrialState.COMPLETED:
            if outcome.value is None and metric not in trial._reported:
                outcome = _Outcome(TrialState.FAILED, reason=f"returned None and did not report {metric!r}")
            elif outcome.value is not None and metric not in outcome.value:
                got = sorted(outcome.value)
                outcome = _Outcome(TrialState.FAILED, reason=f"returned {got}, without the metric {metric!r}")
        try:
            record = study.tell(
                trial, outcome.value, state=outcome.state, reason=outcome.reason, details=outcome.details
            )
        except errors.PreconditionError as e:  # cancelled, or lost and given to somebody else
            study._forget(trial)
            log.warning("trial %d: its result is not used: %s", trial.number, e)
            return
        finally:
            with self._lock:
                self._running.pop(trial.number, None)
        log.info("trial %d %s: %s %s", record.number, record.state.value.lower(), record.value, record.params)
        with self._callback_lock:
            for callback in self._callbacks:
                callback(study, record)

    def _interrupt(self) -> None:
        """Hand the running trials back; objectives in other threads see should_prune."""
        self._interrupted = True
        self.stop()
        with self._lock:
            running = list(self._running.values())
        for trial in running:
            trial._instruct("ABANDON", "interrupted")
            try:
                self._study.release(trial, reason="interrupted")
            except errors.FantasiaError as e:
                self._study._forget(trial)
                log.warning("trial %d could not be handed back: %s", trial.number, e)


def last_line(error: BaseException) -> str:
    """Return the last line of a traceback, which names the exception."""
    return traceback.format_exception_only(error)[-1].strip().partition("\n")[0]
