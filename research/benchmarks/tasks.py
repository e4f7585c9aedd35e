#!/usr/bin/env python3
"""Bayesmark's 108 tasks as a study's program.

    tasks.py list [GROUP]      the names; GROUP is open, other, all, other:12, or a pattern such as kNN_*
    tasks.py study TASK [--algorithm NAME] [--seed N] [--trials N] [--parallelism N]
                               a study file that `fantasia run` takes
    tasks.py serve TASK        evaluates: stream mode, the program of that study

`serve` and `study` want the Python that `research/benchmarks/setup tasks` makes.
"""

import argparse
import json
import sys

from fantasia_bench import definitions


def serve(name):
    task = definitions.task(name)
    try:
        from fantasia_bench import evaluator
    except ImportError as problem:
        sys.exit(f"{problem}: run `research/benchmarks/setup tasks`, and this with the python that it names")
    evaluator.serve(task)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|study|serve")
    verbs.add_parser("list").add_argument("group", nargs="?", default="all")
    study = verbs.add_parser("study")
    study.add_argument("task")
    study.add_argument("--algorithm", default="hebo")
    study.add_argument("--seed", type=int, default=0)
    study.add_argument("--trials", type=int, default=definitions.TRIALS)
    study.add_argument("--parallelism", type=int, default=definitions.WORKERS)
    verbs.add_parser("serve").add_argument("task")
    a = parser.parse_args()
    if a.verb == "list":
        print("\n".join(definitions.select(a.group)))
    elif a.verb == "study":
        print(json.dumps(definitions.study(a.task, a.algorithm, a.seed, a.trials, a.parallelism), indent=1))
    else:
        serve(a.task)


if __name__ == "__main__":
    main()
