#!/usr/bin/env python3
"""Plays tuners in 60 to 160 dimensions: on functions of COCO's bbob-largescale, a sparse linear model, and a support vector machine.

    research/benchmarks/wide.py play --out wide.jsonl
    research/benchmarks/wide.py play --tuners fantasia:hebo,fantasia:hebo:initial=24 --tasks coco:15:80 --seeds 3-4 --out wide.jsonl
    research/benchmarks/wide.py report wide.jsonl fantasia:hebo    # or research/benchmarks/runs/wide.jsonl.xz, the kept runs

Tuners: fantasia:NAME, optuna-tpe (with `multivariate` and `constant_liar`) and cmaes (mean in the middle, a sixth of the range as its
deviation, a population of 8). A setting of Fantasia's follows its name. A run is 320 evaluations, eight at once: a free worker gets a
point at once, in virtual time. cmaes gets a population at a time, for which its workers wait.

coco:F:D is the function F in D dimensions, in -5 to 5, on an instance drawn from (task, seed). lasso:D is a linear model of D
features, an eighth of which matter, with a penalty for each feature on a log scale; the loss is the mean squared error in a
cross-validation. svm:digits is a support vector machine on 600 of scikit-learn's digits, with a scale for each of the 64 pixels, C
and gamma, all on a log scale; the loss is the share of errors in a cross-validation.

A function's regret is log10 of the best value less the minimum, that of the two models log10 of the best loss. A difference of 1 is a
decade. The seed of a run comes from (task, seed), so that no two tasks share a start.

Needs what `setup wide` installs, and for Fantasia bin/fantasia.
"""
import argparse
import collections
import itertools
import json
import lzma
import math
import os
import random
import statistics
import tempfile
import warnings

import methods
import pairs
from fantasia_bench import clock
from fantasia_bench import report as text

TRIALS, COUNTS, WORKERS = 320, (24, 80, 160, 320), 8
# Initial designs were compared on the first ones, and then on the others.
TASKS = {
    "development": ["coco:2:80", "coco:8:80", "coco:15:80", "coco:21:80", "coco:8:160", "coco:15:160", "lasso:60"],
    "confirmation": ["coco:1:80", "coco:10:80", "coco:13:80", "coco:17:80", "coco:1:160", "coco:17:160", "lasso:100", "svm:digits"],
}
TUNERS = "fantasia:hebo,fantasia:turbo,fantasia:cmaes,optuna-tpe,cmaes"


class Wide:
    """A point is {name: value}. `floats` has the range of each parameter, `look` evaluates a point, and `regret` rates a loss."""

    def __init__(self, ranges):
        self.floats, self.grids, self.names = {f"p{i}": r for i, r in enumerate(ranges)}, {}, {}

    def vector(self, point):
        return [point[k] for k in self.floats]


class Coco(Wide):
    def __init__(self, name, seed):
        import cocoex

        _, number, dimensions = name.split(":")
        instance = 1 + seed % 15
        options = f"function_indices:{number} dimensions:{dimensions} instance_indices:{instance}"
        self.suite = cocoex.Suite("bbob-largescale", "", options)
        self.problem = self.suite[0]
        super().__init__([(-5.0, 5.0)] * int(dimensions))
        with tempfile.TemporaryDirectory() as folder:  # COCO writes the place of the minimum into a file of the working folder
            home = os.getcwd()
            os.chdir(folder)
            try:
                self.problem._best_parameter("print")
                with open("._bbob_problem_best_parameter.txt") as f:
                    self.minimum = self.problem([float(v) for v in f.read().split()])
            finally:
                os.chdir(home)

    def look(self, point):
        return self.problem(self.vector(point))

    def regret(self, loss):
        return math.log10(max(loss - self.minimum, 1e-9))


class Model(Wide):
    """A model of scikit-learn. The search sees log10 of its parameters."""

    def regret(self, loss):
        return math.log10(max(loss, 1e-9))


