"""The parameters of a search space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

from .errors import SpaceError

Scalar: TypeAlias = "str | int | float | bool"
Scale: TypeAlias = Literal["linear", "log", "logit"]
When: TypeAlias = "Mapping[str, Scalar | Sequence[Scalar]]"
Document: TypeAlias = "dict[str, Any]"

_SCALES = ("linear", "log", "logit")


@dataclass(frozen=True)
class Normal:
    """A belief about the best value of a Float or an Int.

    `sd` is in the parameter's unit; for `scale="log"` in powers of ten, for `"logit"` in logits.
    """

    mean: float
    sd: float


@dataclass(frozen=True)
class Float:
    """A number between `low` and `high`, both included.

    `scale` is `"linear"`, `"log"` (for a range above 0) or `"logit"` (between 0 and 1). `step` is
    the distance between neighbouring values, counted from `low`. `when={"solver": ["sgd"]}`
    makes the parameter active only where `solver` is `"sgd"`.
    """

    low: float
    high: float
    scale: Scale = "linear"
    step: float | None = None
    prior: Normal | None = None
    when: When | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _real("low", self.low))
        object.__setattr__(self, "high", _real("high", self.high))
        if self.step is not None:
            object.__setattr__(self, "step", _real("step", self.step))
        _check_range(self)

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it."""
        return _numeric_document(self, name, "float")

    def decode(self, value: Any) -> float:
        """Return a value of the study's JSON as a float."""
        return float(value)

    def encode(self, value: Any) -> float:
        """Return a value for the study's JSON; raise SpaceError if the parameter cannot have it."""
        number = _real("a value", value)
        if not self.low <= number <= self.high:
            raise SpaceError(f"expected a number from {self.low!r} to {self.high!r}, got {value!r}")
        return number


@dataclass(frozen=True)
class Int:
    """A whole number between `low` and `high`, both included. Its options are those of Float."""

    low: int
    high: int
    scale: Scale = "linear"
    step: int | None = None
    prior: Normal | None = None
    when: When | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _whole("low", self.low))
        object.__setattr__(self, "high", _whole("high", self.high))
        if self.step is not None:
            object.__setattr__(self, "step", _whole("step", self.step))
        _check_range(self)

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it."""
        return _numeric_document(self, name, "int")

    def decode(self, value: Any) -> int:
        """Return a value of the study's JSON as an int."""
        return int(value)

    def encode(self, value: Any) -> int:
        """Return a value for the study's JSON; raise SpaceError if the parameter cannot have it."""
        number = _whole("a value", value)
        if not self.low <= number <= self.high:
            raise SpaceError(f"expected a whole number from {self.low} to {self.high}, got {value!r}")
        return number


@dataclass(frozen=True)
class Categorical:
    """One of at least two strings, numbers or booleans without an order.

    `weights` are relative probabilities that each value is the best.
    """

    values: Sequence[Scalar]
    weights: Sequence[float] | None = None
    when: When | None = None

    def __post_init__(self) -> None:
        _check_values(self)

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it."""
        return _discrete_document(self, name, "categorical")

    def decode(self, value: Any) -> Scalar:
        """Return the declared value that equals a value of the study's JSON.

        A value that the space had before an edit is returned as it is.
        """
        try:
            return _find(self.values, value)
        except SpaceError:
            return value  # type: ignore[no-any-return]

    def encode(self, value: Any) -> Scalar:
        """Return a value for the study's JSON; raise SpaceError if the parameter cannot have it."""
        return _find(self.values, value)


@dataclass(frozen=True)
class Ordinal(Categorical):
    """One of at least two strings, numbers or booleans that are in their order."""

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it."""
        return _discrete_document(self, name, "ordinal")


@dataclass(frozen=True)
class Bool:
    """False or True. `weights` are relative probabilities that each is the best, False first."""

    weights: Sequence[float] | None = None
    when: When | None = None

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it."""
        document: Document = {"name": name, "type": "bool"}
        return _with_options(document, self.weights, self.when)

    def decode(self, value: Any) -> bool:
        """Return a value of the study's JSON as a bool."""
        return bool(value)

    def encode(self, value: Any) -> bool:
        """Return a value for the study's JSON; raise SpaceError if the parameter cannot have it."""
        if not isinstance(_plain(value), bool):
            raise SpaceError(f"expected True or False, got {value!r}")
        return bool(value)


