"""A study: what it has found, and asking for trials and telling their values."""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import secrets
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import errors
from ._fork import renew_after_fork
from ._heartbeat import Heartbeat
from ._server import connect
from .parameters import Parameter, decode_point, encode_point, fits, space_of
from .transport import Message, Transport
from .trial import FrozenTrial, Trial, TrialState, trial_of

if TYPE_CHECKING:
    import pandas

    from ._optimize import Run

log = logging.getLogger("fantasia_hpo")

Direction = Literal["minimize", "maximize"]
Objective = Callable[[Trial], "float | Mapping[str, float] | None"]
Callback = Callable[["Study", FrozenTrial], None]

_SERVICE = "StudyService/"
_OF_A_PROCESS = ("_transport", "_client", "_numbers", "_heartbeat", "_run")
_RECOMMENDED_WAIT = 5.0  # seconds that `recommended` waits for the model to have seen all trials
_NO_MODEL = ("random", "sobol")  # algorithms that recommend nothing
_ASK_WAIT = 10.0  # seconds that one call of SuggestTrials waits
_REASON_BYTES, _MESSAGE_BYTES, _METRICS, _METRIC_BYTES = 256, 4096, 1000, 256  # the API's limits


@dataclass(frozen=True)
class Recommendation:
    """The evaluated point whose mean under the optimiser's model is best.

    Prefer it to the best trial where evaluations are noisy: the best value may be luck.
    """

    number: int
    params: dict[str, Any]
    mean: float
    sd: float


# The pictures of a study, with how many parameters each takes.
PICTURES = {
    "history": 0,
    "curves": 0,
    "parallel": 0,
    "slice": 1,
    "importances": 0,
    "dependence": 1,
    "contour": 2,
    "fit": 0,
    "staleness": 0,
    "workers": 0,
    "pending": 0,
}


