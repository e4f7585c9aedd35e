"""Made-up tuning tasks in spaces with conditions, and in wide ones: for methods.py, which plays Fantasia's algorithms on them.

    cash        four models with one to four parameters of their own each, as in the choice of a model and its settings
    flags       a compiler: a level and 20 flags, some of which depend on each other; four flags have an integer of their own
    flags-noisy the same with noise
    pipeline    a network: a solver with parameters of its own, two of which have further ones, and four common parameters; noisy
    hartmann6-300, bowl-300, ackley-200, levy-100
                functions of so many parameters (Hartmann's depends on the first six), moved by up to an eighth of the
                range (but Hartmann's); their regrets are no logarithms

Which point is best, and how much each flag is worth, differs from seed to seed. A regret is the distance to the best value
(for flags, to the lowest of 60 descents), without noise.
"""
import math
import random

import functions


class Task:
    """`parameters` are those of a study file; `value` is the noise-free value of a point, `best` the lowest one."""

    floats, grids, names, noise, best = {}, {}, {}, 0.0, 0.0

    def __init__(self, seed):
        self.rng, self.noises = random.Random(seed + 100), random.Random(seed)
        self.build()

    def look(self, point):
        return self.value(point) + self.noise * self.noises.gauss(0, 1)

    def regret(self, point):
        return self.value(point) - self.best


def number(name, low, high, kind="float", **more):
    return {"name": name, "type": kind, "min": low, "max": high, **more}


def choice(name, values, **more):
    return {"name": name, "type": "categorical", "values": values, **more}


class Cash(Task):
    def build(self):
        counts = {"a": 1, "b": 3, "c": 2, "d": 4}
        self.parameters = [choice("model", list(counts))]
        self.parameters += [number(f"{m}{i}", 0, 1, when={"model": [m]}) for m, k in counts.items() for i in range(k)]
        self.optima = {m: [self.rng.random() for _ in range(k)] for m, k in counts.items()}

    def value(self, p):
        base = {"a": 0.30, "b": 0.0, "c": 0.15, "d": 0.05}[p["model"]]
        return base + sum(abs(p[f"{p['model']}{i}"] - o) ** 1.5 for i, o in enumerate(self.optima[p["model"]]))


class Flags(Task):
    count, levels = 20, {"O0": 12, "O1": 3, "O2": 1, "O3": 0}

    def build(self):
        n, rng = self.count, self.rng
        self.parameters = [choice("level", list(self.levels)), *(choice(f"f{i}", ["off", "on"]) for i in range(n))]
        self.parameters += [number(f"n{i}", 1, 64, "int", scale="log", when={f"f{i}": ["on"]}) for i in range(4)]
        self.worth = [rng.gauss(0, 1) * (3 if rng.random() < 0.2 else 0.3) for _ in range(n)]
        self.pairs = [(rng.randrange(n), rng.randrange(n), rng.gauss(0, 1)) for _ in range(8)]
        self.sizes = [rng.uniform(0, 6) for _ in range(4)]
        self.best = min(self.descend(random.Random(i)) for i in range(60))

    def value(self, p):
        on = [p[f"f{i}"] == "on" for i in range(self.count)]
        v = self.levels[p["level"]] + sum(w for w, o in zip(self.worth, on) if o) + sum(c for i, j, c in self.pairs if on[i] and on[j])
        return v + sum(0.6 * abs(math.log2(p[f"n{i}"]) - size) - 1.5 for i, size in enumerate(self.sizes) if on[i])

    def descend(self, rng):
        """The value at which flipping one flag gains nothing, from a random point on."""
        p = {"level": "O3", **{f"f{i}": rng.choice(["off", "on"]) for i in range(self.count)}, **{f"n{i}": round(2**s) for i, s in enumerate(self.sizes)}}
        while True:
            flips = [p | {f"f{i}": "off" if p[f"f{i}"] == "on" else "on"} for i in range(self.count)]
            better = min(flips, key=self.value)
            if self.value(better) > self.value(p) - 1e-12:
                return self.value(p)
            p = better


class NoisyFlags(Flags):
    noise = 1.0


class Pipeline(Task):
    noise, best = 0.01, 0.05  # of adam, and of sgd with Nesterov's momentum

    def build(self):
        self.parameters = [
            choice("solver", ["sgd", "adam", "lbfgs"]),
            number("lr", 1e-5, 1, scale="log", when={"solver": ["sgd", "adam"]}),
            number("momentum", 0, 0.99, when={"solver": ["sgd"]}),
            choice("nesterov", ["yes", "no"], when={"solver": ["sgd"]}),
            number("beta2", 0.5, 0.9999, when={"solver": ["adam"]}),
            number("layers", 1, 4, "int"), number("width", 8, 512, "int", scale="log"), number("dropout", 0, 0.8),
            choice("activation", ["relu", "tanh", "gelu"]),
        ]
        uniform = self.rng.uniform
        self.rate, self.momentum, self.width, self.dropout = uniform(-4, -1), uniform(0.3, 0.95), uniform(4, 8.5), uniform(0, 0.6)

    def value(self, p):
        solver = p["solver"]
        v = {"sgd": 0.1, "adam": 0.05, "lbfgs": 0.3}[solver] + {"relu": 0, "tanh": 0.05, "gelu": 0.01}[p["activation"]]
        if solver != "lbfgs":
            v += 0.12 * abs(math.log10(p["lr"]) - self.rate - (solver == "sgd"))
        if solver == "sgd":
            v += 0.3 * abs(p["momentum"] - self.momentum) - 0.05 * (p["nesterov"] == "yes")
        if solver == "adam":
            v += 0.1 * abs(p["beta2"] - 0.9)
        return v + 0.06 * abs(math.log2(p["width"]) - self.width) + 0.2 * (p["dropout"] - self.dropout) ** 2 + 0.05 * abs(p["layers"] - 2)


class Wide(Task):
    """A function over [-bound, bound], with its minimum moved from `at`, the same in each parameter."""

    bound, of, count = 1.0, staticmethod(lambda x: sum(v * v for v in x)), 300

    def build(self):
        self.parameters = [number(f"x{i}", -self.bound, self.bound) for i in range(self.count)]
        self.move = [self.rng.uniform(-0.25, 0.25) * self.bound for _ in range(self.count)]

    def value(self, p):
        return self.of([p[f"x{i}"] - m for i, m in enumerate(self.move)])


class WideHartmann(Task):
    best = -3.3223680114155147

    def build(self):
        self.parameters = [number(f"x{i}", 0, 1) for i in range(300)]

    def value(self, p):
        return functions.hartmann6([p[f"x{i}"] for i in range(6)])


class WideAckley(Wide):
    bound, of, count = 32, staticmethod(functions.ackley), 200


class WideLevy(Wide):
    bound, of, count = 10, staticmethod(functions.levy), 100


TASKS = {"hartmann6-300": WideHartmann, "bowl-300": Wide, "ackley-200": WideAckley, "levy-100": WideLevy, "cash": Cash, "flags": Flags, "flags-noisy": NoisyFlags, "pipeline": Pipeline}
