"""Small methods for the tables of methods.py: the (1+1) evolution strategy, radial basis functions (DYCORS), and
OpenTuner's bandit over both. Needs numpy.

They work on the unit cube. A grid or a list of names is a coordinate too, rounded to one of its values; the evolution
strategy draws another name instead of a step. `history` is shared by the methods that a bandit plays: each learns from all
results. They ask for a batch at once, and do not know the results of its other members.
"""
import math

import numpy


class Cube:
    """The unit cube of a task: a column for each parameter, of `levels` values, 0 if it is continuous."""

    def __init__(self, task):
        self.floats, self.listed = task.floats, task.grids | task.names
        self.columns = [*self.floats, *self.listed]
        self.levels = numpy.array([0] * len(self.floats) + [len(v) for v in self.listed.values()])
        self.named = numpy.array([k in task.names for k in self.columns], dtype=bool)

    def round(self, x):
        """The middle of the cell that a coordinate with levels is in."""
        x, levels = numpy.clip(x, 0, 1), numpy.maximum(self.levels, 1)
        return numpy.where(self.levels > 0, (numpy.minimum(numpy.floor(x * levels), levels - 1) + 0.5) / levels, x)

    def point(self, x):
        point = {}
        for k, v, levels in zip(self.columns, x, self.levels):
            if levels:
                point[k] = self.listed[k][min(int(v * levels), levels - 1)]
            else:
                low, high = self.floats[k]
                point[k] = low + float(v) * (high - low)
        return point


class History:
    """All results, and the best of them."""

    def __init__(self):
        self.x, self.y = [], []

    def add(self, x, y):
        self.x.append(x)
        self.y.append(y)

    @property
    def best(self):
        return int(numpy.argmin(self.y))


class Evolution:
    """The (1+1) evolution strategy with the one-fifth success rule (Rechenberg 1973) as Kern et al. 2004 write it: a success
    multiplies the step by e^(1/3), a failure by e^(−1/12). A batch has as many children of the parent as it has members,
    and each is a success or a failure. Names change with probability 1/d each, one column at least changes.
    """

    FIRST_STEP = 0.2

    def __init__(self, cube, history, rng):
        self.cube, self.history, self.rng = cube, history, rng
        self.step = self.FIRST_STEP

    def ask(self, n):
        return [self.child() for _ in range(n)]

    def child(self):
        cube, d = self.cube, len(self.cube.columns)
        if not self.history.y:
            return cube.round(self.rng.random(d))
        parent = self.history.x[self.history.best]
        for _ in range(100):
            x = parent + self.step * self.rng.normal(size=d)
            x = numpy.abs(x) % 2  # reflected at both bounds
            x = numpy.where(x > 1, 2 - x, x)
            changed = cube.named & (self.rng.random(d) < 1 / d)
            x = cube.round(numpy.where(cube.named, numpy.where(changed, self.rng.random(d), parent), x))
            if (x != parent).any():
                return x
            self.step = max(self.step, 0.5 / max(cube.levels.max(), 2))  # a step that reaches no other level is none
        return x

    def tell(self, y, before):
        """`before` is the best value that was known."""
        if math.isfinite(before):
            self.step = min(1.0, max(1e-8, self.step * math.exp(1 / 3 if y < before else -1 / 12)))


def design(count, levels, rng):
    """A symmetric Latin hypercube (Ye et al. 2000): each half of the points mirrors the other."""
    d, half = len(levels), count // 2
    x = numpy.full((count, d), 0.5)
    for column in range(d):
        cells = rng.permutation(half)
        flip = rng.random(half) < 0.5
        cells = numpy.where(flip, count - 1 - cells, cells)
        x[:half, column] = (cells + 0.5) / count
        x[count - half :, column] = 1 - x[:half, column]
    return x


