"""What create_study is given for a study that exists already, and that has no effect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Seconds of the units in which a study's durations are written.
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def unheeded(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the options of create_study in which the spec of a new study differs from the existing one's.

    Options that were not given are left out, as far as one can tell: an algorithm that is the default and has
    no settings may not have been given. The seed is none of them, since only its first use counts.
    """
    was, budget = old.get("budget", {}), new["budget"]
    given = {
        "max_trials": _same(was, budget, "maxTrials"),
        "max_failed_trials": _same(was, budget, "maxFailedTrials"),
        "max_duration": "maxDuration" not in budget
        or _seconds(was.get("maxDuration", "0s")) == _seconds(budget["maxDuration"]),
        "max_cost": _same(was, budget, "maxCost"),
        "stop_gain": "stopWhen" not in budget or _stop(was.get("stopWhen")) == _stop(budget["stopWhen"]),
        "cost": _same(old, new, "cost"),
        "early_stopping": _within(new.get("earlyStopping"), old.get("earlyStopping")),
        "algorithm": _algorithm(new["algorithm"]) in ({"name": "hebo"}, _algorithm(old["algorithm"])),
        "constraints": _same(old, new, "constraints"),
        "learn_from": {e["study"] for e in new.get("learnFrom", [])}
        <= {e["study"] for e in old.get("learnFrom", [])},
    }
    return [option for option, same in given.items() if not same]


def _same(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> bool:
    return key not in new or old.get(key) == new[key]


def _within(new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> bool:
    """Return whether all that is given of a rule is so in the study."""
    if new is None:
        return True
    had = {} if old is None else old
    settings = had.get("settings", {})
    return (
        had.get("name") == new["name"]
        and new.get("metric") in (None, had.get("metric"))
        and all(settings.get(k) == v for k, v in new["settings"].items())
    )


def _algorithm(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {k: spec[k] for k in ("name", "settings") if spec.get(k)}


def _stop(rule: Mapping[str, Any] | None) -> tuple[float, str] | None:
    return None if rule is None else (rule["gain"], rule.get("per") or "trials")


def _seconds(duration: str) -> float:
    """Return how many seconds a duration of a study file is, such as 1h30m."""
    parts = re.findall(r"([0-9.]+)(h|ms|m|us|µs|ns|s)", duration)
    return sum(float(n) * _UNITS[unit] for n, unit in parts)
