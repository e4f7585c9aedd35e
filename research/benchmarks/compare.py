#!/usr/bin/env python3
"""Fantasia beside other tuners on Bayesmark's tasks; README.md says what is measured.

    compare.py run --tuners random,fantasia:hebo --tasks open --seeds 0-4 --modes batch,async --out runs.jsonl
    compare.py ablation --out runs.jsonl                   Fantasia's hebo with one part changed at a time
    compare.py report runs.jsonl --plots docs/images       tables of scores, and plots
    compare.py timing                                      seconds of a suggestion, side by side
    compare.py tables --out tables                         what the commands of its other tables print
    compare.py scale runs.jsonl --note WHICH               what scores are relative to, from other runs
"""

import argparse
import json
import os
import sys

from fantasia_bench import ablation, clock, definitions, publish, results, runner, score, tables, timing, tuners
from fantasia_bench.play import thread_variables

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


def growing(path):
    """The path of a file that runs are added to."""
    if path.endswith(".xz"):
        raise argparse.ArgumentTypeError(f"{path}: runs are added to a file that is not compressed, such as {path.removesuffix('.xz')}")
    return path


def run(a):
    names, modes = definitions.select(a.tasks), words(a.modes)
    if set(modes) - set(clock.MODES):
        sys.exit(f"--modes {a.modes}: want {', '.join(clock.MODES)}")
    play(runner.jobs(names, words(a.tuners), modes, a.seeds, a.fantasia, a.settings, a.trials), a)


def play(todo, a):
    failed = runner.run(todo, a.out, a.jobs)
    if failed:
        sys.exit(f"{failed} runs failed; the same command tries them again")


def ablate(a):
    """As `run`, for the optimiser as it is and with one part changed at a time."""
    todo = []
    for settings, _ in ablation.variants():
        made = tuners.make(ablation.ALGORITHM, definitions.task("kNN_wine_nll").space, 0, a.fantasia, settings)
        made.ask(1)  # a setting that the program does not know ends this here, not after hours
        made.close()
        todo += runner.jobs(definitions.select(a.tasks), [ablation.ALGORITHM], ["batch"], a.seeds, a.fantasia, settings, a.trials)
    play(sorted(todo, key=lambda job: job.seed), a)


def scale(a):
    made = score.Scale.of(results.load(*a.runs))
    made.save(a.out, a.note)
    print(f"{a.out}: {len(made.tasks)} tasks", file=sys.stderr)


def publish_sections(made, into):
    for name, markdown in made.items():
        print(f"### {name}\n\n{markdown}\n")
    if into:
        lacking = publish.into(into, made)
        print(f"{', '.join(into)}: {', '.join(name for name in made if name not in lacking) or 'none of these'}", file=sys.stderr)
        if lacking:
            print(f"no place for {', '.join(lacking)}: a place is the two lines <!-- compare NAME --> and <!-- end -->", file=sys.stderr)


def show(a):
    compared, without = publish.comparisons(results.load(*a.runs), score.Scale.load(a.scale), a.mixed)
    if not compared:
        sys.exit("none of these runs is of a task on the scale")
    publish_sections({a.place + name: made for name, made in publish.sections(compared, without, a.at).items()}, a.into)
    if a.plots:
        publish.save(publish.pictures(compared, without, a.at), a.plots)


def times(a):
    names = words(a.tuners)
    for name in names:
        try:
            tuners.check(name, a.fantasia)
        except tuners.UnavailableError as problem:
            sys.exit(str(problem))
    os.environ |= thread_variables(a.threads)  # before any tuner is loaded
    made = {n: timing.measure(names, n, a.rounds, a.fantasia, a.settings) for n in a.observations}
    made |= {n: timing.measure(names[:1], n, a.rounds, a.fantasia, a.settings) for n in a.alone}
    publish_sections({"timing": timing.table(made, names[0])}, a.into)


def other_tables(a):
    failed = tables.play(tables.commands(publish.published()), a.out, a.fantasia)
    if failed:
        sys.exit(f"{', '.join(failed)} failed; the same command tries them again")


