#!/usr/bin/env python3
"""Repeats section 3 of HEBO's paper over Bayesmark's tasks: which are heteroscedastic, not stationary, or have acquisition functions that conflict.

    research/benchmarks/diagnoses.py play --out noise.jsonl              # evaluates; what the file holds is not evaluated again
    research/benchmarks/diagnoses.py examine noise.jsonl --fantasia bin/fantasia --out found.jsonl
    research/benchmarks/diagnoses.py report noise.jsonl found.jsonl      # the tables of research/results/papers.md

`play` takes some hours of one core for all 54 pairs of a model and a data set; the digits, the networks and lasso on the
breast cancers take most of it. --data and --models choose among them. It wants the Python that `research/benchmarks/setup tasks` makes.
"""

import argparse
import json
import os
import sys

from fantasia_bench import diagnoses, results


def play(a):
    held = {(r["model"], r["data"]) for r in results.load(a.out)} if os.path.exists(a.out) else set()
    with open(a.out, "a") as out:
        for model, data in diagnoses.pairs(a.models.split(","), a.data.split(",")):
            if (model, data) not in held:
                print(json.dumps(diagnoses.evaluate(model, data), separators=(",", ":")), file=out, flush=True)


def examine(a):
    held = {r["task"] for r in results.load(a.out)} if os.path.exists(a.out) else set()
    command = [sys.executable, os.path.abspath(__file__), "replay"]
    with open(a.out, "a") as out:
        for pair in results.load(a.evaluations):
            for task in diagnoses.tasks(pair["model"], pair["data"]):
                if task.name not in held:
                    losses = [y[0] for y in pair["losses"][task.metric]]
                    found = diagnoses.examine(os.path.abspath(a.fantasia), task, pair["points"], losses, command)
                    parts = {k: found[k] for k in ("completed", "explained", "transform", "warp", "conflict")}
                    print(json.dumps({"task": task.name} | parts, separators=(",", ":")), file=out, flush=True)


def report(a):
    for name, lines in diagnoses.tables(results.load(a.evaluations), results.load(a.found)).items():
        print("\n".join([f"{name}:", *lines, ""]))


def replay(a):
    with open(a.losses) as file:
        diagnoses.replay(json.load(file), sys.stdin, sys.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="play|examine|report")
    p = verbs.add_parser("play")
    p.add_argument("--models", default=",".join(diagnoses.MODELS), help="models, with commas, in the order in which they are evaluated")
    p.add_argument("--data", default=",".join(diagnoses.DATA), help="data sets, with commas")
    p.add_argument("--out", required=True)
    p = verbs.add_parser("examine")
    p.add_argument("evaluations")
    p.add_argument("--fantasia", default="bin/fantasia")
    p.add_argument("--out", required=True)
    p = verbs.add_parser("report")
    p.add_argument("evaluations")
    p.add_argument("found")
    verbs.add_parser("replay").add_argument("losses")
    a = parser.parse_args()
    {"play": play, "examine": examine, "report": report, "replay": replay}[a.verb](a)


if __name__ == "__main__":
    main()
