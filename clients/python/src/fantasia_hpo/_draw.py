"""Random points of a space, for values that nobody has suggested."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import SpaceError
from .parameters import Bool, Categorical, Fidelity, Fixed, Float, Int, Parameter, key, texts


def seeded(*key: object) -> random.Random:
    """Return a generator that every process has alike for the same key."""
    return random.Random(" ".join(map(str, key)))


def draw(parameter: Parameter, rng: random.Random) -> Any:
    """Return a random value of a parameter, uniform on its scale."""
    if isinstance(parameter, Fixed):
        return parameter.value
    if isinstance(parameter, Bool):
        return rng.random() < 0.5
    if isinstance(parameter, Categorical):
        return parameter.values[rng.randrange(len(parameter.values))]
    if isinstance(parameter, Fidelity):
        return parameter.low
    return _number(parameter, rng)


def _number(p: Float | Int, rng: random.Random) -> float | int:
    half = 0.5 if isinstance(p, Int) and p.scale != "linear" else 0.0  # so that the ends are as likely
    if p.scale == "log":
        value = math.exp(rng.uniform(math.log(p.low - half), math.log(p.high + half)))
    elif p.scale == "logit":
        low, high = (math.log(x / (1 - x)) for x in (p.low, p.high))
        value = 1 / (1 + math.exp(-rng.uniform(low, high)))
    elif p.step is not None or isinstance(p, Int):
        value = p.low + (p.step or 1) * rng.randrange(_steps(p) + 1)
    else:
        value = rng.uniform(p.low, p.high)
    if p.step is not None or isinstance(p, Int):
        step = p.step or 1
        value = p.low + step * min(_steps(p), max(0, round((value - p.low) / step)))
    return round(value) if isinstance(p, Int) else min(max(value, p.low), p.high)


def _steps(p: Float | Int) -> int:
    return math.floor((p.high - p.low) / (p.step or 1) + 1e-9)


def active(parameter: Parameter, point: Mapping[str, Any]) -> bool:
    """Whether a parameter is active at a point that has what it depends on."""
    for name, values in (parameter.when or {}).items():
        if name not in point:
            return False
        listed = values if isinstance(values, Sequence) and not isinstance(values, str) else [values]
        wanted = {key(text) for text in texts(list(listed))}
        if key(texts([point[name]])[0]) not in wanted:
            return False
    return True


def in_order(space: Mapping[str, Parameter]) -> Iterator[str]:
    """Yield the names so that each comes after those that it depends on."""
    done: set[str] = set()
    left = list(space)
    while left:
        ready = [
            n for n in left if all(parent in done or parent not in space for parent in space[n].when or {})
        ]
        if not ready:
            raise SpaceError(f"when: the parameters {', '.join(left)} depend on each other")
        yield from ready
        done.update(ready)
        left = [n for n in left if n not in done]


def complete(
    space: Mapping[str, Parameter],
    point: Mapping[str, Any],
    rng: random.Random,
    preferred: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a point with preferred or random values for the active parameters that have none."""
    whole, preferred = dict(point), preferred or {}
    for name in in_order(space):
        if name not in whole and not isinstance(space[name], Fidelity) and active(space[name], whole):
            whole[name] = preferred[name] if name in preferred else draw(space[name], rng)
    return whole