def runs_options(v):
    v.add_argument("--tasks", default="open", help="open (36), other (72), all, other:12, other:12-24, names or patterns, with commas")
    v.add_argument("--trials", type=int, default=definitions.TRIALS, help="evaluations of a run")
    v.add_argument("--out", type=growing, required=True, help="a file of JSON lines; what it holds is not played again")
    v.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")


def fantasia_options(v):
    v.add_argument("--fantasia", default=os.path.join(HERE, "..", "..", "bin", "fantasia"), help="the program")


def settings_option(v):
    v.add_argument("--settings", type=json.loads, default={}, help="Fantasia's algorithm settings, a JSON object")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)

    v = verbs.add_parser("run", help="play runs and add them to a file")
    v.add_argument("--tuners", required=True, help="with commas: fantasia:ALGORITHM, " + ", ".join(tuners.NAMES))
    v.add_argument("--seeds", type=numbers, default=[0, 1, 2, 3, 4], metavar="0-4")
    v.add_argument("--modes", default="batch", help="with commas: " + ", ".join(clock.MODES))
    runs_options(v)
    fantasia_options(v)
    settings_option(v)
    v.set_defaults(do=run)

    v = verbs.add_parser("ablation", help="play Fantasia's hebo with one part changed at a time, in batches")
    v.add_argument("--seeds", type=numbers, default=list(ablation.SEEDS), metavar="0-2")
    runs_options(v)
    fantasia_options(v)
    v.set_defaults(do=ablate)

    v = verbs.add_parser("report", help="tables of scores, and plots")
    v.add_argument("runs", nargs="+")
    v.add_argument("--scale", default=SCALE)
    v.add_argument("--at", type=numbers, default=[48, 128], metavar="48,128", help="evaluations")
    v.add_argument("--into", nargs="+", help="pages to put the tables into, where they have places for them")
    v.add_argument("--place", default="", metavar="others-", help="what the names of its places there begin with")
    v.add_argument("--plots", help="a folder for plots")
    v.add_argument("--mixed", action="store_true", help="keep runs of older builds of Fantasia")
    v.set_defaults(do=show)

    v = verbs.add_parser("timing", help="seconds of a suggestion, side by side")
    v.add_argument("--tuners", default="fantasia:hebo,hebo,optuna-gp,optuna-tpe", help="the first is what the others are compared with")
    v.add_argument("--observations", type=numbers, default=[120], metavar="120,1000")
    v.add_argument("--alone", type=numbers, default=[], metavar="1000,10000", help="observations at which only the first is timed")
    v.add_argument("--rounds", type=int, default=5)
    v.add_argument("--threads", type=int, default=1, help="threads of each tuner; 1 (the default) does not depend on what else runs")
    v.add_argument("--into", nargs="+", help="pages to put the tables into, where they have places for them")
    fantasia_options(v)
    settings_option(v)
    v.set_defaults(do=times)

    v = verbs.add_parser("tables", help="run the commands of the blocks of docs/tune/benchmarks.md and research/results that say ```sh table=NAME, and keep what they print")
    v.add_argument("--out", required=True, help="a folder; what it holds is not run again")
    fantasia_options(v)
    v.set_defaults(do=other_tables)

    v = verbs.add_parser("seeds", help="a range of seeds, one a line")
    v.add_argument("seeds", type=numbers)
    v.set_defaults(do=lambda a: print(*a.seeds, sep="\n"))

    v = verbs.add_parser("scale", help="make the scale that scores are relative to from peers' runs")
    v.add_argument("runs", nargs="+")
    v.add_argument("--out", default=SCALE)
    v.add_argument("--note", required=True, help="which runs these are")
    v.set_defaults(do=scale)

    a = parser.parse_args()
    try:
        a.do(a)
    except KeyboardInterrupt:
        sys.exit("interrupted: the same command goes on where it was")


if __name__ == "__main__":
    main()
