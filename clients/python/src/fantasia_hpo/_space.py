"""A space as a user declares it."""

from __future__ import annotations

import dataclasses

from .parameters import Parameter


class Space(dict[str, Parameter]):
    """The parameters of a study, by name. Printed, it is what `create_study(parameters=…)` takes."""

    def __repr__(self) -> str:
        lines = "".join(f"    {name!r}: {source(parameter)},\n" for name, parameter in self.items())
        return f"{{\n{lines}}}"


def source(parameter: Parameter) -> str:
    """Return the call that makes a parameter, with what differs from the defaults."""
    words = []
    for field in dataclasses.fields(parameter):
        value = getattr(parameter, field.name)
        if not field.init or (field.default is not dataclasses.MISSING and value == field.default):
            continue
        shown = list(value) if isinstance(value, tuple) else value
        shown = "fantasia." + repr(value) if field.name == "prior" else repr(shown)
        words.append(shown if field.default is dataclasses.MISSING else f"{field.name}={shown}")
    return f"fantasia.{type(parameter).__name__}({', '.join(words)})"
