"""What a study optimises: one metric, or several at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .errors import SpaceError

Direction = Literal["minimize", "maximize"]
Take = Literal["last", "best"]


@dataclass(frozen=True)
class Objective:
    """A direction of `create_study(objectives=…)`, with what else is known of its metric.

    `reference` is the worst value that is still of interest when there are several objectives. `take`
    says whether the last or the best report of a trial counts. Of several objectives, one may have
    "best": the report in which it was best then counts for all. `early` says of one of several that it is
    known before a trial ends and then stays the same, such as a model's size. Trials that are stopped early
    or fail then count in the model of this objective, too.

    Examples:
        >>> several = fantasia.create_study(
        ...     objectives={"error": "minimize", "seconds": fantasia.Objective("minimize", reference=60)},
        ...     parameters={"depth": fantasia.Int(1, 12)},
        ... )
        >>> several.directions
        ['minimize', 'minimize']
    """

    direction: Direction
    reference: float | None = None
    take: Take = "last"
    early: bool = False


def objectives_of(
    metric: str,
    direction: Direction | None,
    directions: Sequence[Direction] | None,
    objectives: Mapping[str, Objective | Direction] | None,
    take: Take | None,
) -> dict[str, Objective]:
    """Return the objectives of a new study, which are given in one of three ways."""
    ways = {"direction": direction, "directions": directions, "objectives": objectives}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        raise SpaceError(f"expected one of direction, directions and objectives, got {given or 'none'}")
    found: dict[str, Objective] = {}
    if objectives is not None:
        for name, aim in objectives.items():
            found[name] = aim if isinstance(aim, Objective) else Objective(aim)
            _check(found[name].direction, f"objectives[{name!r}]")
    elif directions is not None:
        if isinstance(directions, str):
            raise SpaceError(f"directions: expected a list of directions, got {directions!r}: use direction")
        for i, one in enumerate(directions):
            _check(one, f"directions[{i}]")
            found[metric if len(directions) == 1 else f"values_{i}"] = Objective(one)
    elif direction is not None:
        _check(direction, "direction")
        found[metric] = Objective(direction)
    if not found:
        raise SpaceError(f"{given[0]}: expected at least one, got none")
    if len(found) > 1 and take is not None:
        raise SpaceError(
            "take: expected none with several objectives: give one of them its own, "
            "as in objectives={'error': Objective('minimize', take='best')}"
        )
    if len(found) == 1:
        ((name, only),) = found.items()
        if only.reference is not None:
            raise SpaceError(f"objectives[{name!r}].reference: expected none with a single objective")
        if only.early:
            raise SpaceError(f"objectives[{name!r}].early: expected False with a single objective")
        found[name] = Objective(only.direction, take=take or only.take)
    return found


def _check(direction: Any, field: str) -> None:
    if direction not in get_args(Direction):
        raise SpaceError(f"{field}: expected 'minimize' or 'maximize', got {direction!r}")


def spec_of(objectives: Mapping[str, Objective], goal: float | None) -> dict[str, Any]:
    """Return the objectives and the goal as the fields of a study file."""
    listed: list[dict[str, Any]] = []
    for name, o in objectives.items():
        listed.append({"metric": name, "direction": o.direction, "take": o.take})
        if o.reference is not None:
            listed[-1]["reference"] = o.reference
        if o.early:
            listed[-1]["early"] = True
    if len(listed) > 1:
        several: dict[str, Any] = {"objectives": listed}
        if goal is not None:
            several["goal"] = {"hypervolume": goal}
        return several
    if goal is not None:
        listed[0]["goal"] = goal
    return {"objective": listed[0]}


def objectives_in(spec: Mapping[str, Any]) -> dict[str, Objective]:
    """Return the objectives of a study file."""
    listed = spec.get("objectives") or [spec["objective"]]
    return {
        o["metric"]: Objective(
            o["direction"], o.get("reference"), o.get("take", "last"), o.get("early", False)
        )
        for o in listed
    }


def aims(objectives: Mapping[str, Objective]) -> str:
    """Return what is optimised, such as "maximize accuracy, minimize seconds"."""
    return ", ".join(f"{o.direction} {name}" for name, o in objectives.items())


def better(direction: Direction, a: float, b: float) -> bool:
    """Whether `a` is better than `b`."""
    return a < b if direction == "minimize" else a > b


def dominates(objectives: Mapping[str, Objective], a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether values are no worse in any objective, and better in one."""
    ways: list[Direction] = [o.direction for o in objectives.values()]
    worse = any(better(d, y, x) for d, x, y in zip(ways, a, b, strict=True))
    return not worse and any(better(d, x, y) for d, x, y in zip(ways, a, b, strict=True))


class Reported:
    """The metrics that a trial has reported, as they count for its values.

    The latest value of each metric counts, unless an objective takes its best one. The report in which
    that one was best then counts for all objectives. An objective without a value in that report has its
    latest one by then, or else its first one after it.
    """

    def __init__(self, objectives: Mapping[str, Objective]):
        self._directions: dict[str, Direction] = {name: o.direction for name, o in objectives.items()}
        self._by = next((name for name, o in objectives.items() if o.take == "best"), None)
        self._latest: dict[str, float] = {}
        self._chosen: dict[str, float] = {}
        self._step: int | None = None  # of the report that counts
        self._highest: dict[str, int] = {}  # the highest step of each metric
        self._warned = False

    def behind(self, step: int, metrics: Mapping[str, float]) -> str:
        """Return what is wrong with a report's step, the first time that steps do not grow; "" otherwise."""
        behind = [name for name in metrics if name in self._highest and step <= self._highest[name]]
        text = ""
        if behind and not self._warned:
            self._warned = True
            text = f"step {step} of {behind[0]!r} came after step {self._highest[behind[0]]}"
        self._highest.update({name: max(step, self._highest.get(name, step)) for name in metrics})
        return text

    def passed_on(self, ignored: Sequence[str]) -> str:
        """Return what the server says of values that it left out, the first time; "" otherwise."""
        if not ignored or self._warned:
            return ""
        self._warned = True
        return "; ".join(ignored)

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add a report. Steps do not shrink."""
        self._latest.update(metrics)
        if self._by is None:
            return
        value, best = metrics.get(self._by), self._chosen.get(self._by)
        if value is not None and (
            best is None or math.isnan(best) or better(self._directions[self._by], value, best)
        ):
            self._step = step
            self._chosen = {name: self._latest[name] for name in self._directions if name in self._latest}
        for name in metrics.keys() & self._directions.keys():
            if name != self._by and (step == self._step or name not in self._chosen):
                self._chosen[name] = metrics[name]

    def metrics(self) -> dict[str, float]:
        """Return the value of each metric that counts."""
        return {**self._latest, **self._chosen}