class Picture(str):
    """A picture as SVG. A notebook shows it; written to a file, a browser does."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class Study:
    """A study on a server. `create_study` and `load_study` make one.

    Threads may share it, and so may processes: it can be pickled, and each process that gets it, also by
    a fork, evaluates trials of its own. A token is not pickled: another process reads FANTASIA_TOKEN.
    """

    def __init__(
        self,
        transport: Transport,
        message: Message,
        *,
        open_budget: bool = False,
        declared: Mapping[str, Parameter] | None = None,
    ):
        self._transport = transport
        self._renew()
        renew_after_fork(self)
        self._id = f"studies/{message['id']}"
        self._open_budget = open_budget
        document = json.loads(message["studyFile"])
        spec = document["spec"]
        self.name: str = document["metadata"]["name"]
        self.metric: str = spec["objective"]["metric"]
        self.direction: Direction = spec["objective"]["direction"]
        self.parameters: dict[str, Parameter] = space_of(spec["parameters"], declared)
        self._takes_best = spec["objective"].get("take") == "best"

    def _renew(self) -> None:
        """Give this process an identity of its own, under which it holds no trials yet."""
        self._client = f"{_safe(socket.gethostname())}-{os.getpid()}-{secrets.token_hex(4)}"
        self._numbers = itertools.count()
        self._heartbeat = Heartbeat(self._beat)
        self._run: Run | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to use the study; a token is not in it, as it is secret."""
        state = {k: v for k, v in self.__dict__.items() if k not in _OF_A_PROCESS}
        return {**state, "storage": self._transport.storage, "ca": self._transport.ca}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._transport = connect(state.pop("storage"), None, state.pop("ca"))
        self.__dict__.update(state)
        self._renew()
        renew_after_fork(self)

    # What the study has found.

    @property
    def trials(self) -> list[FrozenTrial]:
        """All trials, by number."""
        return self.get_trials()

    def get_trials(self, states: Sequence[TrialState] | None = None) -> list[FrozenTrial]:
        """Return the trials in one of the states, or all of them, by number."""
        request: Message = {"parent": self._id, "pageSize": 1000}
        if states is not None:
            request["states"] = [f"TRIAL_STATE_{TrialState(s).value}" for s in states]
        return [trial_of(self.parameters, t) for t in self._pages("ListTrials", request, "trials")]

    def get_trial(self, number: int) -> FrozenTrial:
        """Return one trial; raise NotFoundError if there is none."""
        return trial_of(self.parameters, self._read("GetTrial", {"name": self._name(number)})["trial"])

    def curve(self, trial: FrozenTrial | Trial | int, metric: str | None = None) -> dict[int, float]:
        """Return what a trial has reported, by step: of the study's metric, or of another one."""
        request = {"parent": self._name(trial), "metric": metric or self.metric}
        points = self._pages("ListMeasurements", request, "measurements")
        return {int(p.get("step", 0)): float(p.get("value", 0)) for p in points}

    def picture(self, name: str = "history", *parameters: str, width: int = 720) -> Picture:
        """Return a picture of the study; a notebook shows it.

        `history`, `curves`, `parallel`, `importances`, `fit`, `staleness`, `workers` and `pending`
        take no parameters, `slice` and `dependence` the name of one, and `contour` two.
        `importances`, `dependence`, `contour` and `fit` are of the model and need 20 completed
        trials. `width` is in pixels.
        """
        if name not in PICTURES:
            raise ValueError(f"picture: expected one of {', '.join(PICTURES)}, got {name!r}")
        takes = PICTURES[name]
        if len(parameters) != takes:
            raise ValueError(f"picture {name!r}: expected {takes} names of parameters, got {len(parameters)}")
        for p in parameters:
            if p not in self.parameters:
                raise ValueError(f"parameter: expected one of {', '.join(self.parameters)}, got {p!r}")
        path = f"/ui/{self._id}/pictures/{name}"
        return Picture(self._transport.get(path, {"parameter": parameters, "width": str(width)}))

    def _repr_svg_(self) -> str | None:
        """Return the history, which a notebook shows for a study; None if the server does not answer."""
        try:
            return str(self.picture("history"))
        except errors.FantasiaError:
            return None

    @property
    def best_trial(self) -> FrozenTrial:
        """The completed trial with the best value; ValueError if none has completed."""
        best = self._get().get("best")
        if best is None:
            raise ValueError(f"no trial of the study {self.name!r} has completed yet")
        return self.get_trial(int(best["trial"]))

    @property
    def best_value(self) -> float:
        """The value of the best trial."""
        value = self.best_trial.value
        assert value is not None
        return value

    @property
    def best_params(self) -> dict[str, Any]:
        """The parameters of the best trial."""
        return self.best_trial.params

    @property
    def recommended(self) -> Recommendation:
        """The point that the optimiser's model recommends; ValueError if it has none.

        The server makes a recommendation about once a second. This waits a few seconds for one
        that is based on all trials that have ended.
        """
        deadline = time.monotonic() + _RECOMMENDED_WAIT
        while True:
            message = self._get()
            found = message.get("recommended")
            completed = message.get("trials", {}).get("completed", 0)
            if (found or {}).get("current") or not completed or message.get("algorithm") in _NO_MODEL:
                break
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if found is None:
            raise ValueError(
                f"the study {self.name!r} has no recommended point: no trial has completed, or its algorithm "
                f"{message.get('algorithm')!r} has no model; use best_trial"
            )
        return Recommendation(
            number=int(found["trial"]),
            params=decode_point(self.parameters, found.get("parameters", {})),
            mean=float(found.get("mean", 0)),
            sd=float(found.get("sd", 0)),
        )

    @property
    def state(self) -> str:
        """The state of the study: RUNNING, COMPLETED, STOPPED or FAILED."""
        return str(self._get()["state"]).removeprefix("STUDY_STATE_")

    @property
    def reason(self) -> str:
        """Why the study is in its state."""
        return str(self._get().get("reason", ""))

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the study."""
        return dict(self._get().get("labels", {}))

    @property
    def note(self) -> str:
        """What people have written about the study."""
        return str(self._get().get("note", ""))

    def trials_dataframe(self) -> pandas.DataFrame:
        """Return all trials as a table of pandas, which must be installed."""
        try:
            import pandas
        except ImportError:
            raise ImportError("trials_dataframe needs pandas: pip install pandas") from None
        rows = []
        for t in self.trials:
            row: dict[str, Any] = {"number": t.number, "state": t.state.value, "value": t.value}
            row |= {f"params_{name}": t.params.get(name) for name in self.parameters}
            row |= {f"metrics_{name}": number for name, number in t.metrics.items() if name != self.metric}
            row |= {
                "datetime_start": t.datetime_start,
                "duration": t.duration,
                "source": t.source,
                "reason": t.reason,
            }
            rows.append(row)
        return pandas.DataFrame(rows)

    def to_mlflow(self, experiment: str | None = None, tracking_uri: str | None = None) -> str:
        """Add a run of MLflow for each trial that ended, and return the id of the experiment.

        MLflow (or mlflow-skinny) must be installed. See `fantasia_hpo.mlflow.to_mlflow`.
        """
        try:
            from .mlflow import to_mlflow
        except ImportError:
            raise ImportError("to_mlflow needs MLflow: pip install mlflow-skinny") from None
        return to_mlflow(self, experiment, tracking_uri)

    # Evaluating trials.

    def optimize(
        self,
        objective: Objective,
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Evaluate trials with a function, n_jobs at once, in threads.

        The function gets a Trial and returns the study's metric or a mapping of metrics. If it
        raises an exception, the trial fails, and the study goes on. The call ends after n_trials
        trials, after `timeout` seconds (those that run are finished), when `Study.stop` is called,
        or when the study ends. `callbacks` are called with the study and each trial that ended.

        Raises StudyFailedError if the study fails, as it does when its first three trials all fail.
        Ctrl-C hands the running trials back, and so does any exception that ends the call. A second
        Ctrl-C ends it at once; the trials are given out again when their leases end.
        """
        from ._optimize import Run

        Run(self, objective, n_trials, timeout, n_jobs, callbacks).run()

    def stop(self) -> None:
        """End the call of `optimize` that is running once its running trials have ended."""
        if self._run is not None:
            self._run.stop()

    def ask(self, *, timeout: float | None = None) -> Trial:
        """Return a trial to evaluate; pass its value to `tell`.

        Raises StudyEndedError if the study has ended, and TimeoutError if there is no trial after
        `timeout` seconds. While the process lives, the trial is kept for it.
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

    def tell(
        self,
        trial: Trial,
        value: float | Mapping[str, float] | None = None,
        *,
        state: TrialState | str = TrialState.COMPLETED,
        reason: str = "",
        details: str = "",
        checkpoint: str = "",
    ) -> FrozenTrial:
        """End a trial of `ask`, and return its record.

        `state` is COMPLETED, PRUNED, FAILED or INFEASIBLE. Without a value, a completed trial has
        the value that it reported last. `reason` says in a line why a trial failed, `details` more.
        `checkpoint` is where a trial that is promoted from this one can continue. Telling the same
        again changes nothing.
        """
        state = TrialState(state)
        request = self._of(trial)
        if state in (TrialState.COMPLETED, TrialState.PRUNED):
            metrics = dict(trial._reported) if value is None else self._metrics(value)
            if self.metric in metrics:
                request["values"] = [_number(metrics.pop(self.metric))]
            elif state is TrialState.COMPLETED:
                raise errors.FantasiaError(
                    f"trial {trial.number} has no value: return the metric {self.metric!r}, or report it"
                )
            request["metrics"] = {name: _number(v) for name, v in metrics.items()}
            if checkpoint:
                request["checkpoint"] = checkpoint
            if state is TrialState.PRUNED:
                request["pruned"] = True
            method = "CompleteTrial"
        elif state in (TrialState.FAILED, TrialState.INFEASIBLE):
            line, end = reason.partition("\n")[0], _bytes(details or reason)[-_MESSAGE_BYTES:]
            request |= {"reason": _cut(line, _REASON_BYTES), "message": end.decode(errors="ignore")}
            request["infeasible"] = state is TrialState.INFEASIBLE
            method = "FailTrial"
        else:
            raise errors.SpaceError(
                f"state: expected COMPLETED, PRUNED, FAILED or INFEASIBLE, got {state.value}"
            )
        answer = self._write(method, request)
        self._forget(trial)
        return trial_of(self.parameters, answer["trial"])

    def release(self, trial: Trial, *, checkpoint: str = "", reason: str = "") -> None:
        """Hand a trial back, so that it is given out again. This is not a failure."""
        request = self._of(trial) | {
            "reason": _cut(reason, _REASON_BYTES),
            "checkpoint": checkpoint,
        }
        self._write("ReleaseTrial", request)
        self._forget(trial)

    def _hand_back(self, trial: Trial, reason: str) -> None:
        """Release a trial; keep its lease no longer if that cannot be done now."""
        try:
            self.release(trial, reason=reason)
        except errors.FantasiaError as e:
            log.warning("trial %d could not be handed back: %s", trial.number, e)
        finally:
            self._forget(trial)

    def enqueue_trial(
        self, params: Mapping[str, Any], *, labels: Mapping[str, str] | None = None, note: str = ""
    ) -> FrozenTrial:
        """Have a point evaluated before the optimiser's next suggestion; it needs all active parameters."""
        request = {
            "parent": self._id,
            "parameters": encode_point(self.parameters, params),
            "requestId": uuid.uuid4().hex,
            "labels": dict(labels or {}),
            "note": note,
        }
        return trial_of(self.parameters, self._write("EnqueueTrial", request)["trial"])

    def add_trial(
        self,
        params: Mapping[str, Any],
        value: float | Mapping[str, float],
        *,
        labels: Mapping[str, str] | None = None,
        note: str = "",
    ) -> FrozenTrial:
        """Add a trial that was evaluated elsewhere, so that the optimiser learns from it."""
        metrics = self._metrics(value)
        if self.metric not in metrics:
            raise errors.SpaceError(f"value: expected the metric {self.metric!r}, got {sorted(metrics)}")
        request = {
            "parent": self._id,
            "parameters": encode_point(self.parameters, params),
            "values": [_number(metrics.pop(self.metric))],
            "metrics": {name: _number(v) for name, v in metrics.items()},
            "requestId": uuid.uuid4().hex,
            "labels": dict(labels or {}),
            "note": note,
        }
        return trial_of(self.parameters, self._write("AddTrial", request)["trial"])

    def cancel_trial(self, trial: FrozenTrial | Trial | int, reason: str = "") -> None:
        """End one trial. It does not count, and whoever evaluates it is told to stop."""
        self._write("CancelTrial", {"name": self._name(trial), "reason": _cut(reason, _REASON_BYTES)})

    def edit_trial(
        self,
        trial: FrozenTrial | Trial | int,
        *,
        labels: Mapping[str, str | None] | None = None,
        note: str | None = None,
    ) -> FrozenTrial:
        """Change the labels and the note of a trial; a label that is None is removed."""
        labels = labels or {}
        request: Message = {
            "name": self._name(trial),
            "labels": {key: value for key, value in labels.items() if value is not None},
            "removeLabels": [key for key, value in labels.items() if value is None],
        }
        if note is not None:
            request["note"] = note
        return trial_of(self.parameters, self._write("EditTrial", request)["trial"])

    # The study itself.

    def end(self, reason: str = "") -> None:
        """End the study for everybody, and cancel its running trials."""
        self._write("StopStudy", {"name": self._id, "reason": reason})

    def update(
        self,
        *,
        max_trials: int | None = None,
        goal: float | None = None,
        labels: Mapping[str, str | None] | None = None,
        note: str | None = None,
    ) -> None:
        """Change the budget, the goal, labels or the note; a label that is None is removed.

        A larger budget resumes a study that has completed.
        """
        document = json.loads(self._get()["studyFile"])
        if max_trials is not None:
            document["spec"]["budget"]["maxTrials"] = max_trials
        if goal is not None:
            document["spec"]["objective"]["goal"] = goal
        if labels is not None:
            merged = {**document["metadata"].get("labels", {}), **labels}
            document["metadata"]["labels"] = {
                key: value for key, value in merged.items() if value is not None
            }
        if note is not None:
            document["spec"]["note"] = note
        self._write("UpdateStudy", {"name": self._id, "studyFile": json.dumps(document)})

    def edit_space(self, parameters: Mapping[str, Parameter]) -> None:
        """Give parameters other ranges or other values; those that are not named stay.

        The study goes on with a new version of its space. Trials whose point is not in it stay in
        `trials`, but the optimiser does not learn from them, and they are neither best nor
        recommended. Initial points that do not fit are left out. Names, types, scales, steps,
        conditions, the levels of a Fidelity, and the order of values that stay cannot change: the
        server refuses that with PreconditionError, or StudyFileError.
        """
        document = json.loads(self._get()["studyFile"])
        listed = document["spec"]["parameters"]
        places = {p["name"]: i for i, p in enumerate(listed)}
        for name, parameter in parameters.items():
            if name not in places:
                raise errors.SpaceError(f"parameter: expected one of {', '.join(places)}, got {name!r}")
            listed[places[name]] = parameter.document(name)
        initial = document["spec"].get("initial") or []
        document["spec"]["initial"] = [p for p in initial if fits(parameters, p)]
        answer = self._write("UpdateStudy", {"name": self._id, "studyFile": json.dumps(document)})
        document = json.loads(answer["study"]["studyFile"])
        self.parameters = space_of(document["spec"]["parameters"], {**self.parameters, **parameters})

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.direction} {self.metric!r})"

    # The calls.

    def _read(self, method: str, request: Message) -> Message:
        return self._transport.call(_SERVICE + method, request, idempotent=True)

    _write = _read  # every change is idempotent, too: by its nature or by its request_id

    def _get(self) -> Message:
        study: Message = self._read("GetStudy", {"name": self._id})["study"]
        return study

    def _name(self, trial: FrozenTrial | Trial | int) -> str:
        return f"{self._id}/trials/{trial if isinstance(trial, int) else trial.number}"

    def _pages(self, method: str, request: Message, field: str) -> Iterator[Message]:
        token = ""
        while True:
            answer = self._read(method, {**request, "pageToken": token})
            yield from answer.get(field, [])
            token = answer.get("nextPageToken", "")
            if not token:
                return

    def _new_client(self) -> str:
        """Return an id under which one trial at a time is held."""
        return f"{self._client}-{next(self._numbers)}"

    def _suggest(self, client: str, wait: float, count: int = 1) -> list[Trial]:
        """Return `count` trials that the client holds now, or fewer if no more can be had before one ends.

        There is none if the wait is over first. Raises StudyEndedError.
        """
        request = {"parent": self._id, "clientId": client, "count": count, "wait": f"{wait:.3f}s"}
        answer = self._transport.call(
            _SERVICE + "SuggestTrials", request, idempotent=True, timeout=wait + self._transport.timeout
        )
        if given := answer.get("trials", []):
            trials = [Trial(self, trial_of(self.parameters, t), client) for t in given]
            for trial in trials:
                self._heartbeat.add(trial, _seconds(answer["lease"]))
            return trials
        state = answer.get("studyState", "").removeprefix("STUDY_STATE_")
        if state == "RUNNING" or (state == "COMPLETED" and self._extend()):
            return []
        text = f"the study {self.name!r} is {state.lower()}: {answer.get('reason', '')}"
        if state == "FAILED":
            raise errors.StudyFailedError(text)
        raise errors.StudyEndedError(text)

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
        self.update(max_trials=2 * budget)
        return True

    def _add_measurement(self, trial: Trial, step: int, metrics: Mapping[str, float]) -> tuple[str, str]:
        request = self._of(trial) | {
            "step": step,
            "metrics": {name: _number(v) for name, v in metrics.items()},
        }
        try:
            answer = self._write("AddMeasurement", request)
        except errors.PreconditionError as e:
            log.warning("trial %d: a report was refused: %s", trial.number, e)
            return "CONTINUE", ""
        return answer.get("action", "").removeprefix("TRIAL_ACTION_"), answer.get("reason", "")

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

    def _metrics(self, value: float | Mapping[str, float]) -> dict[str, float]:
        """Return what an objective returned or reported, by metric."""
        if not isinstance(value, Mapping):
            value = {self.metric: value}
        if len(value) > _METRICS:
            raise errors.SpaceError(f"expected at most {_METRICS} metrics, got {len(value)}")
        metrics = {}
        for name, number in value.items():
            if not isinstance(name, str) or not 1 <= len(_bytes(name)) <= _METRIC_BYTES:
                raise errors.SpaceError(
                    f"expected a metric's name of 1 to {_METRIC_BYTES} bytes, got {name!r}"
                )
            try:
                if isinstance(number, str | bytes):
                    raise TypeError
                metrics[name] = float(number)
            except Exception:  # each library has its own for an array of several numbers
                raise errors.SpaceError(
                    f"metric {name!r}: expected a number, got {number!r} of type {type(number).__name__}"
                ) from None
        return metrics

    def _take(self, metric: str, old: float | None, new: float) -> float:
        """Return which of two reports counts as the trial's value."""
        if old is None or metric != self.metric or not self._takes_best or math.isnan(old):
            return new
        return min(old, new) if self.direction == "minimize" else max(old, new)


def _number(value: float) -> float | str:
    """Return a float as protobuf's JSON has it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))


def _cut(text: str, most: int) -> str:
    """Return the text with at most that many bytes."""
    return _bytes(text)[:most].decode(errors="ignore")


def _bytes(text: str) -> bytes:
    """Return UTF-8; a name of a file that is not has a replacement."""
    return text.encode(errors="replace")


def _safe(host: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in host)[:40] or "host"
