"""Waiting for a study's next trial, and keeping the lease of those that this process has."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from . import errors
from ._draw import complete, seeded
from ._fork import renew_after_fork
from ._heartbeat import Heartbeat
from ._learned_space import LearnedSpace
from ._learning_trial import LearningTrial
from ._reading import SERVICE
from ._reports import Reports
from ._server import connect
from ._tell import Telling
from ._values import Value, attribute, number, seconds
from .parameters import Parameter, decode_point, encode_point
from .record import FrozenTrial, TrialState
from .transport import Message, Transport
from .trial import Trial

_OF_A_PROCESS = (
    "_transport",
    "_client",
    "_numbers",
    "_enqueued",
    "_learned",
    "_heartbeat",
    "_reports",
    "_runs",
)
_DRAWS = 100  # how often the rest of a point is drawn until it meets the constraints
_ASK_WAIT = 10.0  # seconds that one call of SuggestTrials waits


class Asking(Telling):
    """A study whose trials this process evaluates, one at a time."""

    def __init__(
        self,
        transport: Transport,
        message: Message,
        *,
        open_budget: bool = False,
        declared: Mapping[str, Parameter] | None = None,
    ):
        super().__init__(transport, message, declared)
        self._open_budget = open_budget
        self._renew()
        renew_after_fork(self)

    def _renew(self) -> None:
        """Give this process an identity of its own, under which it holds no trials yet."""
        self._client = f"{_safe(socket.gethostname())}-{os.getpid()}-{secrets.token_hex(4)}"
        self._numbers = itertools.count()
        self._enqueued = itertools.count()
        self._learned = LearnedSpace(self)
        self._heartbeat = Heartbeat(self._beat)
        self._reports = Reports(self._send_reports)

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to use the study; a token is not in it, as it is secret."""
        state = {k: v for k, v in self.__dict__.items() if k not in _OF_A_PROCESS}
        return {**state, "storage": self._transport.storage, "ca": self._transport.ca}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._transport = connect(state.pop("storage"), None, state.pop("ca"))
        self.__dict__.update(state)
        self._renew()
        renew_after_fork(self)

    def ask(self, *, timeout: float | None = None) -> Trial:
        """Return a trial to evaluate; pass its value to `tell`.

        While the process lives, the trial is kept for it.

        Raises:
            StudyEndedError: if the study has ended; StudyFailedError if it failed.
            TimeoutError: if there is no trial after `timeout` seconds.

        Examples:
            >>> trial = study.ask()
            >>> trial.params["kind"] in ("a", "b")
            True
        """
        return self._ask(1, timeout)[0]

    def _ask(self, count: int, timeout: float | None = None) -> list[Trial]:
        """Return at least one trial and at most `count`. See ask."""
        deadline = None if timeout is None else time.monotonic() + timeout
        client = self._new_client()
        while True:
            wait = _ASK_WAIT if deadline is None else min(_ASK_WAIT, max(0.0, deadline - time.monotonic()))
            if trials := self._suggest(client, wait, count):
                return trials
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"the study {self.name!r} had no trial within {timeout} s")

    def enqueue_trial(
        self,
        params: Mapping[str, Any],
        *,
        labels: Mapping[str, str] | None = None,
        note: str = "",
        user_attrs: Mapping[str, Any] | None = None,
        skip_if_exists: bool = False,
    ) -> FrozenTrial:
        """Have a point evaluated before the optimiser's next suggestion.

        Active parameters that it leaves out are drawn at random. While a study does not know one of the
        parameters, as it was created without them, the point waits for the next trial of this process, and
        the trial that is returned has the number 0. With `skip_if_exists`, a trial that
        has these values already is returned in place of a new one. `labels` and `note` are for people, and
        `user_attrs` are those of Trial.set_user_attr.

        Raises:
            SpaceError: if a value is not in the space.

        Examples:
            >>> record = study.enqueue_trial({"x": 0.0, "kind": "b"})
            >>> study.ask().params
            {'x': 0.0, 'kind': 'b'}
        """
        if self._learns and not self._knows(params):
            self._learned.wishes.append(dict(params))
            return FrozenTrial(
                number=0, state=TrialState.PENDING, params=dict(params), values=None, note=note
            )
        attributes = {key: attribute(key, value) for key, value in (user_attrs or {}).items()}
        given = encode_point(self.parameters, params)
        if skip_if_exists:
            wanted = decode_point(self.parameters, given)
            for trial in self.get_trials():
                if all(n in trial.params and trial.params[n] == v for n, v in wanted.items()):
                    return trial
        request: Message = {
            "parent": self._id,
            "requestId": uuid.uuid4().hex,
            "labels": dict(labels or {}),
            "note": note,
        }
        made = sum(map(int, self._get().get("trials", {}).values()))
        rng = seeded(self._seed, "enqueued", made, next(self._enqueued))
        tries = _DRAWS
        while True:  # a constraint may not hold where the rest was drawn
            whole = complete(self.parameters, params, rng)
            request["parameters"] = encode_point(self.parameters, whole)
            try:
                answer = self._write("EnqueueTrial", request)
                break
            except errors.ServerError as e:
                tries -= 1
                if e.code != "invalid_argument" or whole.keys() == params.keys() or tries == 0:
                    raise
        if attributes:
            name = answer["trial"]["name"]
            answer = self._write("EditTrial", {"name": name, "attributes": attributes})
        return self._record(answer["trial"])

    def continue_trial(self, trial: FrozenTrial | Trial | int) -> FrozenTrial:
        """Have a trial run to its end that was stopped early, and return the new trial that does so.

        `trial` is the stopped one, or its number. The new trial has its parameters, its seed and its
        checkpoint, comes before the optimiser's next suggestion, and is not stopped early. It counts against
        `max_trials`, but may be beyond it: a study that has ended with its last trial goes on for it alone.

        Raises:
            NotFoundError: if there is no such trial.
            PreconditionError: if the trial is not PRUNED or is continued already, or the study has ended for
                another reason.

        Examples:
            >>> try:
            ...     study.continue_trial(1)
            ... except fantasia.FantasiaError as e:
            ...     print(e)
            trial 1 is COMPLETED; only a trial that was stopped early (PRUNED) can be continued
        """
        stopped = trial if isinstance(trial, int) else trial.number
        if stopped < 1:  # 0 is none for the server
            raise errors.NotFoundError("not_found", f"there is no trial {stopped}; the first one is 1")
        request = {"parent": self._id, "parameters": {}, "continues": stopped, "requestId": uuid.uuid4().hex}
        return self._record(self._write("EnqueueTrial", request)["trial"])

    def add_trial(
        self,
        params: Mapping[str, Any],
        value: Value,
        *,
        parameters: Mapping[str, Parameter] | None = None,
        labels: Mapping[str, str] | None = None,
        note: str = "",
    ) -> FrozenTrial:
        """Add a trial that was evaluated elsewhere, so that the optimiser learns from it.

        `params` has all active parameters, `value` is that of `tell`. `labels` and `note` are for people.
        In a study that was created without parameters, `parameters` declares those that no trial has asked
        for yet, as `suggest_…` does.

        Raises:
            SpaceError: if a value is not in the space, or the objective's metric is missing.
            DeclarationError: if `parameters` has one of another kind than the study.

        Examples:
            >>> study.add_trial({"x": 0.25, "kind": "a"}, 0.0625).number
            3
        """
        metrics = self._metrics(value)
        if missing := self._missing(metrics):
            raise errors.SpaceError(f"value: expected the metric {missing}, got {sorted(metrics)}")
        if self._learns:
            point = self._learned.adopt(params, parameters or {})
        elif parameters:
            raise errors.SpaceError(
                f"parameters: expected none, as the study has declared its own, got {', '.join(parameters)}"
            )
        else:
            point = encode_point(self.parameters, params)
        request = {
            "parent": self._id,
            "parameters": point,
            "values": [number(metrics.pop(name)) for name in self.objectives],
            "metrics": {name: number(v) for name, v in metrics.items()},
            "requestId": uuid.uuid4().hex,
            "labels": dict(labels or {}),
            "note": note,
        }
        return self._record(self._write("AddTrial", request)["trial"])

    # The calls.

    def _new_client(self) -> str:
        """Return an id under which one trial at a time is held."""
        return f"{self._client}-{next(self._numbers)}"

    def _suggest(self, client: str, wait: float, count: int = 1) -> list[Trial]:
        """Return `count` trials that the client holds now, or fewer if no more can be had before one ends.

        There is none if the wait is over first. Raises StudyEndedError.
        """
        request = {"parent": self._id, "clientId": client, "count": count, "wait": f"{wait:.3f}s"}
        answer = self._transport.call(
            SERVICE + "SuggestTrials", request, idempotent=True, timeout=wait + self._transport.timeout
        )
        if given := answer.get("trials", []):
            trials = [self._trial(t, client) for t in given]
            for trial in trials:
                self._heartbeat.add(trial, seconds(answer["lease"]))
            return trials
        state = answer.get("studyState", "").removeprefix("STUDY_STATE_")
        if state == "RUNNING" or (state == "COMPLETED" and self._extend()):
            return []
        text = f"the study {self.name!r} is {state.lower()}: {answer.get('reason', '')}"
        if state == "FAILED":
            raise errors.StudyFailedError(
                f"{text}\nOnce the cause is mended, call optimize again, or resume()."
            )
        raise errors.StudyEndedError(text)

    def _trial(self, message: Message, client: str) -> Trial:
        """Return a trial to evaluate."""
        if not self._learns:
            return Trial(self, self._record(message), client)
        point = message.get("parameters", {})
        return LearningTrial(self, self._record(message), client, point, self._learned.wish())

    def _extend(self) -> bool:
        """Raise the budget if it was nobody's wish, and return whether the study runs again."""
        if not self._open_budget:
            return False
        study = self._get()
        budget = int(study["maxTrials"])
        ended = sum(
            int(study.get("trials", {}).get(s, 0)) for s in ("completed", "failed", "infeasible", "pruned")
        )
        if ended < budget:  # the goal or the end of a finite space ended it
            return False
        self._edit(lambda document: document["spec"]["budget"].update(maxTrials=2 * budget))
        return True

    def _beat(self, trials: Sequence[Trial]) -> None:
        """Renew the leases of the trials, and tell each what the server says."""
        for trial in trials:
            request = {
                "parent": self._id,
                "clientId": trial.client_id,
                "trials": [trial.number],
                "attempts": [trial.attempt],
            }
            for instruction in self._read("HeartbeatTrials", request).get("instructions", []):
                action = instruction.get("action", "").removeprefix("TRIAL_ACTION_")
                trial._instruct(action, instruction.get("reason", ""))


def _safe(host: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in host)[:40] or "host"
