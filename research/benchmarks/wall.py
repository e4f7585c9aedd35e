#!/usr/bin/env python3
"""Wall time and result of tuning beside Optuna: XGBoost, LightGBM, a pipeline of scikit-learn, and a function that takes no time.

    research/benchmarks/wall.py play --out wall.jsonl [--seeds 5] [--tasks quick-500,quick-500-busy]
    research/benchmarks/wall.py report wall.jsonl

A run of a model is 40 trials, 4 at once in threads, of one objective that asks for its parameters as Optuna's do; Fantasia's studies are
created without parameters and keep everything on disk, Optuna's are in memory. The tuners take turns for each seed, in an order
that moves on by one, so that a busy machine slows all of them alike: read the ratios. The report shows medians over seeds of
the seconds and of the best value (1 less the accuracy, or the log loss), and Fantasia's seconds as a part of the others'.

The function is a sum of squares of five parameters, with its minimum, 0, inside their ranges. 500 and 1,000 trials run one after
another; those that are called busy have two endless loops beside them. Optuna's GP does not take part.

`setup wall` makes a Python for it; Optuna's GP needs PyTorch. It needs bin/fantasia.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import small

TUNERS = ("fantasia", "optuna-tpe", "optuna-gp")


def quick(trial):
    return sum((trial.suggest_float(f"x{i}", -5, 5) - 1 - 0.3 * i) ** 2 for i in range(5))


QUICK = {"quick-500": 500, "quick-500-busy": 500, "quick-1000": 1000, "quick-1000-busy": 1000}
TASKS = {name: small.TASKS[name] for name in ("xgboost", "lightgbm", "pipeline")} | dict.fromkeys(QUICK, quick)


def tuners_of(task):
    return TUNERS[:2] if task in QUICK else TUNERS


def study_of(tuner, seed, storage):
    if tuner == "fantasia":
        import fantasia_hpo

        return fantasia_hpo.create_study(direction="minimize", seed=seed, storage=storage)
    import optuna

    sampler = {"optuna-tpe": optuna.samplers.TPESampler, "optuna-gp": optuna.samplers.GPSampler}[tuner]
    return optuna.create_study(sampler=sampler(seed=seed))


@contextlib.contextmanager
def busy(loops):
    beside = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


def play(task, tuner, seed, storage):
    study = study_of(tuner, seed, storage)
    with busy(2 if task.endswith("-busy") else 0):
        began = time.perf_counter()
        study.optimize(TASKS[task], n_trials=QUICK.get(task, small.TRIALS), n_jobs=1 if task in QUICK else small.JOBS)
        seconds = time.perf_counter() - began
    return {"task": task, "tuner": tuner, "seed": seed, "seconds": round(seconds, 2), "best": float(f"{study.best_value:.4g}")}


def play_all(a):
    small.prepare(a.fantasia)
    tasks = a.tasks.split(",")
    Path(a.out).parent.mkdir(parents=True, exist_ok=True)
    rows = small.read(a.out) if os.path.exists(a.out) else []
    done = {(r["task"], r["tuner"], r["seed"]) for r in rows}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as storage, open(a.out, "a") as out:
        for task in tasks:  # imports, the server's start and the first compilation are nobody's
            for tuner in tuners_of(task):
                study_of(tuner, 0, storage).optimize(TASKS[task], n_trials=1)
        for seed in range(a.seeds):
            for task in tasks:
                tuners = tuners_of(task)
                for i in range(len(tuners)):
                    tuner = tuners[(seed + i) % len(tuners)]
                    if (task, tuner, seed) not in done:
                        print(json.dumps(play(task, tuner, seed, storage)), file=out, flush=True)


def table(rows):
    """The lines of the report, of the runs that all tuners have."""
    by = {(r["task"], r["tuner"], r["seed"]): r for r in rows}
    lines = ["| task | runs | tuner | seconds | best value | seconds of `fantasia` / seconds |", "| --- | ---: | --- | ---: | ---: | ---: |"]
    for task in TASKS:
        tuners, best_form = tuners_of(task), ".1e" if task in QUICK else ".4f"
        seeds = sorted({s for t, _, s in by if t == task and all((task, u, s) in by for u in tuners)})
        for tuner in tuners if seeds else ():
            runs = [by[task, tuner, s] for s in seeds]
            ratios = sorted(by[task, "fantasia", s]["seconds"] / by[task, tuner, s]["seconds"] for s in seeds)
            ratio = "" if tuner == "fantasia" else f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            seconds, best = (statistics.median(r[k] for r in runs) for k in ("seconds", "best"))
            lines.append(f"| {task} | {len(seeds)} | `{tuner}` | {seconds:.1f} | {best:{best_form}} | {ratio} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("play")
    p.add_argument("--out", required=True)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--tasks", default=",".join(TASKS))
    p.add_argument("--fantasia", default="bin/fantasia")
    verbs.add_parser("report").add_argument("file")
    a = parser.parse_args()
    if a.verb == "play":
        play_all(a)
    else:
        print("\n".join(table(small.read(a.file))))


if __name__ == "__main__":
    main()