class Interpolant:
    """A cubic radial basis function with a linear tail, through the values at distinct points of the cube."""

    def __init__(self, x, y):
        n, d = x.shape
        self.x = x
        tail = numpy.hstack([numpy.ones((n, 1)), x])
        system = numpy.block([[self.basis(x) + 1e-6 * numpy.eye(n), tail], [tail.T, numpy.zeros((d + 1, d + 1))]])
        solved = numpy.linalg.lstsq(system, numpy.concatenate([y, numpy.zeros(d + 1)]), rcond=None)[0]
        self.weights, self.tail = solved[:n], solved[n:]

    def distances(self, x):
        squares = (x**2).sum(1)[:, None] + (self.x**2).sum(1)[None] - 2 * x @ self.x.T
        return numpy.sqrt(numpy.maximum(squares, 0))

    def basis(self, x):
        return self.distances(x) ** 3

    def __call__(self, x):
        return self.basis(x) @ self.weights + self.tail[0] + x @ self.tail[1:]


class Dycors:
    """DYCORS-LMSRBF (Regis and Shoemaker 2013), with the settings of the package pySOT 0.3.3: a symmetric Latin hypercube of
    2(d+1) points; then 100·d candidates around the best point, in which a share of the coordinates that falls with the
    evaluations is moved by a normal step; and the weights 0.3, 0.5, 0.8 and 0.95 in turn between the interpolant's value
    and the distance to known points. The step is halved after failed batches and doubled after three successful ones. When it
    is too small, the search begins again with a new design, and forgets what it knew.
    """

    WEIGHTS, FIRST_STEP, SMALLEST = (0.3, 0.5, 0.8, 0.95), 0.2, 0.2 * 0.5**6

    def __init__(self, cube, history, rng, trials, batch):
        self.cube, self.history, self.rng, self.trials = cube, history, rng, trials
        self.d = len(cube.columns)
        self.failures_allowed = max(math.ceil(self.d / batch), math.ceil(4 / batch))
        self.turn, self.designed = 0, False
        self.restart()

    def restart(self):
        self.waiting = [self.cube.round(x) for x in design(2 * (self.d + 1), self.cube.levels, self.rng)]
        self.step, self.status, self.failed = self.FIRST_STEP, 0, 0
        self.first, self.record = len(self.history.y), math.inf

    def share(self, evaluations):
        """The probability with which a coordinate changes after a number of evaluations beyond the design."""
        budget = max(self.trials - 2 * (self.d + 1), 2)
        share = min(20 / self.d, 1) * (1 - math.log(max(evaluations, 1)) / math.log(budget))
        return max(share, min(1, 1 / self.d))

    def ask(self, n):
        asked, self.waiting = self.waiting[:n], self.waiting[n:]
        self.designed = bool(asked)
        known = len({tuple(x) for x in self.history.x[self.first :]})
        while len(asked) < n:
            asked.append(self.next(asked) if known > self.d + 1 else self.cube.round(self.rng.random(self.d)))
        return asked

    def next(self, pending):
        values = {}
        for x, y in zip(self.history.x[self.first :], self.history.y[self.first :]):
            values.setdefault(tuple(x), []).append(y)
        x, y = numpy.array(list(values)), numpy.array([numpy.mean(v) for v in values.values()])
        model, count, d = Interpolant(x, y), 100 * self.d, self.d
        centre = x[y.argmin()]
        moved = self.rng.random((count, d)) < self.share(len(self.history.y) + len(pending) - 2 * (d + 1) + 1)
        none = ~moved.any(1)
        moved[none, self.rng.integers(d, size=none.sum())] = True
        step = numpy.where(self.cube.levels > 0, numpy.maximum(self.step, 1 / numpy.maximum(self.cube.levels, 1)), self.step)
        drawn = self.rng.normal(centre, step, (count, d))
        while (outside := (drawn < 0) | (drawn > 1)).any():  # a normal distribution that is cut off at the bounds
            drawn = numpy.where(outside, self.rng.normal(centre, step, (count, d)), drawn)
        candidates = self.cube.round(numpy.where(moved, drawn, centre))
        value = model(candidates)
        near = model.distances(candidates).min(1)
        for p in pending:
            near = numpy.minimum(near, numpy.sqrt(((candidates - p) ** 2).sum(1)))
        weight = self.WEIGHTS[self.turn % len(self.WEIGHTS)]
        self.turn += 1
        merit = weight * scaled(value) + (1 - weight) * (1 - scaled(near))
        merit[near < 1e-3 * math.sqrt(d)] = math.inf
        return candidates[merit.argmin()]

    def told(self, best):
        """Learns that the last batch ended, of which the best value was `best`. Points of a design do not count."""
        if self.designed:
            return
        if math.isinf(self.record) or best < self.record - 1e-3 * abs(self.record):
            self.record, self.status, self.failed = best, max(1, self.status + 1), 0
        else:
            self.status, self.failed = min(-1, self.status - 1), self.failed + 1
        if self.status <= -self.failures_allowed:
            self.step, self.status = self.step / 2, 0
        elif self.status >= 3:
            self.step, self.status = min(2 * self.step, self.FIRST_STEP), 0
        if self.step <= self.SMALLEST or self.failed >= 4 * self.failures_allowed:
            self.restart()


