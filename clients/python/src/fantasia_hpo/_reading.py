"""What is read of a study: how it was made, its state and its trials."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._declarations import PLACEHOLDER
from ._limits import Limit, exceeded, known_of, limits_in
from ._objectives import Direction, Objective, aims, objectives_in
from ._space import Space
from .parameters import Parameter, space_of
from .record import FrozenTrial, TrialState, trial_of
from .transport import Message, Transport
from .trial import Trial

SERVICE = "StudyService/"


class Reading:
    """What a study is, and its trials, as they are read from the server."""

    def __init__(
        self, transport: Transport, message: Message, declared: Mapping[str, Parameter] | None = None
    ):
        self._transport = transport
        self._id = f"studies/{message['id']}"
        document = json.loads(message["studyFile"])
        spec = document["spec"]
        self.name: str = document["metadata"]["name"]
        self.objectives: dict[str, Objective] = objectives_in(spec)
        self._limits: list[Limit] = limits_in(spec)
        self.parameters: dict[str, Parameter] = dict(declared or {})
        self.parameters = self._space_in(document)
        self._learns: bool = spec.get("learnParameters", False)
        self._seed: int = int(spec.get("algorithm", {}).get("seed", 0))
        self._prunes: bool = "earlyStopping" in spec
        self._hinted: bool = self._prunes  # it was said how to turn early stopping on
        self._compared: str | None = spec.get("earlyStopping", {}).get("metric")

    @property
    def directions(self) -> list[Direction]:
        """The direction of each objective.

        Examples:
            >>> study.directions
            ['minimize']
        """
        return [o.direction for o in self.objectives.values()]

    @property
    def direction(self) -> Direction:
        """The direction of the only objective.

        Raises:
            RuntimeError: if there are several.

        Examples:
            >>> study.direction
            'minimize'
        """
        self._single("direction", "directions")
        return self.directions[0]

    @property
    def metric(self) -> str:
        """The metric of the only objective.

        Raises:
            RuntimeError: if there are several.

        Examples:
            >>> study.metric
            'value'
        """
        self._single("metric", "objectives")
        return next(iter(self.objectives))

    def _single(self, name: str, instead: str) -> None:
        """Raise RuntimeError, as Optuna does, if there are several objectives."""
        if len(self.objectives) > 1:
            raise RuntimeError(
                f"{name}: the study {self.name!r} has several objectives ({', '.join(self.objectives)}): "
                f"use {instead}"
            )

    @property
    def trials(self) -> list[FrozenTrial]:
        """All trials, by number.

        Examples:
            >>> [trial.value for trial in study.trials]
            [0.25, 1.0]
        """
        return self.get_trials()

    def get_trials(
        self, states: Sequence[TrialState] | None = None, *, deepcopy: bool = True
    ) -> list[FrozenTrial]:
        """Return the trials in one of the states, or all of them, by number.

        `deepcopy` is Optuna's, and changes nothing: trials are read anew for each call.

        Examples:
            >>> len(study.get_trials([fantasia.TrialState.COMPLETED]))
            2
        """
        request: Message = {"parent": self._id, "pageSize": 1000}
        if states is not None:
            request["states"] = [f"TRIAL_STATE_{TrialState(s).value}" for s in states]
        return self._records("ListTrials", request)

    def get_trial(self, number: int) -> FrozenTrial:
        """Return the trial with this number.

        Raises:
            NotFoundError: if there is none.

        Examples:
            >>> study.get_trial(1).params
            {'x': 0.5, 'kind': 'a'}
        """
        self._get()  # somebody may have changed the limits
        return self._record(self._read("GetTrial", {"name": self._name(number)})["trial"])

    def curve(self, trial: FrozenTrial | Trial | int, metric: str | None = None) -> dict[int, float]:
        """Return what a trial has reported, by step: of the first objective, or of another metric.

        Examples:
            >>> trial = study.ask()
            >>> for step in (1, 2, 3):
            ...     trial.report(1 / 2**step, step)
            >>> study.curve(study.tell(trial))
            {1: 0.5, 2: 0.25, 3: 0.125}
        """
        request = {"parent": self._name(trial), "metric": metric or next(iter(self.objectives))}
        points = self._pages("ListMeasurements", request, "measurements")
        return {int(p.get("step", 0)): float(p.get("value", 0)) for p in points}

    @property
    def link(self) -> str:
        """The study's page on the dashboard; empty if the server has none that a browser can open.

        Examples:
            >>> study.link.startswith("http")
            True
        """
        base = self._transport.url
        return f"{base}/ui/{self._id}" if base.startswith("http") else ""

    @property
    def space(self) -> Space:
        """The parameters; printed, they are what `create_study(parameters=…)` takes.

        Examples:
            >>> study.space
            {
                'x': fantasia.Float(-1.0, 1.0),
                'kind': fantasia.Categorical(['a', 'b']),
            }
        """
        if self._learns:
            self._refresh()
        return Space(self.parameters)

    @property
    def state(self) -> str:
        """The state of the study: RUNNING, COMPLETED, STOPPED or FAILED.

        Examples:
            >>> study.state
            'RUNNING'
        """
        return str(self._get()["state"]).removeprefix("STUDY_STATE_")

    @property
    def reason(self) -> str:
        """Why the study is in its state.

        Examples:
            >>> study.end("enough")
            >>> study.reason
            'enough'
        """
        return str(self._get().get("reason", ""))

    @property
    def limits(self) -> list[Limit]:
        """The limits on metrics, as they are now.

        Examples:
            >>> study.update(limits=[fantasia.Limit("seconds", max=60)])
            >>> study.limits
            [Limit(metric='seconds', max=60, min=None, early=False)]
        """
        self._get()
        return list(self._limits)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the study.

        Examples:
            >>> study.update(labels={"team": "vision"})
            >>> study.labels
            {'team': 'vision'}
        """
        return dict(self._get().get("labels", {}))

    @property
    def note(self) -> str:
        """What people have written about the study.

        Examples:
            >>> study.update(note="second try")
            >>> study.note
            'second try'
        """
        return str(self._get().get("note", ""))

    @property
    def user_attrs(self) -> dict[str, Any]:
        """What programs have noted about the study, by name. See Study.set_user_attr.

        Examples:
            >>> study.set_user_attr("rows", 600)
            >>> study.user_attrs
            {'rows': 600}
        """
        return dict(self._get().get("attributes", {}))

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {aims(self.objectives)})"

    # The calls.

    def _read(self, method: str, request: Message) -> Message:
        return self._transport.call(SERVICE + method, request, idempotent=True)

    _write = _read  # every change is idempotent, too: by its nature or by its request_id

    def _space_in(self, document: Message) -> dict[str, Parameter]:
        """Return the parameters of a study file; those that are declared here have their own values."""
        space = space_of(document["spec"]["parameters"], self.parameters)
        return {name: p for name, p in space.items() if name != PLACEHOLDER}

    def _refresh(self) -> None:
        """Read the space, which other processes may have changed."""
        self.parameters = self._space_in(json.loads(self._get()["studyFile"]))

    def _knows(self, names: Iterable[str]) -> bool:
        """Whether this process knows parameters; others may have declared some."""
        return all(name in self.parameters or name == PLACEHOLDER for name in names)

    def _record(self, message: Message) -> FrozenTrial:
        if self._learns and not self._knows(message.get("parameters", {})):
            self._refresh()
        return trial_of(self.parameters, message, self.link, self._exceeded)

    def _records(self, method: str, request: Message) -> list[FrozenTrial]:
        self._get()  # somebody may have changed the limits
        return [self._record(t) for t in self._pages(method, request, "trials")]

    def _exceeded(self, values: Sequence[float], metrics: Mapping[str, float]) -> list[str]:
        return exceeded(self._limits, known_of(self.objectives, values, metrics))

    def _get(self) -> Message:
        return self._seen(self._read("GetStudy", {"name": self._id})["study"])

    def _seen(self, study: Message) -> Message:
        """Note the limits of a study that the server has sent, and return the study."""
        self._limits = limits_in(json.loads(study["studyFile"])["spec"])
        return study

    def _edit(self, change: Callable[[Message], None]) -> Message:
        """Change the study's file, and return the study."""
        document = json.loads(self._get()["studyFile"])
        change(document)
        answer = self._write("UpdateStudy", {"name": self._id, "studyFile": json.dumps(document)})
        return self._seen(answer["study"])

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
