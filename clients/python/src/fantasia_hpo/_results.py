"""What a study has found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import errors
from ._learn import PLACEHOLDER
from ._limits import Limit, exceeded, known_of, limits_in
from ._objectives import Direction, Objective, aims, objectives_in
from ._space import Space
from .parameters import Parameter, decode_point, space_of
from .record import FrozenTrial, TrialState, table, trial_of
from .transport import Message, Transport
from .trial import Trial

if TYPE_CHECKING:
    import pandas

SERVICE = "StudyService/"
_RECOMMENDED_WAIT = 5.0  # seconds that `recommended` waits for the model to have seen all trials
_NO_MODEL = ("random", "sobol", "grid")  # algorithms that recommend nothing


@dataclass(frozen=True)
class Recommendation:
    """The evaluated point whose mean under the optimiser's model is best.

    Prefer it to the best trial where evaluations are noisy: the best value may be luck.

    Examples:
        >>> fantasia.Recommendation(number=1, params={"x": 0.5}, mean=0.25, sd=0.01).params
        {'x': 0.5}
    """

    number: int
    params: dict[str, Any]
    mean: float
    sd: float


# The pictures of a study, with how many parameters each takes.
PICTURES = {
    "history": 0,
    "front": 0,
    "hypervolume": 0,
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
    """A picture as SVG. A notebook shows it; written to a file, a browser does.

    Examples:
        >>> picture = study.picture("history")
        >>> picture.startswith("<svg")
        True
    """

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class Results:
    """What can be read of a study on a server."""

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

    def get_trials(self, states: Sequence[TrialState] | None = None) -> list[FrozenTrial]:
        """Return the trials in one of the states, or all of them, by number.

        Examples:
            >>> len(study.get_trials([fantasia.TrialState.COMPLETED]))
            2
        """
        request: Message = {"parent": self._id, "pageSize": 1000}
        if states is not None:
            request["states"] = [f"TRIAL_STATE_{TrialState(s).value}" for s in states]
        return self._records("ListTrials", request)

    def get_trial(self, number: int) -> FrozenTrial:
        """Return one trial.

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

    def picture(
        self, name: str = "history", *parameters: str, objective: str | None = None, width: int = 720
    ) -> Picture:
        """Return a picture of the study; a notebook shows it.

        `history`, `curves`, `parallel`, `importances`, `fit`, `staleness`, `workers` and `pending`
        take no parameters, `slice` and `dependence` the name of one, and `contour` two. `front` and
        `hypervolume`, without parameters, are of studies of several objectives. Of these, `objective` is the
        metric that pictures of one objective show, by default the first.
        `importances`, `dependence`, `contour` and `fit` are of the model and need 20 completed
        trials. `width` is in pixels.

        Raises:
            ValueError: for another name, parameter or objective.
            NotFoundError: if the study has too few trials for a picture of the model.

        Examples:
            >>> study.picture("slice", "x", width=400)[:4]
            '<svg'
        """
        if name not in PICTURES:
            raise ValueError(f"picture: expected one of {', '.join(PICTURES)}, got {name!r}")
        takes = PICTURES[name]
        if len(parameters) != takes:
            raise ValueError(f"picture {name!r}: expected {takes} names of parameters, got {len(parameters)}")
        for p in parameters:
            if p not in self.parameters:
                raise ValueError(f"parameter: expected one of {', '.join(self.parameters)}, got {p!r}")
        query: dict[str, Any] = {"parameter": parameters, "width": str(width)}
        if objective is not None:
            if objective not in self.objectives:
                raise ValueError(
                    f"objective: expected one of {', '.join(self.objectives)}, got {objective!r}"
                )
            query["objective"] = objective
        return Picture(self._transport.get(f"/ui/{self._id}/pictures/{name}", query))

    def _repr_html_(self) -> str | None:
        """Return progress and history, which a notebook shows; None if the server does not answer."""
        try:
            message = self._get()
            several = len(self.objectives) > 1
            aim = "objectives" if several else "objective"
            rows: dict[str, Any] = {aim: aims(self.objectives), "state": self.state}
            rows |= {f"trials {state}": n for state, n in message.get("trials", {}).items() if n}
            if self._limits:
                completed = message.get("trials", {}).get("completed", 0)
                within = f"{message.get('withinLimits', 0)} of {completed}"
                rows |= {"limits": ", ".join(map(str, self._limits)), "within all limits": within}
            if best := message.get("best"):
                rows["best"] = f"{best.get('value', 0)!r} of trial {best['trial']}"
            if several:
                rows["on the front"] = ", ".join(f"trial {t.number}" for t in self.best_trials)
            return table(self.name, rows, self.link) + self.picture("history")
        except errors.FantasiaError:
            return None

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
    def best_trials(self) -> list[FrozenTrial]:
        """The completed trials with the best value; none if no trial has completed.

        With several objectives, these are the trials of the front: those that no other one dominates.
        With limits, only trials within all of them count.

        Examples:
            >>> [trial.number for trial in study.best_trials]
            [1]
        """
        request: Message = {"parent": self._id, "pageSize": 1000}
        return self._records("ListOptimalTrials", request)

    @property
    def best_trial(self) -> FrozenTrial:
        """The completed trial with the best value.

        Raises:
            ValueError: if none has completed within all limits.
            RuntimeError: with several objectives, as in Optuna: see best_trials.

        Examples:
            >>> study.best_trial.number
            1
        """
        self._single("best_trial", "best_trials")
        message = self._get()
        best = message.get("best")
        if best is None:
            unmet = message.get("unmetLimits")
            raise ValueError(
                f"the study {self.name!r} has no best trial: {unmet}"
                if unmet
                else f"no trial of the study {self.name!r} has completed yet"
            )
        return self.get_trial(int(best["trial"]))

    @property
    def best_value(self) -> float:
        """The value of the best trial. See best_trial for what it raises.

        Examples:
            >>> study.best_value
            0.25
        """
        value = self.best_trial.value
        assert value is not None
        return value

    @property
    def best_params(self) -> dict[str, Any]:
        """The parameters of the best trial. See best_trial for what it raises.

        Examples:
            >>> study.best_params
            {'x': 0.5, 'kind': 'a'}
        """
        return self.best_trial.params

    @property
    def recommended(self) -> Recommendation:
        """The point that the optimiser's model recommends.

        The server makes a recommendation about once a second. This waits a few seconds for one
        that is based on all trials that have ended.

        Raises:
            ValueError: if there is none, as before the first trial has completed.
            RuntimeError: with several objectives.

        Examples:
            >>> study.recommended.params["x"] in (0.5, -1.0)
            True
        """
        self._single("recommended", "best_trials")
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
            [Limit(metric='seconds', max=60, min=None)]
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

    def trials_dataframe(self) -> pandas.DataFrame:
        """Return all trials as a table of pandas.

        Raises:
            ImportError: if pandas is not installed.

        Examples:
            >>> list(study.trials_dataframe()["params_x"])
            [0.5, -1.0]
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("trials_dataframe needs pandas: pip install pandas") from None
        rows = []
        for t in self.trials:
            row: dict[str, Any] = {"number": t.number, "state": t.state.value}
            row |= self._values_of(t)
            row |= {f"params_{name}": t.params.get(name) for name in self.parameters}
            others = t.metrics.keys() - self.objectives.keys()
            row |= {f"metrics_{name}": t.metrics[name] for name in t.metrics if name in others}
            row |= {"exceeded": ", ".join(t.exceeded)} if self._limits else {}
            row |= {f"user_attrs_{name}": value for name, value in t.user_attrs.items()}
            row |= {
                "datetime_start": t.datetime_start,
                "duration": t.duration,
                "source": t.source,
                "reason": t.reason,
            }
            rows.append(row)
        return pandas.DataFrame(rows)

    def _values_of(self, trial: FrozenTrial) -> dict[str, float | None]:
        """Return the columns of a trial's values, with Optuna's names."""
        if len(self.objectives) == 1:
            return {"value": trial.value}
        names = [f"values_{name.removeprefix('values_')}" for name in self.objectives]
        return {name: trial.values[i] if trial.values else None for i, name in enumerate(names)}

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