class Lasso(Model):
    def __init__(self, name, seed):
        import numpy

        d = int(name.split(":")[1])
        super().__init__([(-4.0, 1.0)] * d)
        rng = numpy.random.default_rng(seed)
        weights = numpy.zeros(d)
        weights[rng.choice(d, d // 8, replace=False)] = rng.choice([-1.0, 1.0], d // 8) * rng.uniform(0.5, 2, d // 8)
        self.x = rng.standard_normal((d, d))
        signal = self.x @ weights
        self.y = signal + rng.standard_normal(d) * signal.std() / 3
        self.folds = numpy.arange(d) % 5

    def look(self, point):
        import numpy
        from sklearn.linear_model import Lasso as Fit

        scale, errors = 10 ** numpy.array(self.vector(point)), []
        for fold in range(5):
            held = self.folds == fold
            fit = Fit(alpha=1.0, max_iter=500, tol=1e-3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it may not converge, for any tuner
                fit.fit(self.x[~held] / scale, self.y[~held])  # a penalty of 1 on w·scale
            errors.append(((fit.predict(self.x[held] / scale) - self.y[held]) ** 2).mean())
        return float(numpy.mean(errors))


class SVM(Model):
    def __init__(self, _, seed):
        import numpy
        from sklearn.datasets import load_digits

        super().__init__([(-2.0, 1.0)] * 64 + [(-1.0, 3.0), (-4.0, 0.0)])
        x, y = load_digits(return_X_y=True)
        some = numpy.random.default_rng(seed).choice(len(x), 600, replace=False)
        self.x, self.y = x[some] / 16, y[some]

    def look(self, point):
        import numpy
        from sklearn.model_selection import cross_val_score
        from sklearn.svm import SVC

        *scales, c, gamma = (10**v for v in self.vector(point))
        return 1 - float(cross_val_score(SVC(C=c, gamma=gamma), self.x * numpy.array(scales), self.y, cv=5).mean())


def task(name, seed):
    return {"coco": Coco, "lasso": Lasso, "svm": SVM}[name.split(":")[0]](name, seed)


class Optuna(methods.OptunaTPE):
    def __init__(self, of, seed):
        import optuna

        super().__init__(of, seed)
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True))

    def ask(self, n):
        return pairs.Optuna.ask(self, n)


class CMA(methods.CMA):
    def ask(self, _):
        return super().ask()


def make(named, of, seed, binary):
    kind, _, rest = named.partition(":")
    if kind == "optuna-tpe":
        return Optuna(of, seed)
    if kind == "cmaes":
        return CMA(of, seed)
    name, *given = rest.split(":")
    settings = {k: json.loads(v) for k, v in (p.split("=") for p in given)}
    return methods.Fantasia(of, seed, name, binary, settings)


def play(tuner, of, name, seed):
    """The regret of the best point seen after each of COUNTS, where all evaluations take the same time for all tuners."""
    best, seen, regret = math.inf, 0, {}

    def ask(n):
        return [(handle, point, of.look(point)) for handle, point in tuner.ask(n)]

    mode = "batch" if isinstance(tuner, methods.CMA) else "async"
    for _, told in clock.turns(mode, ask, tuner.tell, clock.durations(name, seed), TRIALS, WORKERS):
        for _, _, loss in told:
            best, seen = min(best, loss), seen + 1
            if seen in COUNTS:
                regret[seen] = round(of.regret(best), 4)
    return regret


def play_all(a):
    methods.TRIALS = TRIALS
    done = set()
    if os.path.exists(a.out):
        with open(a.out) as held:
            done = {(r["task"], r["tuner"], r["seed"]) for r in map(json.loads, held)}
    first, _, last = a.seeds.partition("-")
    tasks = a.tasks.split(",") if a.tasks else TASKS["development"] + TASKS["confirmation"]
    with open(a.out, "a") as out:
        for seed, name, named in itertools.product(range(int(first), int(last or first) + 1), tasks, a.tuners.split(",")):
            if (name, named, seed) in done:
                continue
            own = random.Random(f"{name} {seed}").randrange(1 << 31)
            of = task(name, own)
            tuner = make(named, of, own, a.fantasia)
            print(json.dumps({"task": name, "tuner": named, "seed": seed, "regret": play(tuner, of, name, own)}), file=out, flush=True)
            tuner.close()


def report(a):
    """Prints by how many decades the base is ahead of each other tuner, paired by task and seed, with a 95% interval."""
    runs = collections.defaultdict(dict)
    with lzma.open(a.file, "rt") if a.file.endswith(".xz") else open(a.file) as f:
        read = [json.loads(line) for line in f]
    for r in read:
        runs[r["tuner"]][r["task"], r["seed"]] = r["regret"]
    for part, tasks in TASKS.items():
        rows = []
        for tuner in sorted(runs):
            both = sorted(k for k in runs[tuner].keys() & runs[a.base].keys() if k[0] in tasks)
            if tuner != a.base and both:
                cells = []
                for n in map(str, COUNTS):
                    differences = [runs[tuner][k][n] - runs[a.base][k][n] for k in both]
                    low, high = methods.interval(differences)
                    cells.append(f"{statistics.fmean(differences):+.2f} ({low:+.2f} to {high:+.2f})")
                rows.append([f"`{tuner}`", str(len(both)), *cells])
        if rows:
            print(f"{part}: decades by which `{a.base}` is ahead\n\n{text.table(['tuner', 'runs', *(f'after {n}' for n in COUNTS)], rows)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("play")
    p.add_argument("--tuners", default=TUNERS)
    p.add_argument("--tasks", help="names with commas; all by default")
    p.add_argument("--seeds", default="0-2")
    p.add_argument("--fantasia", default="bin/fantasia")
    p.add_argument("--out", required=True)
    p.set_defaults(run=play_all)
    r = verbs.add_parser("report")
    r.add_argument("file")
    r.add_argument("base")
    r.set_defaults(run=report)
    a = parser.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
