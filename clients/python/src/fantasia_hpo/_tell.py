"""Telling a study what its trials reported, and how they ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from . import errors
from ._heartbeat import Heartbeat
from ._learned_space import LearnedSpace
from ._learning_trial import LearningTrial
from ._reports import Report, Reports
from ._results import Results
from ._values import MESSAGE_BYTES, REASON_BYTES, Value, cut, metrics_of, number, to_bytes
from .record import FrozenTrial, TrialState
from .transport import Message
from .trial import Trial

log: logging.Logger = logging.getLogger("fantasia_hpo")

_SETTLES = 20  # how often a trial's end is told again because the space has changed


class Telling(Results):
    """A study that is told about trials. `Asking` gives them out, and makes these."""

    _learned: LearnedSpace
    _heartbeat: Heartbeat
    _reports: Reports

    def tell(
        self,
        trial: Trial,
        value: Value | None = None,
        *,
        state: TrialState | str = TrialState.COMPLETED,
        reason: str = "",
        details: str = "",
        checkpoint: str = "",
    ) -> FrozenTrial:
        """End a trial of `ask`, and return its record.

        `value` is a number, a value for each objective in their order, or a mapping of metrics.
        `state` is COMPLETED, PRUNED, FAILED or INFEASIBLE. Without a value, a completed trial has
        the value that it reported last. The metrics of the study's limits are returned, too, or were
        reported. `reason` says in a line why a trial failed, `details` more.
        `checkpoint` is where a trial that is promoted from this one can continue. Telling the same
        again changes nothing.

        Raises:
            FantasiaError: if a completed trial has no value.
            SpaceError: for another state, or a value that is no number.
            PreconditionError: if the trial has ended otherwise.

        Examples:
            >>> trial = study.ask()
            >>> study.tell(trial, trial.params["x"] ** 2).state.value
            'COMPLETED'
        """
        state = TrialState(state)
        self._reports.flush(trial)
        self._send_attrs(trial)
        request = self._of(trial)
        if state in (TrialState.COMPLETED, TrialState.PRUNED):
            metrics = trial._reported.metrics()
            if value is not None:
                bounded = {limit.metric for limit in self._limits}
                metrics = {name: v for name, v in metrics.items() if name in bounded - self.objectives.keys()}
                metrics |= self._metrics(value)
            missing = self._missing(metrics)
            if not missing:
                request["values"] = [number(metrics.pop(name)) for name in self.objectives]
            elif state is TrialState.COMPLETED:
                raise errors.FantasiaError(
                    f"trial {trial.number} has no value: return the metric {missing}, or report it"
                )
            request["metrics"] = {name: number(v) for name, v in metrics.items()}
            if checkpoint:
                request["checkpoint"] = checkpoint
            if state is TrialState.PRUNED:
                request["pruned"] = True
            method = "CompleteTrial"
        elif state in (TrialState.FAILED, TrialState.INFEASIBLE):
            line, end = reason.partition("\n")[0], to_bytes(details or reason)[-MESSAGE_BYTES:]
            request |= {"reason": cut(line, REASON_BYTES), "message": end.decode(errors="ignore")}
            request["infeasible"] = state is TrialState.INFEASIBLE
            method = "FailTrial"
        else:
            raise errors.SpaceError(
                f"state: expected COMPLETED, PRUNED, FAILED or INFEASIBLE, got {state.value}"
            )
        answer = self._end(method, request, trial, state)
        self._forget(trial)
        return self._record(answer["trial"])

    def release(self, trial: Trial, *, checkpoint: str = "", reason: str = "") -> None:
        """Hand a trial back, so that it is given out again, from `checkpoint` on. This is not a failure.

        Examples:
            >>> trial = study.ask()
            >>> study.release(trial, reason="no memory left")
            >>> study.ask().number == trial.number
            True
        """
        self._reports.flush(trial)
        request = self._of(trial) | {
            "reason": cut(reason, REASON_BYTES),
            "checkpoint": checkpoint,
        }
        self._write("ReleaseTrial", request)
        self._forget(trial)

    def _hand_back(self, trial: Trial, reason: str) -> None:
        """Release a trial; keep its lease no longer if that cannot be done now."""
        try:
            self.release(trial, reason=reason)
        except errors.PreconditionError as e:
            log.info("trial %d was not handed back: %s", trial.number, e)
        except errors.FantasiaError as e:
            log.warning("trial %d could not be handed back: %s", trial.number, e)
        finally:
            self._forget(trial)

    def _end(self, method: str, request: Message, trial: Trial, state: TrialState) -> Message:
        """End a trial; the space is learned again if another process has just changed it."""
        if not isinstance(trial, LearningTrial):
            return self._write(method, request)
        with self._learned.lock:
            tries = _SETTLES
            while True:
                point = self._learned.settle(trial, state)
                try:
                    return self._write(method, request if point is None else {**request, "parameters": point})
                except errors.ServerError as e:
                    tries -= 1
                    if e.code != "invalid_argument" or tries == 0:
                        raise
                    self._refresh()

    def _add_report(self, trial: Trial, step: int, metrics: dict[str, float]) -> None:
        self._reports.add(trial, (step, metrics))

    def _await_reports(self, trial: Trial, timeout: float | None = None) -> None:
        self._reports.flush(trial, timeout)

    def _send_reports(self, trial: Trial, reports: Sequence[Report]) -> None:
        """Send reports of a trial, and tell it what the server says."""
        *earlier, last = [
            {"step": step, "metrics": {name: number(v) for name, v in metrics.items()}}
            for step, metrics in reports
        ]
        request = {**self._of(trial), **last, "earlier": earlier}
        try:
            answer = self._write("AddMeasurement", request)
        except errors.PreconditionError as e:
            if len(reports) > 1:  # what has arrived already is ignored
                for report in reports:
                    self._send_reports(trial, [report])
                return
            log.warning("trial %d: a report was refused: %s", trial.number, e)
            return
        if ignored := trial._reported.passed_on(answer.get("ignored", [])):
            log.warning("trial %d: its curve and early stopping leave out %s", trial.number, ignored)
        trial._instruct(answer.get("action", "").removeprefix("TRIAL_ACTION_"), answer.get("reason", ""))

    def _send_attrs(self, trial: Trial) -> None:
        """Store what the objective has noted about a trial, as far as the server takes it.

        What it refuses is left out, so that the trial's value is not lost.
        """
        with trial._lock:
            unsent, trial._unsent_attrs = trial._unsent_attrs, {}
        if not unsent or not self._refusal(trial, unsent):
            return
        for key, value in unsent.items():
            if refusal := self._refusal(trial, {key: value}):
                log.warning("trial %d: user attribute %r is left out: %s", trial.number, key, refusal)

    def _refusal(self, trial: Trial, attributes: Message) -> str:
        """Store attributes of a trial; return why the server has refused them, or "" if it has not."""
        try:
            self._write("EditTrial", {"name": self._name(trial), "attributes": attributes})
        except errors.ServerError as e:
            if e.code != "invalid_argument":
                raise
            return str(e)
        return ""

    def _of(self, trial: Trial) -> Message:
        """Return what a request about a trial of `ask` begins with.

        It names the attempt, so that it cannot be taken for one about a later attempt.
        """
        return {
            "name": self._name(trial),
            "clientId": trial.client_id,
            "attempt": trial.attempt,
        }

    def _forget(self, trial: Trial) -> None:
        self._heartbeat.remove(trial)
        self._reports.forget(trial)

    def _metrics(self, value: Value) -> dict[str, float]:
        """Return what a function returned, by metric."""
        return metrics_of(list(self.objectives), value)

    def _report(self, value: Value) -> dict[str, float]:
        """Return what a function reported, by metric.

        With several objectives, a number is the metric that early stopping compares, as callbacks of
        libraries report it.
        """
        several = isinstance(value, Mapping | list | tuple)
        if len(self.objectives) > 1 and self._compared is not None and not several:
            return metrics_of([self._compared], value)
        return self._metrics(value)

    def _missing(self, metrics: Iterable[str]) -> str:
        """Return the objectives without a value, for a message; empty if there are none."""
        return " and ".join(repr(name) for name in self.objectives if name not in metrics)
