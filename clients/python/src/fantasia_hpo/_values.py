"""Values of metrics, and texts, as requests have them."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import hashlib
import json
import math
import os
import re
from collections import deque
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


def attribute(key: Any, value: Any) -> Any:
    """Return a user attribute as a value of JSON; raise SpaceError if it has no name, or no plain form."""
    if not isinstance(key, str) or not key:
        raise SpaceError(f"key: expected a text, got {key!r}")
    try:
        return _plain(value)
    except _NotPlainError as e:
        raise SpaceError(
            f"user attribute {key!r}: expected a number, a text, a date, a path or a collection of these, "
            f"got {e}"
        ) from None


class _NotPlainError(TypeError):
    """A value has no plain form; the text says of which type it is."""


def _plain(value: Any) -> Any:
    """Return a value of JSON for one of Python, NumPy, pandas or PyTorch."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | decimal.Decimal | fractions.Fraction):
        return number(float(value))
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=lambda inner: (str(type(inner)), str(inner)))
    if isinstance(value, list | tuple | range | deque):
        return [_plain(inner) for inner in value]
    return _plain_of_library(value)


def _plain_of_library(value: Any) -> Any:
    """Return the numbers of an array, a series, a tensor or a scalar, each of which knows Python's."""
    for method in ("tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            found = convert()
            if type(found) is not type(value):
                return _plain(found)
    raise _NotPlainError(f"a {type(value).__module__}.{type(value).__qualname__}")


def _key(key: Any) -> str:
    plain = _plain(key)
    if isinstance(plain, list | dict):
        raise _NotPlainError(f"a {type(key).__name__} as a key")
    return plain if isinstance(plain, str) else json.dumps(plain)


def duration_of(value: datetime.timedelta) -> str:
    """Return a duration as study files have it.

    Raises:
        SpaceError: for anything but a timedelta, such as a number.
    """
    if not isinstance(value, datetime.timedelta):
        raise SpaceError(
            f"max_duration: expected a timedelta, such as datetime.timedelta(hours=2), got {value!r}"
        )
    return f"{value.total_seconds():f}s"
