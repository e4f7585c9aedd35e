#!/usr/bin/env python3
"""Gives hebo-paper and HEBO 0.3.6 with the surrogate of its paper the same observations, and compares their steps.

    steps.py play --steps bin/steps --out results/steps.jsonl     `go build -o bin/steps ./research/steps` makes the program
    steps.py report results/steps.jsonl

The observations are random points of the tables of methods.py. At 8, 16, 24 and 48 of them both fit their model, and predict the same
256 points. From each model's own means and deviations follow the three acquisition functions at these points, without their
noise, by the formulas of the reference. Both then choose batches of 8: how good they are is said by the reference's model. Needs what
`setup peers` installs.
"""

import argparse
import json
import lzma
import math
import os
import random
import statistics
import subprocess
import unittest.mock
import warnings

import methods

SIZES, QUERIES, BATCHES = (8, 16, 24, 48), 256, 1


def reference(task, points, losses, queries, seed):
    """What HEBO 0.3.6 does with the observations, in units of its transformed outcomes."""
    import numpy
    import pandas
    import torch
    from hebo.optimizers import hebo

    warnings.filterwarnings("ignore")
    tuner = methods.Hebo(task, seed, "gpy")
    names = list(tuner.hebo.space.para_names)
    values = {k: list(range(len(v))) if k in task.grids else v for k, v in task.space.items()}

    def frame(rows):
        return pandas.DataFrame([{k: values[k][row[k]] for k in names} for row in rows])[names]

    tuner.hebo.observe(frame(points), numpy.array(losses)[:, None])
    held, search = {}, hebo.EvolutionOpt

    def optimiser(space, acquisition, **settings):
        held.update(model=acquisition.model, best=float(acquisition.tau), kappa=float(acquisition.kappa))
        return search(space, acquisition, **settings)

    chosen = []
    with unittest.mock.patch.object(hebo, "EvolutionOpt", optimiser):
        for _ in range(BATCHES):
            asked = tuner.hebo.suggest(n_suggestions=methods.BATCH)
            chosen.append([{k: values[k].index(int(row[k]) if k in task.grids else row[k]) for k in names} for _, row in asked.iterrows()])
            if len(chosen) == 1:
                first = dict(held)
    if not held:  # it still plays its design
        return None
    gp = first["model"].gp
    with torch.no_grad():
        mean, variance = first["model"].predict(*tuner.hebo.space.transform(frame(queries)))

        def means(rows):
            return first["model"].predict(*tuner.hebo.space.transform(frame(rows)))[0].reshape(-1).tolist()

    return {
        "mean": mean.reshape(-1).tolist(), "sd": variance.sqrt().reshape(-1).tolist(), "noise": float(first["model"].noise), "best": first["best"],
        "kappa": first["kappa"], "matern": float(gp.kern.Mat32.variance[0]), "linear": float(gp.kern.linear.variances[0]),
        "lengthscales": [float(v) for v in gp.kern.Mat32.lengthscale], "logPosterior": -float(gp.objective_function()),
        "chosen": chosen, "means": means,
    }


def acquisitions(mean, sd, best, kappa):
    """The bound, log EI and log PI at each point; larger is better."""
    from scipy import stats

    made = []
    for m, s in zip(mean, sd):
        z = (best - 1e-4 - m) / s
        log_pi = stats.norm.logcdf(z)
        gain = s * (z * math.exp(log_pi) + stats.norm.pdf(z))
        made.append((-(m - kappa * s), math.log(gain) if gain > 0 else -0.5 * z * z + math.log(s) - 2 * math.log(abs(z)), log_pi))
    return list(zip(*made))


