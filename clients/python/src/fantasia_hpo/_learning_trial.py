"""The trial of a study whose space is what its trials declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._declarations import merged, name_problem
from ._draw import draw, seeded
from .errors import DeclarationError, SpaceError
from .parameters import Categorical, Fixed, Float, Int, Parameter, key, texts
from .record import FrozenTrial
from .trial import Owner, Trial


class LearningTrial(Trial):
    """A trial that declares parameters with its `suggest_…`; `params` are those that it has asked for."""

    _changes = (*Trial._changes, "declared")

    def __init__(
        self,
        study: Owner,
        record: FrozenTrial,
        client_id: str,
        suggested: Mapping[str, Any],
        wished: Mapping[str, Any],
    ):
        super().__init__(study, record, client_id)
        self.params = {}
        self.declared: dict[str, Parameter] = {}
        self._suggested_point = dict(suggested)  # as the study's JSON has it
        self._wished = dict(wished)  # values of `enqueue_trial`

    def _suggest(self, name: str, kinds: tuple[type[Any], ...], **given: Any) -> Any:
        """Declare a parameter of the first kind, and return its value.

        Without a range or choices, it must have been declared before.
        """
        parameter = _declaration(name, kinds[0], given)
        return self._again(name) if parameter is None else self._declare(name, parameter)

    def point(self) -> dict[str, Any]:
        """Return the values that were asked for, as the study's JSON has them."""
        return {name: p.encode(self.params[name]) for name, p in self.declared.items()}

    def _again(self, name: str) -> Any:
        if name in self.params:
            return self.params[name]
        if name not in self.study.parameters:
            raise DeclarationError(f"parameter {name!r}: expected its range or its choices, got none")
        return self._declare(name, self.study.parameters[name])

    def _declare(self, name: str, parameter: Parameter) -> Any:
        if problem := name_problem(name):
            raise DeclarationError(f"parameter {name!r}: {problem}")
        with self._lock:
            if name in self.declared:
                if self.declared[name] != parameter:
                    raise DeclarationError(
                        f"parameter {name!r} is declared twice in trial {self.number}, as "
                        f"{self.declared[name]!r} and as {parameter!r}"
                    )
                return self.params[name]
            if name in self.study.parameters:
                merged(name, self.study.parameters[name], parameter)  # raises if they are of two kinds
            self.declared[name] = parameter
            self.params[name] = self._value(name, parameter)
            return self.params[name]

    def _value(self, name: str, parameter: Parameter) -> Any:
        """Return the wished or suggested value if it is in the declared range, or a random one."""
        if name in self._wished:
            return parameter.decode(parameter.encode(self._wished[name]))
        if name in self._suggested_point:
            raw = self._suggested_point[name]
            if isinstance(parameter, Categorical):
                known = [key(text) for text in texts(parameter.values)]
                if key(raw) in known:
                    return parameter.values[known.index(key(raw))]
            elif not isinstance(parameter, Fixed):
                try:
                    return parameter.decode(parameter.encode(raw))
                except SpaceError:
                    pass
        return draw(parameter, seeded(self.study._seed, self.number, name))


def _declaration(name: str, kind: type[Any], given: Mapping[str, Any]) -> Parameter | None:
    """Return the parameter that the arguments of `suggest_…` declare; None if they leave that out."""
    if kind is Categorical:
        if given["choices"] is None:
            return None
        values = list({key(choice): choice for choice in given["choices"]}.values())
        if not values:
            raise SpaceError(f"parameter {name!r}: expected at least one choice, got none")
        return Categorical(tuple(values)) if len(values) > 1 else Fixed(values[0])
    low, high, step = given["low"], given["high"], given["step"]
    if low is None or high is None:
        return None
    if low == high:
        return Fixed(float(low) if kind is Float else int(low))
    if kind is Float:
        return Float(low, high, "log" if given["log"] else "linear", step)
    return Int(low, high, "log" if given["log"] else "linear", None if step == 1 else step)