@dataclass(frozen=True)
class Fixed:
    """A value that every trial gets and that is not searched."""

    value: Scalar
    when: When | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _scalar(self.value))

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it."""
        document: Document = {"name": name, "type": "fixed", "value": self.value}
        return _with_options(document, None, self.when)

    def decode(self, value: Any) -> Scalar:
        """Return the declared value."""
        return self.value

    def encode(self, value: Any) -> Scalar:
        """Return a value for the study's JSON; raise SpaceError if the parameter cannot have it."""
        return _find([self.value], value)


@dataclass(frozen=True)
class Fidelity:
    """How thoroughly a trial is evaluated, such as a number of epochs.

    Its levels are `low`, `low * reduction`, `low * reduction**2` and so on; the last is `high`. A
    trial starts at the lowest. One in `reduction` goes on to the next level, in a new trial that
    has the same other values and the checkpoint. A study has at most one.
    """

    low: int
    high: int
    reduction: int = 3

    def __post_init__(self) -> None:
        for name in ("low", "high", "reduction"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        if self.low < 1:
            raise SpaceError(f"low: expected a whole number of at least 1, got {self.low}")
        if self.reduction < 2:
            raise SpaceError(f"reduction: expected a whole number of at least 2, got {self.reduction}")
        if self.high < self.low * self.reduction:
            wanted = f"at least {self.reduction} times low, {self.low * self.reduction}"
            raise SpaceError(f"high: expected a whole number of {wanted}, got {self.high}")

    @property
    def levels(self) -> tuple[int, ...]:
        """The values, in their order."""
        levels, level = [], self.low
        while level * self.reduction <= self.high:
            levels.append(level)
            level *= self.reduction
        return (*levels, self.high)

    @property
    def when(self) -> None:
        """None: a fidelity is always active."""

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it."""
        return {
            "name": name,
            "type": "fidelity",
            "min": self.low,
            "max": self.high,
            "reduction": self.reduction,
        }

    def decode(self, value: Any) -> int:
        """Return a value of the study's JSON as an int."""
        return int(value)

    def encode(self, value: Any) -> int:
        """Return a value for the study's JSON; raise SpaceError if it is none of the levels."""
        number = _whole("a value", value)
        if number not in self.levels:
            raise SpaceError(f"expected one of {', '.join(map(str, self.levels))}, got {value!r}")
        return number


Parameter: TypeAlias = "Float | Int | Categorical | Ordinal | Bool | Fixed | Fidelity"


def parameter_of(document: Mapping[str, Any]) -> Parameter:
    """Return the parameter that an entry of a study file describes."""
    kind, when = document["type"], document.get("when")
    prior = document.get("prior") or {}
    weights = prior.get("weights")
    normal = Normal(prior["mean"], prior["sd"]) if "mean" in prior and "sd" in prior else None
    if kind == "float":
        low, high = float(document["min"]), float(document["max"])
        return Float(low, high, document.get("scale", "linear"), document.get("step"), normal, when)
    if kind == "int":
        step = document.get("step")
        low, high = int(document["min"]), int(document["max"])
        return Int(
            low, high, document.get("scale", "linear"), None if step is None else int(step), normal, when
        )
    if kind == "categorical":
        return Categorical(tuple(document["values"]), weights, when)
    if kind == "ordinal":
        return Ordinal(tuple(document["values"]), weights, when)
    if kind == "bool":
        return Bool(weights, when)
    if kind == "fixed":
        return Fixed(document["value"], when)
    if kind == "fidelity":
        return Fidelity(int(document["min"]), int(document["max"]), int(document.get("reduction", 3)))
    raise SpaceError(
        f"parameter {document.get('name')!r} has the type {kind!r}, which this version does not know"
    )


def decode_point(space: Mapping[str, Parameter], point: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return a point of the study's JSON with Python's types, in the order of the space."""
    return {name: parameter.decode(point[name]) for name, parameter in space.items() if name in point}


def encode_point(space: Mapping[str, Parameter], point: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return a point for the study's JSON; raise SpaceError for a name or value that is not in the space."""
    encoded = {}
    for name, value in point.items():
        if name not in space:
            raise SpaceError(f"parameter {name!r} is not declared; declared are {', '.join(space)}")
        try:
            encoded[name] = space[name].encode(value)
        except SpaceError as e:
            raise SpaceError(f"parameter {name!r}: {e}") from None
    return encoded


def fits(space: Mapping[str, Parameter], point: Mapping[str, Any]) -> bool:
    """Return whether the values of a point, as far as the space has them, are in it."""
    try:
        for name, parameter in space.items():
            if name in point:
                parameter.encode(point[name])
    except SpaceError:
        return False
    return True


def _plain(value: Any) -> Any:
    """Return NumPy's scalars as Python's."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def _scalar(value: Any) -> Scalar:
    plain = _plain(value)
    if isinstance(plain, str | bool | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise SpaceError(f"expected a string, a finite number or a boolean, got {value!r}")


def _real(field: str, value: Any) -> float:
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, Real) or not math.isfinite(plain):
        raise SpaceError(f"{field}: expected a finite number, got {value!r}")
    return float(plain)


def _whole(field: str, value: Any) -> int:
    plain = _plain(value)
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    if isinstance(plain, bool) or not isinstance(plain, Integral):
        raise SpaceError(f"{field}: expected a whole number, got {value!r}")
    return int(plain)


def _find(values: Sequence[Scalar], value: Any) -> Scalar:
    """Return the declared value that equals value; True is not 1."""
    plain = _plain(value)
    for declared in values:
        if declared == plain and isinstance(declared, bool) == isinstance(plain, bool):
            return declared
    raise SpaceError(f"expected one of {', '.join(map(repr, values))}, got {value!r}")


def _check_range(p: Float | Int) -> None:
    if p.scale not in _SCALES:
        raise SpaceError(f"scale: expected one of {', '.join(map(repr, _SCALES))}, got {p.scale!r}")
    if not p.low < p.high:
        raise SpaceError(f"high: expected a number above low, {p.low!r}, got {p.high!r}")
    if p.scale == "log" and p.low <= 0:
        raise SpaceError(f"low: expected a number above 0 for scale='log', got {p.low!r}")
    if p.step is not None and p.step <= 0:
        raise SpaceError(f"step: expected a number above 0, got {p.step!r}")


def _check_values(p: Categorical) -> None:
    if isinstance(p.values, str):
        raise SpaceError(f"values: expected a list of values, got the string {p.values!r}")
    values = tuple(_scalar(v) for v in p.values)
    if len(values) < 2:
        raise SpaceError(f"values: expected at least two, got {list(values)!r}")
    object.__setattr__(p, "values", values)


def _numeric_document(p: Float | Int, name: str, kind: str) -> Document:
    document: Document = {"name": name, "type": kind, "min": p.low, "max": p.high}
    if p.scale != "linear":
        document["scale"] = p.scale
    if p.step is not None:
        document["step"] = p.step
    if p.prior is not None:
        document["prior"] = {"mean": p.prior.mean, "sd": p.prior.sd}
    return _with_options(document, None, p.when)


def _discrete_document(p: Categorical, name: str, kind: str) -> Document:
    document: Document = {"name": name, "type": kind, "values": list(p.values)}
    return _with_options(document, p.weights, p.when)


def _with_options(document: Document, weights: Sequence[float] | None, when: When | None) -> Document:
    if weights is not None:
        document["prior"] = {"weights": list(weights)}
    if when:
        document["when"] = {
            name: [_scalar(values)]
            if isinstance(values, str) or not isinstance(values, Sequence)
            else [_scalar(v) for v in values]
            for name, values in when.items()
        }
    return document
