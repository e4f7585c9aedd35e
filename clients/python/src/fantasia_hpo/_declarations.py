"""What the declarations of trials say about a space: its parameters, and where each is active."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import DeclarationError
from .parameters import Bool, Categorical, Fidelity, Fixed, Float, Int, Parameter, key

PLACEHOLDER = "undeclared"  # the parameter of a study whose first trial has not ended yet

_LONGEST_NAME = 64  # bytes
_RESERVED = ("args", "overrides", "file")  # ${args} and the like in commands

_MOST_VALUES = 32  # a parameter with more values decides about no other one
Value = Any  # a value as a study's JSON has it


@dataclass(frozen=True)
class Evidence:
    """The point of a trial. If it is whole, the parameters that it lacks were not asked for."""

    point: Mapping[str, Value]
    whole: bool


def name_problem(name: str) -> str:
    """Return why no parameter can have a name, by the server's rule; "" if one can."""
    if not name or not (name[0] == "_" or name[0].isalnum()):
        return "expected a name that starts with a letter, a digit or _"
    if not name.isprintable() or set("={}$`") & set(name) or name.endswith(" "):
        return "expected printable characters other than = { } $ `, and no space at the end"
    if len(name.encode(errors="replace")) > _LONGEST_NAME:
        return f"expected at most {_LONGEST_NAME} bytes, got {len(name.encode(errors='replace'))}"
    return "expected another name: this word has a meaning in commands" if name in _RESERVED else ""


def merged(name: str, known: Parameter, declared: Parameter) -> Parameter:
    """Return a parameter with the values of both; raise DeclarationError if they are of two kinds."""
    known, declared = _like(known, declared), _like(declared, known)
    if isinstance(known, Fixed) and isinstance(declared, Fixed):
        if key(known.value) == key(declared.value):
            return known
        known = declared = Categorical([known.value, declared.value])
    if isinstance(known, Categorical) and isinstance(declared, Categorical):
        values = {key(value): value for value in (*known.values, *declared.values)}
        if len(values) == len(known.values):
            return known
        return Categorical(tuple(values.values()), None, known.when)
    if (
        isinstance(known, Float | Int)
        and isinstance(declared, Float | Int)
        and type(known) is type(declared)
        and (known.scale, known.step) == (declared.scale, declared.step)
    ):
        low, high = min(known.low, declared.low), max(known.high, declared.high)
        return dataclasses.replace(known, low=low, high=high)  # type: ignore[arg-type]
    raise DeclarationError(
        f"parameter {name!r} was declared as {known!r} before, and is declared as {declared!r} now: "
        "give one of them another name"
    )


def _like(given: Parameter, other: Parameter) -> Parameter:
    """Return a single value as a parameter of the other one's kind, if it can be one."""
    if not isinstance(given, Fixed) or isinstance(other, Fixed):
        return given
    value = given.value
    if isinstance(other, Categorical):
        values = [value, *(v for v in other.values if key(v) != key(value))]
        return Categorical(tuple(values), None, given.when) if len(values) > 1 else given
    if isinstance(other, Float | Int) and isinstance(value, int | float) and not isinstance(value, bool):
        low, high = min(other.low, value), max(other.high, value)
        return dataclasses.replace(other, low=low, high=high, when=given.when)  # type: ignore[arg-type]
    return given


