"""The parameters of a search space."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

from .errors import SpaceError

Scalar: TypeAlias = "str | int | float | bool"
Scale: TypeAlias = Literal["linear", "log", "logit"]
When: TypeAlias = "Mapping[str, Any]"
Document: TypeAlias = "dict[str, Any]"

_SCALES = ("linear", "log", "logit")
_EXACT = 2**53 - 1  # beyond it, numbers of JSON are not exact
_LONGEST_TEXT = 100


@dataclass(frozen=True)
class Normal:
    """A belief about the best value of a Float or an Int.

    `sd` is in the parameter's unit; for `scale="log"` in powers of ten, for `"logit"` in logits.

    Examples:
        >>> fantasia.Float(1e-5, 1, scale="log", prior=fantasia.Normal(mean=1e-3, sd=0.5)).prior.mean
        0.001
    """

    mean: float
    sd: float


@dataclass(frozen=True)
class Float:
    """A number between `low` and `high`, both included.

    `scale` is `"linear"`, `"log"` (for a range above 0) or `"logit"` (between 0 and 1). `step` is
    the distance between neighbouring values, counted from `low`. `prior` is a belief about the best value.
    `when={"solver": ["sgd"]}` makes the parameter active only where `solver` is `"sgd"`.

    Raises:
        SpaceError: for a range, a scale or a step that is invalid.

    Examples:
        >>> space = {
        ...     "lr": fantasia.Float(1e-5, 1e-1, scale="log"),
        ...     "solver": fantasia.Categorical(["adam", "sgd"]),
        ...     "momentum": fantasia.Float(0, 0.99, when={"solver": ["sgd"]}),
        ... }
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
        """Return the parameter as a study file has it.

        Examples:
            >>> fantasia.Float(0, 1, step=0.25).document("dropout")
            {'name': 'dropout', 'type': 'float', 'min': 0.0, 'max': 1.0, 'step': 0.25}
        """
        return _numeric_document(self, name, "float")

    def decode(self, value: Any) -> float:
        """Return a value of the study's JSON as a float.

        Examples:
            >>> fantasia.Float(0, 10).decode(3)
            3.0
        """
        return float(value)

    def encode(self, value: Any) -> float:
        """Return a value for the study's JSON.

        Raises:
            SpaceError: if the parameter cannot have it.

        Examples:
            >>> fantasia.Float(0, 10).encode(3)
            3.0
        """
        number = _real("a value", value)
        if not self.low <= number <= self.high:
            raise SpaceError(f"expected a number from {self.low!r} to {self.high!r}, got {value!r}")
        return number


@dataclass(frozen=True)
class Int:
    """A whole number between `low` and `high`, both included.

    `scale`, `step`, `prior` and `when` are those of Float.

    Raises:
        SpaceError: for a range, a scale or a step that is invalid.

    Examples:
        >>> fantasia.Int(16, 512, scale="log", step=None).high
        512
    """

    low: int
    high: int
    scale: Scale = "linear"
    step: int | None = None
    prior: Normal | None = None
    when: When | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", whole("low", self.low))
        object.__setattr__(self, "high", whole("high", self.high))
        if self.step is not None:
            object.__setattr__(self, "step", whole("step", self.step))
        _check_range(self)

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it. See Float.document."""
        return _numeric_document(self, name, "int")

    def decode(self, value: Any) -> int:
        """Return a value of the study's JSON as an int. See Float.decode."""
        return int(value)

    def encode(self, value: Any) -> int:
        """Return a value for the study's JSON. See Float.encode.

        Raises:
            SpaceError: if the parameter cannot have it.
        """
        number = whole("a value", value)
        if not self.low <= number <= self.high:
            raise SpaceError(f"expected a whole number from {self.low} to {self.high}, got {value!r}")
        return number