def play(a):
    from scipy import stats

    done = set()
    if os.path.exists(a.out):
        with open(a.out) as file:
            done = {(r["task"], r["n"], r["seed"]) for r in map(json.loads, file)}
    for seed in range(a.seeds):
        for name in a.tasks.split(","):
            task = methods.Table(name, seed)
            draw = random.Random(f"steps {name} {seed}")
            names = list(task.space)
            rows = [{k: draw.randrange(len(v)) for k, v in task.space.items()} for _ in range(max(SIZES) + QUERIES)]
            losses = [task.look({k: v[row[k]] for k, v in task.space.items()}) for row in rows[: max(SIZES)]]
            for n in SIZES:
                keep = [i for i in range(n) if math.isfinite(losses[i])]
                if (name, n, seed) in done or len(keep) < 3:
                    continue
                points, seen, queries = [rows[i] for i in keep], [losses[i] for i in keep], rows[max(SIZES) :]
                theirs = reference(task, points, seen, queries, seed)
                if theirs is None:
                    continue
                best = min(range(len(seen)), key=seen.__getitem__)
                request = {
                    "parameters": [{"levels": len(v), "ordered": k in task.grids} for k, v in task.space.items()],
                    "points": [[p[k] for k in names] for p in points], "values": seen,
                    "queries": [[q[k] for k in names] for q in [*queries, points[best]]], "batches": BATCHES, "seed": seed,
                }
                ours = json.loads(subprocess.run([a.steps], input=json.dumps(request), capture_output=True, text=True, check=True).stdout)
                at_best = ours["mean"].pop()
                ours["sd"].pop()
                of = [acquisitions(o["mean"], o["sd"], b, theirs["kappa"]) for o, b in ((ours, at_best), (theirs, theirs["best"]))]
                agree = [float(stats.spearmanr(x, y)[0]) for x, y in zip(*of)]
                mine = [dict(zip(names, row)) for batch in ours["chosen"] for row in batch]
                their = [row for batch in theirs["chosen"] for row in batch]
                record = {
                    "task": name, "n": n, "seed": seed,
                    "mean": statistics.fmean(abs(x - y) for x, y in zip(ours["mean"], theirs["mean"])),
                    "correlation": float(stats.pearsonr(ours["mean"], theirs["mean"])[0]),
                    "sd": statistics.fmean(math.log(x / y) for x, y in zip(ours["sd"], theirs["sd"])),
                    "noise": math.log(ours["noise"] / theirs["noise"]), "bound": agree[0], "ei": agree[1], "pi": agree[2],
                    "chosen": statistics.fmean(theirs["means"](mine)) - statistics.fmean(theirs["means"](their)),
                    "regret": statistics.fmean(regrets(task, mine)) - statistics.fmean(regrets(task, their)),
                    "least": least(task, ours["chosen"], names) - statistics.fmean(min(regrets(task, b)) for b in theirs["chosen"]),
                    "distinct": [len({tuple(p.values()) for p in c}) for c in (mine, their)],
                    "theirs": {k: theirs[k] for k in ("noise", "matern", "linear", "lengthscales", "kappa", "best")},
                    "ours": {"noise": ours["noise"], "kernel": ours["kernel"], "best": at_best},
                }
                with open(a.out, "a") as file:
                    print(json.dumps(record), file=file)


def regrets(task, points):
    return [task.regret({k: v[p[k]] for k, v in task.space.items()}) for p in points]


def least(task, batches, names):
    return statistics.fmean(min(regrets(task, [dict(zip(names, row)) for row in batch])) for batch in batches)


COLUMNS = {
    "mean": "means apart", "correlation": "correlation of the means", "sd": "log ratio of deviations", "noise": "log ratio of noise", "bound": "ρ bound",
    "ei": "ρ EI", "pi": "ρ PI", "chosen": "mean of the chosen, less its", "regret": "regret of the chosen, less its", "least": "least regret of a batch, less its",
}


def table(rows):
    """Means over the cases, with standard errors."""
    lines = ["| observations | cases | " + " | ".join(COLUMNS.values()) + " |", "| ---: | ---: |" + " ---: |" * len(COLUMNS)]
    for n in sorted({r["n"] for r in rows}):
        of = [[r[c] for r in rows if r["n"] == n] for c in COLUMNS]
        errors = [statistics.stdev(v) / math.sqrt(len(v)) if len(v) > 1 else 0 for v in of]
        cells = [f"{statistics.fmean(v):.2f} ± {e:.2f}".replace("-", "−") for v, e in zip(of, errors)]
        lines.append(f"| {n} | {len(of[0])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def report(a):
    with lzma.open(a.file, "rt") if a.file.endswith(".xz") else open(a.file) as file:
        print(table([json.loads(line) for line in file]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    c = commands.add_parser("play")
    c.add_argument("--tasks", default=",".join(methods.TABLES[:6]))
    c.add_argument("--seeds", type=int, default=1)
    c.add_argument("--steps", required=True, help="the program of research/steps")
    c.add_argument("--out", required=True)
    c.set_defaults(do=play)
    c = commands.add_parser("report")
    c.add_argument("file")
    c.set_defaults(do=report)
    a = parser.parse_args()
    a.do(a)


if __name__ == "__main__":
    main()
