#!/usr/bin/env python3
"""Plays tuners that know earlier studies on tabulated tuning tasks: the other tables of the same family are the earlier studies.

    research/benchmarks/transfer.py play --out transfer.jsonl
    research/benchmarks/transfer.py play --tuners fantasia:none,fantasia:true --modes async --seeds 5-9 --out transfer.jsonl
    research/benchmarks/transfer.py report transfer.jsonl    # or research/benchmarks/runs/transfer.jsonl.xz, the kept runs

Tuners: fantasia:none knows no earlier study, fantasia:true the others of the family, fantasia:one the first of them, fantasia:half
these with half of them random, fantasia:random the same points with random outcomes, fantasia:flipped with outcomes upside down.
optuna-tpe knows none, and optuna-tpe:true begins with the best point of each (`enqueue_trial`). Each earlier study has 128 points,
drawn at random. The seed of a run comes from (task, seed), so that no two tasks share a start. A run is 128 evaluations: in mode
`sequential` one at a time, in mode `async` eight at once, in virtual time.

Regret is that of the best point seen, by the mean of its repetitions, in percent of that of the table's median point. `reached` says
after how many evaluations a tuner has what the first one has after 24 and 48: by task on the means over seeds, then the geometric mean
over tasks.

Needs what `setup tables` installs and bin/fantasia; for Optuna, `pip install optuna==5.0.0` there.
"""
import argparse
import collections
import itertools
import json
import math
import os
import random
import statistics

import methods
import pairs
from fantasia_bench import clock
from fantasia_bench import report as text

POINTS, COUNTS, WORKERS = 128, (4, 8, 16, 24, 48, 128), 8
FAMILIES = {
    "HPOBench": ["australian", "blood_transfusion", "car", "credit_g", "kc1", "phoneme", "segment", "vehicle"],
    "HPOLib": ["naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization"],
    "NASBench201": ["cifar10", "cifar100", "imagenet"],
}
# The prior of the weights was set before any of these was played; the first eight were looked at while the method was built.
TASKS = {"development": methods.TABLES, "confirmation": [n for n in (f"{f}:{d}" for f, all_ in FAMILIES.items() for d in all_) if n not in methods.TABLES]}
TASKS["TaskSet"] = [f"TaskSet:{n}" for n in (
    "patch128_LSTM128_avg_bs64", "patch32_GRU128_bs128", "patch32_IRNN64_relu_avg_bs128", "patch32_LSTM128_E128_bs128",
    "patch32_VRNN128_tanh_bs128", "patch32_VRNN64_relu_avg_bs128",
)]  # which research/curves plays: see `make transfer-finals`
TUNERS = "fantasia:none,fantasia:true,fantasia:random,fantasia:flipped"


def earlier(task, seed, kind):
    """The earlier studies of a task, as a study file has them."""
    family, _, name = task.partition(":")
    studies = []
    for number, other in enumerate(o for o in FAMILIES[family] if o != name):
        table, rng = methods.Table(f"{family}:{other}", seed), random.Random(f"{task} {other} {seed}")
        trials = []
        while len(trials) < POINTS:
            point = {k: rng.choice(v) for k, v in table.space.items()}
            loss, noise = table.look(point), rng.random()
            if math.isfinite(loss):
                value = {"flipped": -loss, "random": noise, "half": noise if number % 2 else loss}.get(kind, loss)
                trials.append({"parameters": point, "value": value})
        studies.append({"study": other.replace("_", "-"), "trials": trials})
    return {"none": [], "one": studies[:1]}.get(kind, studies)


class Fantasia(methods.Fantasia):
    def __init__(self, task, seed, binary, studies):
        self.studies = studies
        super().__init__(task, seed, "hebo", binary, {})

    def aim(self, task):
        return super().aim(task) | ({"learnFrom": self.studies} if self.studies else {})


class Optuna(methods.OptunaTPE):
    def __init__(self, task, seed, studies):
        super().__init__(task, seed)
        for best in (min(s["trials"], key=lambda t: t["value"])["parameters"] for s in studies):
            self.study.enqueue_trial({k: task.grids[k].index(v) if k in task.grids else v for k, v in best.items()})

    def ask(self, n):
        return pairs.Optuna.ask(self, n)

    def tell(self, told):
        for trial, _, loss in told:
            self.study.tell(trial, loss)