def with_declarations(
    known: Mapping[str, Parameter], declared: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """Return the space with the declarations of one trial."""
    space = {name: p for name, p in known.items() if name != PLACEHOLDER or name in declared}
    for name, parameter in declared.items():
        space[name] = merged(name, space[name], parameter) if name in space else parameter
    return space


def with_conditions(space: Mapping[str, Parameter], evidence: Sequence[Evidence]) -> dict[str, Parameter]:
    """Return the space in which each parameter is active where trials have asked for it.

    A condition names values of earlier parameters. One that fits all trials stays, since another
    process may have learned it from a trial that has not ended yet. Where none tells all trials
    apart, the one that fits most of them is taken.
    """
    names = list(space)
    learned = {}
    for place, name in enumerate(names):
        earlier = {n: space[n] for n in names[:place]}
        when = space[name].when
        if not when or not _fits(name, when, evidence):
            when = condition(name, earlier, evidence)
        learned[name] = _with_when(space[name], when)
    return learned


def _with_when(p: Parameter, when: Mapping[str, Sequence[Value]] | None) -> Parameter:
    if isinstance(p, Fidelity) or p.when == when or (not p.when and not when):
        return p
    return dataclasses.replace(p, when=when)


def condition(
    name: str, earlier: Mapping[str, Parameter], evidence: Sequence[Evidence]
) -> dict[str, list[Value]] | None:
    """Return the values of earlier parameters where a parameter is active; None if it always is."""
    having = [e.point for e in evidence if name in e.point]
    lacking = [e.point for e in evidence if e.whole and name not in e.point]
    if not having or not lacking:
        return None
    found: dict[str, list[Value]] = {}
    candidates = _candidates(earlier, having, lacking)
    while lacking and candidates:
        best = max(candidates, key=lambda n: _rank(n, candidates[n], earlier, lacking))
        left = [point for point in lacking if _in(point, best, candidates[best])]
        if len(left) == len(lacking):
            break
        found[best], lacking = candidates.pop(best), left
    return found or None


def _fits(name: str, when: Mapping[str, Sequence[Value]], evidence: Sequence[Evidence]) -> bool:
    """Whether trials have a parameter exactly where a condition holds."""
    for e in evidence:
        holds = all(_in(e.point, parent, values) for parent, values in when.items())
        if holds != (name in e.point) and (e.whole or not holds):
            return False
    return True


def _candidates(
    earlier: Mapping[str, Parameter],
    having: Sequence[Mapping[str, Value]],
    lacking: Sequence[Mapping[str, Value]],
) -> dict[str, list[Value]]:
    """Return, for each parameter that may decide, the values where the other one was asked for."""
    candidates = {}
    for name, parameter in earlier.items():
        if not all(name in point for point in having):
            continue
        grid = _grid(parameter)
        if grid is None:
            continue
        seen = {key(point[name]): point[name] for point in having}
        without = {key(point[name]): point[name] for point in lacking if name in point}
        candidates[name] = _accepted(parameter, grid, list(seen.values()), list(without.values()))
    return candidates


def _grid(parameter: Parameter) -> list[Value] | None:
    """Return the values of a parameter that may decide about others; None if it has too many."""
    if isinstance(parameter, Bool):
        return [False, True]
    if isinstance(parameter, Categorical):
        return list(parameter._texts) if len(parameter.values) <= _MOST_VALUES else None
    if (
        isinstance(parameter, Int)
        and (parameter.high - parameter.low) // (parameter.step or 1) < _MOST_VALUES
    ):
        return list(range(parameter.low, parameter.high + 1, parameter.step or 1))
    return None


def _accepted(
    parameter: Parameter, grid: Sequence[Value], seen: Sequence[Value], without: Sequence[Value]
) -> list[Value]:
    """Return the values where another parameter is active, also of those that no trial had.

    Of a number, as of layers, all on one side count: from the first value that was not seen without.
    """
    if isinstance(parameter, Int) and without:
        if min(seen) > max(without):
            return [v for v in grid if v > max(without)]
        if max(seen) < min(without):
            return [v for v in grid if v < min(without)]
    wanted = {key(v) for v in seen}
    return [v for v in grid if key(v) in wanted]


def _rank(
    name: str,
    values: Sequence[Value],
    earlier: Mapping[str, Parameter],
    lacking: Sequence[Mapping[str, Value]],
) -> tuple[int, int, int]:
    """Return how well a parameter tells where another one is active.

    The one that tells most trials apart is best, then the one with the fewest values, then the latest.
    """
    apart = sum(not _in(point, name, values) for point in lacking)
    return apart, -len(_grid(earlier[name]) or ()), list(earlier).index(name)


def _in(point: Mapping[str, Value], name: str, values: Sequence[Value]) -> bool:
    return name in point and key(point[name]) in {key(v) for v in values}
