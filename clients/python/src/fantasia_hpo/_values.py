"""Values of metrics, and texts, as requests have them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import SpaceError

Value = float | Sequence[float] | Mapping[str, float]  # of each objective in order, or by metric

REASON_BYTES, MESSAGE_BYTES = 256, 4096  # the API's limits
_METRICS, _METRIC_BYTES = 1000, 256


def metrics_of(objectives: Sequence[str], value: Any) -> dict[str, float]:
    """Return what a function returned or reported, by metric: a mapping has its own names."""
    if not isinstance(value, Mapping):
        listed = list(value) if isinstance(value, list | tuple) else [value]
        if len(listed) != len(objectives):
            wanted = f"{len(objectives)} values ({', '.join(objectives)})" if objectives[1:] else "a number"
            raise SpaceError(f"expected {wanted} or a mapping of metrics, got {value!r}")
        value = dict(zip(objectives, listed, strict=True))
    if len(value) > _METRICS:
        raise SpaceError(f"expected at most {_METRICS} metrics, got {len(value)}")
    metrics = {}
    for name, given in value.items():
        if not isinstance(name, str) or not 1 <= len(to_bytes(name)) <= _METRIC_BYTES:
            raise SpaceError(f"expected a metric's name of 1 to {_METRIC_BYTES} bytes, got {name!r}")
        try:
            if isinstance(given, str | bytes):
                raise TypeError
            metrics[name] = float(given)
        except Exception:  # each library has its own for an array of several numbers
            raise SpaceError(
                f"metric {name!r}: expected a number, got {given!r} of type {type(given).__name__}"
            ) from None
    return metrics


def number(value: float) -> float | str:
    """Return a float as protobuf's JSON has it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def seconds(duration: str) -> float:
    """Return how many seconds a duration of protobuf's JSON is."""
    return float(duration.removesuffix("s"))


def cut(text: str, most: int) -> str:
    """Return the text with at most that many bytes."""
    return to_bytes(text)[:most].decode(errors="ignore")


def plain_name(text: str) -> str:
    """Return a name that is made of a text's letters and digits, and of a checksum."""
    return f"{re.sub(r'[^A-Za-z0-9]', '_', text)[:40]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def to_bytes(text: str) -> bytes:
    """Return UTF-8; a name of a file that is not has a replacement."""
    return text.encode(errors="replace")


def check_attribute(key: Any, value: Any) -> None:
    """Raise SpaceError if a user attribute has no name, or is not a value of JSON."""
    if not isinstance(key, str) or not key:
        raise SpaceError(f"key: expected a text, got {key!r}")
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise SpaceError(f"user attribute {key!r}: expected a value of JSON, got {value!r}: {e}") from None
