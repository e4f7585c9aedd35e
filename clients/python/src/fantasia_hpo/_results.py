"""What a study has found."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import errors
from ._objectives import aims
from ._reading import Reading
from .parameters import decode_point
from .record import FrozenTrial, table
from .transport import Message

if TYPE_CHECKING:
    import pandas

_RECOMMENDED_WAIT = 5.0  # seconds that `recommended` waits for the model to have seen all trials
_NO_MODEL = ("random", "sobol", "grid")  # algorithms that recommend nothing


@dataclass(frozen=True)
class Expected:
    """A trial on the front that the models of several objectives recommend.

    It has the mean and the standard deviation of each objective, in their order.

    Examples:
        >>> fantasia.Expected(number=3, means=[0.9, 12.0], sds=[0.02, 1.5], knee=True).means
        [0.9, 12.0]
    """

    number: int
    means: list[float]
    sds: list[float]
    knee: bool = False


@dataclass(frozen=True)
class Recommendation:
    """The evaluated point whose mean under the optimiser's model is best.

    Prefer it to the best trial where evaluations are noisy: the best value may be luck. With several
    objectives it is the knee of `front` or, if no trial there is its knee, the first one; `mean` and
    `sd` are then those of the first objective.

    Examples:
        >>> fantasia.Recommendation(number=1, params={"x": 0.5}, mean=0.25, sd=0.01).params
        {'x': 0.5}
    """

    number: int
    params: dict[str, Any]
    mean: float
    sd: float
    front: list[Expected] = field(default_factory=list)


# The pictures of a study, with how many parameters each takes.
PICTURES = {
    "history": 0,
    "edf": 0,
    "front": 0,
    "hypervolume": 0,
    "curves": 0,
    "allocation": 0,
    "parallel": 0,
    "slice": 1,
    "importances": 0,
    "dependence": 1,
    "importances-duration": 0,
    "duration": 1,
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


class Results(Reading):
    """What a study has found."""

    def picture(
        self, name: str = "history", *parameters: str, objective: str | None = None, width: int = 720
    ) -> Picture:
        """Return a picture of the study; a notebook shows it.

        `history`, `edf`, `curves`, `allocation`, `parallel`, `importances`, `importances-duration`, `fit`,
        `staleness`, `workers` and `pending` take no parameters, `slice`, `dependence` and `duration` the name
        of one, and `contour` two. `allocation` is of studies with early stopping. `front` and `hypervolume`,
        without parameters, are of studies of several objectives. Of these, `objective` is the metric that
        pictures of one objective show, by default the first. `importances`, `dependence`, `contour` and `fit`
        are of the model and need 20 completed trials. `duration` and `importances-duration` also need trials
        that take a second or longer.
        `width` is in pixels.

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
        """The point that the optimiser's model recommends; with several objectives, its front as well.

        The server makes a recommendation about once a second. This waits a few seconds for one
        that is based on all trials that have ended.

        Raises:
            ValueError: if there is none, as before the first trial has completed.

        Examples:
            >>> study.recommended.params["x"] in (0.5, -1.0)
            True
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
                f"{message.get('algorithm')!r} has no model; use "
                + ("best_trials" if len(self.objectives) > 1 else "best_trial")
            )
        return Recommendation(
            number=int(found["trial"]),
            params=decode_point(self.parameters, found.get("parameters", {})),
            mean=float(found.get("mean", 0)),
            sd=float(found.get("sd", 0)),
            front=[
                Expected(
                    int(e["trial"]),
                    [float(m) for m in e["means"]],
                    [float(s) for s in e["sds"]],
                    bool(e.get("knee")),
                )
                for e in found.get("front", [])
            ],
        )

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
