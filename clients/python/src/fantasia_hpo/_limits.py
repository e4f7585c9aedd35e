"""Limits on metrics: what a trial may cost or use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .errors import SpaceError


@dataclass(frozen=True)
class Limit:
    """A bound of `create_study(limits=…)` on a metric, such as `Limit("memory_mb", max=512)`.

    Exactly one of `max` and `min` is given. The bound itself is within the limit. `early` says that the
    metric is known before a trial ends and then stays the same, such as a model's size. Trials that are
    stopped early or fail then count in the model of this limit, too.

    Examples:
        >>> limit = fantasia.Limit("memory_mb", max=512)
        >>> str(limit)
        'memory_mb <= 512'
    """

    metric: str
    max: float | None = None
    min: float | None = None
    early: bool = False

    def excess(self, value: float | None) -> float:
        """Return by how much a value is outside of the limit, 0 or less within it.

        NaN is for a value that is not known or not finite, which counts as one outside.

        Examples:
            >>> fantasia.Limit("memory_mb", max=512).excess(600)
            88
        """
        if value is None or not math.isfinite(value):
            return math.nan
        if self.max is not None:
            return value - self.max
        return math.nan if self.min is None else self.min - value

    def __str__(self) -> str:
        """Return it as people write it, such as "memory_mb <= 512"."""
        sign, bound = (">=", self.min) if self.max is None else ("<=", self.max)
        return f"{self.metric} {sign} {str(bound).removesuffix('.0')}"


def limits_of(given: Sequence[Limit | Mapping[str, Any]]) -> list[Limit]:
    """Return limits that are given as Limit, or as a study file has them."""
    if isinstance(given, str | bytes | Mapping | Limit):
        raise SpaceError(f"limits: expected a list of limits, got {given!r}")
    return [_limit_of(one, f"limits[{i}]") for i, one in enumerate(given)]


def _limit_of(given: Any, field: str) -> Limit:
    try:
        limit = given if isinstance(given, Limit) else Limit(**given)
    except TypeError:
        raise SpaceError(
            f"{field}: expected a Limit, or a mapping with metric and one of max and min, got {given!r}"
        ) from None
    bounds = [bound for bound in (limit.max, limit.min) if bound is not None]
    if len(bounds) != 1:
        raise SpaceError(
            f"{field}: expected one of max and min, got {given!r}; for both, list two limits of the metric"
        )
    if isinstance(bounds[0], str | bytes) or not math.isfinite(bounds[0]):
        raise SpaceError(f"{field}: expected a finite bound, got {bounds[0]!r}")
    return limit


def documents(limits: Iterable[Limit]) -> list[dict[str, Any]]:
    """Return limits as a study file has them."""
    return [{k: v for k, v in asdict(limit).items() if v is not None and v is not False} for limit in limits]


def limits_in(spec: Mapping[str, Any]) -> list[Limit]:
    """Return the limits of a study file."""
    return limits_of(spec.get("limits") or [])


def known_of(
    objectives: Iterable[str], values: Sequence[float] | None, metrics: Mapping[str, float]
) -> dict[str, float]:
    """Return the metrics of a trial by name, with the values of its objectives."""
    return {**metrics, **dict(zip(objectives, values or (), strict=False))}


def exceeded(limits: Iterable[Limit], known: Mapping[str, float]) -> list[str]:
    """Return the limits that a completed trial with these metrics is outside of, as text."""
    return [str(limit) for limit in limits if not limit.excess(known.get(limit.metric)) <= 0]
