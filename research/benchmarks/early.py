#!/usr/bin/env python3
"""Other tuners that stop trials early, on the table of curves and in virtual time, beside research/stopping.

    early.py play --tuner optuna-random --out results/early.jsonl
    early.py report results/early.jsonl [--into docs/tune/benchmarks.md research/results/*.md]
"""

import argparse
import json
import os
import warnings

from fantasia_bench import curves, early

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = flags.add_subparsers(dest="command", required=True)
    play = commands.add_parser("play", help="play a tuner; what the file holds is not played again")
    play.add_argument("--tuner", required=True, choices=sorted(early.TUNERS))
    play.add_argument("--seeds", type=int, default=9, help="how many seeds, from 0 on")
    play.add_argument("--table", default=os.path.join(HERE, "curves.gz"))
    play.add_argument("--out", required=True)
    report = commands.add_parser("report", help="the tables of early stopping")
    report.add_argument("results", nargs="+")
    report.add_argument("--into", nargs="+", help="the pages whose places to fill")
    given = flags.parse_args()
    if given.command == "report":
        early.report(early.load(given.results), given.into)
        return
    warnings.simplefilter("ignore")
    table = curves.Table(given.table)
    held = {(r["tuner"], r["data"], r["seed"]) for r in early.load([given.out])}
    with open(given.out, "a") as out:
        for seed in range(given.seeds):
            for data in table.data:
                if (given.tuner, data, seed) not in held:
                    print(json.dumps(early.play(given.tuner, table, data, seed)), file=out, flush=True)


if __name__ == "__main__":
    main()
