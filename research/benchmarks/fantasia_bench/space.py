"""Search spaces. A parameter has a coordinate on its own scale, in which it is uniform."""

import math
from dataclasses import dataclass

REAL, INT, BOOL = "real", "int", "bool"

_TO = {"linear": float, "log": math.log, "logit": lambda v: math.log(v / (1 - v))}
_FROM = {"linear": float, "log": math.exp, "logit": lambda z: 1 / (1 + math.exp(-z))}


@dataclass(frozen=True)
class Parameter:
    """A real or an integer in [low, high], or a bool, which has neither scale nor range."""

    name: str
    kind: str
    scale: str = "linear"
    low: float = 0
    high: float = 1

    @property
    def continuous(self):
        """Whether it has a coordinate."""
        return self.kind != BOOL

    def coordinates(self):
        """The range of the coordinate. An integer's reaches half a step beyond its bounds, so that each integer's share is its own."""
        margin = 0.5 if self.kind == INT else 0.0
        return _TO[self.scale](self.low - margin), _TO[self.scale](self.high + margin)

    def encode(self, value):
        """The coordinate of a value."""
        return _TO[self.scale](value)

    def decode(self, coordinate):
        """The value nearest to a coordinate, inside the range."""
        value = _FROM[self.scale](coordinate)
        if self.kind == INT:
            value = round(value)
        return min(max(value, self.low), self.high)


def sample(space, rng):
    """A uniform point {name: value} of a list of parameters, from a random.Random."""
    return {p.name: p.decode(rng.uniform(*p.coordinates())) if p.continuous else rng.random() < 0.5 for p in space}