@dataclass(frozen=True)
class Categorical:
    """One of at least two values without an order, of any type.

    A trial gets the value itself. The study keeps strings, finite numbers and booleans as they are, and
    other values, such as None or a function, by their text. So other processes can use the study
    if they declare the same values, and `load_study` returns the texts. `weights` are relative
    probabilities that each value is the best. `when` is that of Float.

    Raises:
        SpaceError: if there are fewer than two values, or two are the same.

    Examples:
        >>> fantasia.Categorical([None, "l1", "l2"], weights=[2, 1, 1]).values
        (None, 'l1', 'l2')
    """

    values: Sequence[Any]
    weights: Sequence[float] | None = None
    when: When | None = None
    _texts: list[Scalar] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_values(self)
        object.__setattr__(self, "_texts", texts(self.values))

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it. See Float.document."""
        return _discrete_document(self, name, "categorical")

    def decode(self, value: Any) -> Any:
        """Return the declared value of a value of the study's JSON. See Float.decode.

        A value that the space had before an edit is returned as it is.
        """
        place = _place(self._texts, value)
        return value if place is None else self.values[place]

    def encode(self, value: Any) -> Scalar:
        """Return a value for the study's JSON. See Float.encode.

        Raises:
            SpaceError: if the parameter cannot have it.
        """
        return _encode(self.values, self._texts, value)


@dataclass(frozen=True)
class Ordinal(Categorical):
    """One of at least two values that are in their order. See Categorical.

    Examples:
        >>> fantasia.Ordinal([16, 32, 64, 128]).values
        (16, 32, 64, 128)
    """

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it. See Float.document."""
        return _discrete_document(self, name, "ordinal")


@dataclass(frozen=True)
class Bool:
    """False or True.

    `weights` are relative probabilities that each is the best, False first. `when` is that of Float.

    Examples:
        >>> flag = fantasia.Bool(weights=[1, 3])  # True is believed to be better
    """

    weights: Sequence[float] | None = None
    when: When | None = None

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it. See Float.document."""
        document: Document = {"name": name, "type": "bool"}
        return _with_options(document, self.weights, self.when)

    def decode(self, value: Any) -> bool:
        """Return a value of the study's JSON as a bool. See Float.decode."""
        return bool(value)

    def encode(self, value: Any) -> bool:
        """Return a value for the study's JSON. See Float.encode.

        Raises:
            SpaceError: if the parameter cannot have it.
        """
        if not isinstance(_plain(value), bool):
            raise SpaceError(f"expected True or False, got {value!r}")
        return bool(value)


@dataclass(frozen=True)
class Fixed:
    """A value, of any type, that every trial gets and that is not searched.

    See Categorical for the types. `when` is that of Float.

    Examples:
        >>> fantasia.Fixed(0.5).value
        0.5
    """

    value: Any
    when: When | None = None

    def document(self, name: str) -> Document:
        """Return the parameter as a study file has it. See Float.document."""
        document: Document = {"name": name, "type": "fixed", "value": texts([self.value])[0]}
        return _with_options(document, None, self.when)

    def decode(self, value: Any) -> Any:
        """Return the declared value. See Float.decode."""
        return self.value

    def encode(self, value: Any) -> Scalar:
        """Return a value for the study's JSON. See Float.encode.

        Raises:
            SpaceError: if the parameter cannot have it.
        """
        return _encode([self.value], texts([self.value]), value)


