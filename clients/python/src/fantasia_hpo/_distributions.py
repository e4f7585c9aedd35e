"""Distributions of scipy.stats as parameters."""

from __future__ import annotations

import math
from typing import Any

from .errors import SpaceError
from .parameters import Fixed, Float, Int, Normal, Parameter

_ACCEPTED = "uniform, loguniform, randint, norm, truncnorm and lognorm"
_TAILS = 3.0  # standard deviations around the mean of a distribution without bounds: 99.7% of it


def parameter_of_distribution(distribution: Any) -> Parameter:
    """Return the range, and the prior, of a frozen distribution of scipy.stats.

    Raises SpaceError, with the distribution's name, for one that has no such parameter.
    """
    family = getattr(distribution, "dist", None)
    name = getattr(family, "name", type(distribution).__name__)
    build = _BUILDERS.get(name)
    if family is None or build is None:
        raise SpaceError(f"expected one of the distributions {_ACCEPTED}, got {name}")
    shapes, loc, scale = family._parse_args(*distribution.args, **distribution.kwds)[:3]
    return build(tuple(map(float, shapes)), float(loc), float(scale))


def _uniform(shapes: tuple[float, ...], loc: float, scale: float) -> Parameter:
    return Float(loc, loc + scale)


def _loguniform(shapes: tuple[float, ...], loc: float, scale: float) -> Parameter:
    _unshifted(loc)
    return Float(shapes[0] * scale, shapes[1] * scale, scale="log")


def _randint(shapes: tuple[float, ...], loc: float, scale: float) -> Parameter:
    low, high = int(shapes[0] + loc), int(shapes[1] + loc) - 1  # SciPy's upper bound is excluded
    return Fixed(low) if low == high else Int(low, high)


def _norm(shapes: tuple[float, ...], loc: float, scale: float) -> Parameter:
    return Float(loc - _TAILS * scale, loc + _TAILS * scale, prior=Normal(loc, scale))


def _truncnorm(shapes: tuple[float, ...], loc: float, scale: float) -> Parameter:
    low, high = shapes
    if math.isinf(low):
        low = min(-_TAILS, high - _TAILS)
    if math.isinf(high):
        high = max(_TAILS, low + _TAILS)
    mode = min(max(0.0, low), high)
    return Float(loc + low * scale, loc + high * scale, prior=Normal(loc + mode * scale, scale))


def _lognorm(shapes: tuple[float, ...], loc: float, scale: float) -> Parameter:
    _unshifted(loc)
    width = math.exp(_TAILS * shapes[0])
    # The scale is the median, and the standard deviation is that of the natural logarithm.
    prior = Normal(scale, shapes[0] / math.log(10))
    return Float(scale / width, scale * width, scale="log", prior=prior)


def _unshifted(loc: float) -> None:
    if loc != 0:
        raise SpaceError(f"expected a distribution with loc=0, since its scale is logarithmic, got loc={loc}")


_BUILDERS = {
    "uniform": _uniform,
    "loguniform": _loguniform,
    "reciprocal": _loguniform,
    "randint": _randint,
    "norm": _norm,
    "truncnorm": _truncnorm,
    "lognorm": _lognorm,
}
