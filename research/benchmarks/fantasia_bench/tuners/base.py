"""What a tuner is, and the simplest one."""

import random

from ..space import sample


class Tuner:
    """A tuner of a space under minimisation. Everything drawn comes from `seed`."""

    def __init__(self, space, seed):
        self.space, self.seed = space, seed

    def ask(self, n):
        """Up to n suggestions [(key, {name: value}), ...]; fewer where the tuner has no more."""
        raise NotImplementedError

    def tell(self, told):
        """Hears [(key, loss), ...] of suggestions; the loss is None where the evaluation failed."""
        raise NotImplementedError

    def observe(self, points, losses):
        """Hears losses of points that it has not suggested; for the timings only."""
        raise NotImplementedError(f"{type(self).__name__} cannot be told points of others")

    def recommend(self):
        """The point that the tuner holds for the best, or None where it says nothing but the best loss seen."""
        return None

    def close(self):
        """Ends what the tuner has started."""


class Random(Tuner):
    """Independent uniform points, each parameter on its own scale."""

    def __init__(self, space, seed):
        super().__init__(space, seed)
        self.rng, self.asked = random.Random(seed), 0

    def ask(self, n):
        first, self.asked = self.asked, self.asked + n
        return [(first + i, sample(self.space, self.rng)) for i in range(n)]

    def tell(self, told):
        pass

    def observe(self, points, losses):
        pass