@dataclass(frozen=True)
class Fidelity:
    """How thoroughly a trial is evaluated, such as a number of epochs.

    Its levels are `low`, `low * reduction`, `low * reduction**2` and so on; the last is `high`. A
    trial starts at the lowest. One in `reduction` goes on to the next level, in a new trial that
    has the same other values and the checkpoint. A study has at most one.

    Raises:
        SpaceError: if `high` is less than `reduction` times `low`, or a number is too small.

    Examples:
        >>> epochs = fantasia.Fidelity(1, 81)
        >>> epochs.levels
        (1, 3, 9, 27, 81)
        >>> epochs.when is None
        True
    """

    low: int
    high: int
    reduction: int = 3

    def __post_init__(self) -> None:
        for name in ("low", "high", "reduction"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
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
        """Return the parameter as a study file has it. See Float.document."""
        return {
            "name": name,
            "type": "fidelity",
            "min": self.low,
            "max": self.high,
            "reduction": self.reduction,
        }

    def decode(self, value: Any) -> int:
        """Return a value of the study's JSON as an int. See Float.decode."""
        return int(value)

    def encode(self, value: Any) -> int:
        """Return a value for the study's JSON. See Float.encode.

        Raises:
            SpaceError: if it is none of the levels.
        """
        number = whole("a value", value)
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


def space_of(
    documents: Sequence[Mapping[str, Any]], declared: Mapping[str, Parameter] | None = None
) -> dict[str, Parameter]:
    """Return the parameters of a study file: those of `declared` it has have the values themselves."""
    space = {p["name"]: parameter_of(p) for p in documents}
    for name, parameter in (declared or {}).items():
        if name in space and space[name].document(name) == parameter_of(parameter.document(name)).document(
            name
        ):
            space[name] = parameter
    return space


def decode_point(space: Mapping[str, Parameter], point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point of the study's JSON with Python's types, in the order of the space."""
    return {name: parameter.decode(point[name]) for name, parameter in space.items() if name in point}


def encode_point(space: Mapping[str, Parameter], point: Mapping[str, Any]) -> dict[str, Any]:
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


def texts(values: Sequence[Any]) -> list[Scalar]:
    """Return what a study has for each value: a scalar as it is, another value as a text that only it has."""
    found: list[Scalar] = []
    taken: set[str] = set()
    for value in values:
        text = _text(value)
        if _written(text) in taken:  # as for 1 and 1.0, which are the same in a command
            text = label = repr(text) if isinstance(text, float) else str(text)
            number = 1
            while text in taken:
                number += 1
                text = f"{label} ({number})"
        taken.add(_written(text))
        found.append(text)
    return found


def _text(value: Any) -> Scalar:
    """Return a scalar that JSON and the server keep exactly, or the value's text without its address."""
    plain = _plain(value)
    if isinstance(plain, str | bool) or (isinstance(plain, int) and abs(plain) <= _EXACT):
        return plain
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    return " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)).split())[:_LONGEST_TEXT]


def _written(value: Scalar) -> str:
    """Return a scalar as a command has it, which is how the server compares values."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return str(int(value))
    return str(value)


def key(value: Any) -> object:
    """Return what only the same values have in common: 1, 1.0 and True are three values, nan is one."""
    plain = _plain(value)
    if isinstance(plain, float) and math.isnan(plain):
        return (float, "nan")
    try:
        hash(plain)
    except TypeError:
        return (type(value), id(value))
    return (type(plain), plain)


def _real(field: str, value: Any) -> float:
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, Real) or not math.isfinite(plain):
        raise SpaceError(f"{field}: expected a finite number, got {value!r}")
    return float(plain)


def whole(field: str, value: Any) -> int:
    """Return a whole number, as which a float is accepted, too; raise SpaceError with the field's name."""
    plain = _plain(value)
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    if isinstance(plain, bool) or not isinstance(plain, Integral):
        raise SpaceError(f"{field}: expected a whole number, got {value!r}")
    return int(plain)


def _encode(values: Sequence[Any], texts: Sequence[Scalar], value: Any) -> Scalar:
    """Return the text of the declared value that is, or equals, a value, or has its text."""
    keys, wanted = [key(v) for v in values], key(value)
    place = keys.index(wanted) if wanted in keys else _place(values, value)
    if place is None and not isinstance(_plain(value), str | int | float):
        place = _place(texts, _text(value))  # a copy of an object
    if place is None:
        raise SpaceError(f"expected one of {', '.join(map(repr, values))}, got {value!r}")
    return texts[place]


def _place(values: Sequence[Any], value: Any) -> int | None:
    """Return where the first value is that equals value; True is not 1."""
    plain = _plain(value)
    for place, declared in enumerate(values):
        try:
            equal = bool(_plain(declared) == plain)
        except (TypeError, ValueError):  # as for arrays, which are compared by element
            continue
        if equal and isinstance(_plain(declared), bool) == isinstance(plain, bool):
            return place
    return None


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
    values = tuple(p.values)
    if len(values) < 2:
        raise SpaceError(f"values: expected at least two, got {list(values)!r}")
    keys = set()
    for value in values:
        if key(value) in keys:
            raise SpaceError(f"values: expected different values, got {value!r} twice")
        keys.add(key(value))
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
    document: Document = {"name": name, "type": kind, "values": list(p._texts)}
    return _with_options(document, p.weights, p.when)


def _with_options(document: Document, weights: Sequence[float] | None, when: When | None) -> Document:
    if weights is not None:
        document["prior"] = {"weights": list(weights)}
    if when:
        document["when"] = {
            name: [_text(values)]
            if isinstance(values, str) or not isinstance(values, Sequence)
            else [_text(v) for v in values]
            for name, values in when.items()
        }
    return document
