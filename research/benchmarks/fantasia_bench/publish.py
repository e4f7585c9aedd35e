"""All tables and plots of a results file, and their way into a document."""

import glob
import os
import re
import sys

from . import ablation, clock, plots, report, score
from .tuners import FANTASIA

_MODES = {"batch": "batches of 8", "async": "8 workers, asynchronous", "sequential": "one at a time"}


def comparisons(runs, scale, mixed=False):
    """({mode: Comparison} of the tuners, Comparison of the ablation in batches, on what the variants have played, or None)."""
    variants = set(ablation.names()) - {ablation.ALGORITHM}
    played = {(r["task"], r["seed"]) for r in runs if r["optimizer"] in variants}
    parts = {mode: report.Comparison([r for r in runs if r["optimizer"] not in variants], scale, mode, mixed) for mode in clock.MODES}
    without = report.Comparison([r for r in runs if r["optimizer"] in variants | {ablation.ALGORITHM} and (r["task"], r["seed"]) in played], scale, "batch", mixed)
    ablated = len(without.runs) > 1 and ablation.ALGORITHM in without.runs
    return {mode: c for mode, c in parts.items() if c.runs}, without if ablated else None


def mains(comparison):
    """The tuners whose differences to the others are shown."""
    return [t for t in comparison.order(10**9) if t.startswith(FANTASIA)]


def sections(compared, without, at):
    """{name: Markdown}."""
    made = {}
    for mode, comparison in compared.items():
        made[f"scores-{mode}"] = report.scores(comparison, at)
        for tuner in mains(comparison)[:1]:
            made[f"differences-{mode}"] = report.differences(comparison, tuner, at)
        made[f"models-{mode}"] = report.models(comparison, at[-1])
        made[f"asking-{mode}"] = report.asking(comparison)
    if {"batch", "async"} <= set(compared):
        made["async-batch"] = report.asynchronous(compared["batch"], compared["async"], at)
    if without:
        made["ablation"] = ablation_table(without, at)
    return made


def ablation_table(without, at):
    """Each variant less the optimiser as it is, paired: what a part is worth, with the sign turned."""
    base, names = ablation.ALGORITHM, ablation.names()
    rows = []
    for label in (label for label in names if label in without.runs and label != base):
        gaps = [without.gaps(label, base, n, kind) for kind in score.KINDS for n in at]
        rows.append([names[label], *(report.ranged(*gap[:3], sign="+") if gap else "" for gap in gaps), str(len(without.runs[label]))])
    head = ["settings, less as it is", *(f"{kind}, {n}" for kind in score.KINDS for n in at), "runs"]
    return report.table(head, rows)


def pictures(compared, without, at):
    """{file name: SVG}."""
    made = {}
    for mode, comparison in compared.items():
        main = next(iter(mains(comparison)), comparison.order(at[-1])[0])
        tasks = len({t for runs in comparison.runs.values() for t, _ in runs})
        made[f"scores-{mode}.svg"] = plots.scores(comparison, main, at[-1], f"Scores on {tasks} tasks, {_MODES[mode]}")
        if len(comparison.runs) > 1:
            made[f"differences-{mode}.svg"] = plots.differences(comparison, main, at[-1], f"{main} less each other after {at[-1]} evaluations, {_MODES[mode]}")
    if without:
        title = f"As it is less each variant after {at[-1]} evaluations"
        made["ablation.svg"] = plots.differences(without, ablation.ALGORITHM, at[-1], title, ablation.names())
    return made


def save(drawn, folder):
    os.makedirs(folder, exist_ok=True)
    for name, svg in drawn.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(svg)
        print(os.path.join(folder, name), file=sys.stderr)


_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")

# The pages with tables: what users decide by, and the rest.
PAGES = [os.path.join(_ROOT, "docs", "tune", "benchmarks.md"), *sorted(glob.glob(os.path.join(_ROOT, "research", "results", "*.md")))]


def published(paths=PAGES):
    """The text of all pages."""
    made = []
    for path in paths:
        with open(path) as file:
            made.append(file.read())
    return "\n".join(made)


def places(text):
    """{name: what stands there} of the places of a document's text."""
    return {name: words.strip() for name, words in re.findall(r"<!-- compare (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL)}


def into(paths, made):
    """Puts each section between `<!-- compare NAME -->` and `<!-- end -->` of the page that has these lines; returns the names that none has."""
    for path in paths:
        made = {name: made[name] for name in _into(path, made)}
    return list(made)


def _into(path, made):
    with open(path) as file:
        text = file.read()
    lacking = []
    for name, markdown in made.items():
        place = re.compile(rf"(<!-- compare {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = place.subn(lambda found, words=markdown: f"{found[1]}\n{words}\n\n{found[2]}", text)
        if not count:
            lacking.append(name)
    with open(path, "w") as file:
        file.write(text)
    return lacking