def play(tuner, task, mode, name, seed):
    """The regret of the best point seen after each evaluation."""
    best, curve = math.inf, []

    def ask(n):
        return [(handle, point, task.look(point)) for handle, point in tuner.ask(n)]

    for _, told in clock.turns(mode, ask, tuner.tell, clock.durations(name, seed), COUNTS[-1], WORKERS):
        for _, point, _ in told:
            best = min(best, 100 * task.regret(point))
            curve.append(round(best, 3))
    return curve


def play_all(a):
    done = set()
    if os.path.exists(a.out):
        with open(a.out) as held:
            done = {(r["task"], r["tuner"], r["mode"], r["seed"]) for r in map(json.loads, held)}
    first, _, last = a.seeds.partition("-")
    tasks = a.tasks.split(",") if a.tasks else TASKS["development"] + TASKS["confirmation"]
    with open(a.out, "a") as out:
        for seed, mode, name, named in itertools.product(range(int(first), int(last or first) + 1), a.modes.split(","), tasks, a.tuners.split(",")):
            if (name, named, mode, seed) in done:
                continue
            own = random.Random(f"{name} {seed}").randrange(1 << 31)
            task, (kind, _, of) = methods.Table(name, own), named.partition(":")
            studies = earlier(name, own, of or "none")
            tuner = Fantasia(task, own, a.fantasia, studies) if kind == "fantasia" else Optuna(task, own, studies)
            run = {"task": name, "tuner": named, "mode": mode, "seed": seed, "regret": play(tuner, task, mode, name, own)}
            print(json.dumps(run, separators=(",", ":")), file=out, flush=True)
            tuner.close()


def reached(mine, others, n):
    """After how many evaluations a tuner has what the other has after n: the geometric mean over tasks of where the mean curves cross."""
    logs = []
    for task in mine:
        level = statistics.fmean(c[n - 1] for c in others[task])
        curve = [statistics.fmean(column) for column in zip(*mine[task])]
        logs.append(math.log(next((i + 1 for i, v in enumerate(curve) if v <= level), len(curve))))
    return math.exp(statistics.fmean(logs))


def crossing(mine, others, n):
    """reached, with its 95% interval over tasks."""
    rng, tasks = random.Random(1), sorted(mine)
    drawn = []
    for _ in range(1000):
        some = rng.choices(tasks, k=len(tasks))
        drawn.append(reached({i: mine[t] for i, t in enumerate(some)}, {i: others[t] for i, t in enumerate(some)}, n))
    drawn.sort()
    return f"{reached(mine, others, n):.1f} ({drawn[25]:.1f} to {drawn[-26]:.1f})"


def report(a):
    rows = pairs.read(a.files)
    for mode in sorted({k[2] for k in rows}):
        for part, tasks in TASKS.items():
            lines, tuners = [], [t for t in dict.fromkeys(k[0] for k in rows)]
            base = {(k[1], k[3]): r["regret"] for k, r in rows.items() if k[0] == tuners[0] and k[1] in tasks and k[2] == mode}
            for tuner in tuners:
                runs = {(k[1], k[3]): r["regret"] for k, r in rows.items() if k[0] == tuner and k[1] in tasks and k[2] == mode}
                both = sorted(runs.keys() & base.keys())
                if not both:
                    continue
                mine, others = collections.defaultdict(list), collections.defaultdict(list)
                for task, seed in both:
                    mine[task].append(runs[task, seed])
                    others[task].append(base[task, seed])
                mean = {n: statistics.fmean(statistics.fmean(c[n - 1] for c in curves) for curves in mine.values()) for n in COUNTS}
                less = [methods.mean_and_interval([runs[k][n - 1] - base[k][n - 1] for k in both]) for n in (24, 128)]
                same = tuner == tuners[0]
                lines.append([f"`{tuner}`", str(len(both)), *(f"{mean[n]:.1f}" for n in COUNTS), *("" if same else d for d in less),
                              *("" if same else crossing(mine, others, n) for n in (24, 48))])
            if lines:
                head = ["tuner", "runs", *(f"{n}" for n in COUNTS), *(f"after {n}, less `{tuners[0]}`" for n in (24, 128)),
                        *(f"reached: {n}" for n in (24, 48))]
                print(f"{part}, {mode}\n\n{text.table(head, lines)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("play")
    p.add_argument("--tuners", default=TUNERS)
    p.add_argument("--tasks", help="names with commas; all by default")
    p.add_argument("--modes", default="sequential,async")
    p.add_argument("--seeds", default="0-4")
    p.add_argument("--fantasia", default="bin/fantasia")
    p.add_argument("--out", required=True)
    p.set_defaults(run=play_all)
    r = verbs.add_parser("report")
    r.add_argument("files", nargs="+")
    r.set_defaults(run=report)
    a = parser.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