def scaled(values):
    """From 0 for the least to 1 for the greatest; 1 if all are the same."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else numpy.ones(len(values))


class Credit:
    """OpenTuner's AUC bandit (Ansel et al. 2014; Fialho et al. 2010): an arm's credit is the area under the curve of its
    successes in a window of the last choices, in which later ones count more, and the bandit plays the arm whose credit plus
    C·√(2 log₂ N / n) is best. A success is a new best value.
    """

    WINDOW, C = 500, 0.05

    def __init__(self, arms, rng):
        self.arms, self.rng, self.past = arms, rng, []

    def credit(self, arm):
        of = [success for a, success in self.past if a == arm]
        n = len(of)
        return sum(i for i, success in enumerate(of, 1) if success) * 2 / (n * (n + 1)) if n else 0.0

    def score(self, arm):
        n = sum(a == arm for a, _ in self.past)
        if n == 0:
            return math.inf
        return self.credit(arm) + self.C * math.sqrt(2 * math.log2(len(self.past)) / n)

    def choose(self):
        order = [self.arms[i] for i in self.rng.permutation(len(self.arms))]
        return max(order, key=self.score)

    def learn(self, arm, success):
        self.past = (self.past + [(arm, success)])[-self.WINDOW :]


class Baseline:
    """A tuner as methods.py plays it: es, rbf, or opentuner, the bandit over both."""

    def __init__(self, task, seed, name, trials, batch):
        self.batch, self.cube, self.history, rng = batch, Cube(task), History(), numpy.random.default_rng(seed)
        self.arms = {}
        if name in ("es", "opentuner"):
            self.arms["es"] = Evolution(self.cube, self.history, rng)
        if name in ("rbf", "opentuner"):
            self.arms["rbf"] = Dycors(self.cube, self.history, rng, trials, batch)
        if not self.arms:
            raise ValueError(f"unknown baseline {name!r}; want es, rbf or opentuner")
        self.credit = Credit(list(self.arms), rng)

    def ask(self):
        arm = self.credit.choose()
        return [((arm, x), self.cube.point(x)) for x in self.arms[arm].ask(self.batch)]

    def tell(self, told):
        best = min(self.history.y, default=math.inf)
        for (arm, x), _, loss in told:
            self.history.add(x, loss)
            self.credit.learn(arm, loss < best)
            if arm == "es":
                self.arms[arm].tell(loss, best)
            best = min(best, loss)
        if arm == "rbf":
            self.arms[arm].told(min(loss for _, _, loss in told))

    def recommend(self):
        return None

    def close(self):
        pass
