"""Constraints of Optuna's trials, which are limits of a study."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import optuna

from ._limits import Limit, known_of
from ._values import plain_name
from .errors import FantasiaError, PreconditionError
from .record import FrozenTrial
from .study import Study

log = logging.getLogger("fantasia_hpo")

_TRIES = 30  # how often limits are set again because another process has changed the study
_KEY = "constraints"  # the system attribute of Optuna; since Optuna 5 each has one of its own


def constraint_metric(name: str) -> str:
    """Return the metric of Fantasia for a constraint of Optuna, which `fantasia import optuna` makes too.

    It is at most 0 where the constraint is met. Those of a `constraints_func` are numbered from 0.
    """
    whole = f"{_KEY}_{name}"
    valid = name != "" and len(whole.encode()) <= 64 and not re.search(r"[\x00-\x20\x7f]", name)
    return whole if valid else f"{_KEY}_{plain_name(name)}"


def constraints_in(attrs: Mapping[str, Any]) -> dict[str, float]:
    """Return the constraints in a trial's system attributes, by their metrics."""
    found = {str(i): value for i, value in enumerate(attrs.get(_KEY) or ())}
    prefix = f"{_KEY}:"
    found |= {name.removeprefix(prefix): v for name, v in attrs.items() if name.startswith(prefix)}
    # Minus infinity meets a constraint, but a metric that is not finite is outside of every limit.
    return {constraint_metric(name): max(float(v), -sys.float_info.max) for name, v in found.items()}


def constraints_of(study: Study, trial: FrozenTrial, limits: Sequence[Limit]) -> dict[str, Any]:
    """Return the system attributes of a trial whose constraints are met as the limits are."""
    known = known_of(study.objectives, trial.values, trial.metrics)
    values: dict[str, float] = {}
    for limit in limits:
        own = limit.metric.startswith(f"{_KEY}_") and limit.max == 0
        excess = limit.excess(known.get(limit.metric))
        name = limit.metric.removeprefix(f"{_KEY}_") if own else str(limit)
        values[name] = math.inf if math.isnan(excess) else excess  # Optuna takes no NaN
    if not hasattr(optuna.trial.FrozenTrial, "set_constraint"):  # before Optuna 5
        return {_KEY: list(values.values())}
    return {f"{_KEY}:{name}": value for name, value in values.items()}


def bound(study: Study, metrics: Sequence[str]) -> None:
    """Have a study limit the metrics of constraints. Processes may do so at once."""
    for _ in range(_TRIES):
        message = study._get()
        missing = [m for m in metrics if m not in {limit.metric for limit in study._limits}]
        if not missing:
            return
        document = json.loads(message["studyFile"])
        listed = document["spec"].get("limits") or []
        document["spec"]["limits"] = [*listed, *({"metric": m, "max": 0} for m in missing)]
        request = {
            "name": study._id,
            "studyFile": json.dumps(document),
            "spaceVersion": int(message.get("spaceVersion", 1)),
        }
        try:
            study._write("UpdateStudy", request)
        except PreconditionError as e:
            log.debug("the space has changed meanwhile: %s", e)
    raise FantasiaError(f"other processes changed the study {study.name!r} in each of {_TRIES} tries")


def with_constraints(
    study: Study, values: Sequence[float], constraints: Mapping[str, float]
) -> dict[str, float]:
    """Return the metrics of a trial. A constraint that it has not set is not known."""
    unknown = {limit.metric: math.nan for limit in study._limits}
    return {**unknown, **constraints, **dict(zip(study.objectives, values, strict=True))}
