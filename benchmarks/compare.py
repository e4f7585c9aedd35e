#!/usr/bin/env python3
"""Fantasia beside other tuners on Bayesmark's tasks; README.md says what is measured.

    compare.py run --tuners random,fantasia:hebo --tasks open --seeds 0-4 --modes batch,async --out runs.jsonl
    compare.py report runs.jsonl                              tables of scores
"""

import argparse
import json
import os
import sys

from fantasia_bench import clock, definitions, report, results, runner, score, tuners

HERE = os.path.dirname(os.path.abspath(__file__))
SCALE = os.path.join(HERE, "scale.json")


def numbers(text):
    """0-2,5 as [0, 1, 2, 5]."""
    chosen = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        chosen += range(int(low), int(high or low) + 1)
    return chosen


def words(text):
    return [word for word in text.split(",") if word]


def run(a):
    names, modes = definitions.select(a.tasks), words(a.modes)
    if set(modes) - set(clock.MODES):
        sys.exit(f"--modes {a.modes}: want {', '.join(clock.MODES)}")
    todo = runner.jobs(names, words(a.tuners), modes, a.seeds, a.fantasia, a.settings, a.trials)
    failed = runner.run(todo, a.out, a.jobs)
    if failed:
        sys.exit(f"{failed} runs failed; the same command tries them again")


def scale(a):
    made = score.Scale.of(results.load(*a.runs))
    made.save(a.out, a.note)
    print(f"{a.out}: {len(made.tasks)} tasks")


def show(a):
    scale, runs = score.Scale.load(a.scale), results.load(*a.runs)
    compared = {mode: report.Comparison(runs, scale, mode) for mode in clock.MODES if any(r["mode"] == mode for r in runs)}
    for mode, comparison in compared.items():
        if not comparison.runs:
            continue
        print(f"### {mode}\n\n{report.scores(comparison, a.at)}\n")
        for tuner in words(a.tuner or ""):
            if tuner in comparison.runs:
                print(report.differences(comparison, tuner, a.at) + "\n")
        print(report.models(comparison, a.at[-1]) + "\n")
        print(report.asking(comparison) + "\n")
    if {"batch", "async"} <= set(compared):
        print(report.asynchronous(compared["batch"], compared["async"], a.at) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)

    v = verbs.add_parser("run", help="play runs and add them to a file; what the file holds is not played again")
    v.add_argument("--tuners", required=True, help="with commas: fantasia:ALGORITHM, " + ", ".join(tuners.NAMES))
    v.add_argument("--tasks", default="open", help="open (36), other (72), all, other:12, names or patterns, with commas")
    v.add_argument("--seeds", type=numbers, default=[0, 1, 2, 3, 4], metavar="0-4")
    v.add_argument("--modes", default="batch", help="with commas: " + ", ".join(clock.MODES))
    v.add_argument("--trials", type=int, default=definitions.TRIALS, help="evaluations of a run")
    v.add_argument("--out", required=True, help="a file of JSON lines")
    v.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")
    v.add_argument("--fantasia", default=os.path.join(HERE, "..", "bin", "fantasia"), help="the program")
    v.add_argument("--settings", type=json.loads, default={}, help="Fantasia's algorithm settings, a JSON object")
    v.set_defaults(do=run)

    v = verbs.add_parser("scale", help="make the scale that scores are relative to from a reference's runs")
    v.add_argument("runs", nargs="+")
    v.add_argument("--out", default=SCALE)
    v.add_argument("--note", required=True, help="which runs these are")
    v.set_defaults(do=scale)

    v = verbs.add_parser("report", help="tables of scores")
    v.add_argument("runs", nargs="+")
    v.add_argument("--scale", default=SCALE)
    v.add_argument("--at", type=numbers, default=[48, 128], metavar="48,128", help="evaluations")
    v.add_argument("--tuner", help="labels whose differences to the others are shown")
    v.set_defaults(do=show)

    a = parser.parse_args()
    a.do(a)


if __name__ == "__main__":
    main()
