"""Tables of scores, in Markdown."""

import statistics
import sys

from . import results, score


class Comparison:
    """The scores of one mode's runs on one scale."""

    def __init__(self, runs, scale, mode, mixed=False):
        self.runs, self.scale = {}, scale
        unknown = set()
        for run in results.latest(runs, mixed).values():
            if run["mode"] != mode:
                continue
            if scale.knows(run["task"]):
                self.runs.setdefault(run["optimizer"], {})[run["task"], run["seed"]] = run
            else:
                unknown.add(run["task"])
        if unknown:
            print(f"{mode}: {len(unknown)} tasks are not on the scale, and left out: {', '.join(sorted(unknown))}", file=sys.stderr)

        sets = {frozenset(own) for own in self.runs.values()}
        if len(sets) > 1:
            print(f"{mode}: not all tuners have run the same tasks and seeds, so that only the paired differences compare them", file=sys.stderr)

    def scores(self, tuner, n, kind):
        """{(task, seed): score} of a tuner after n evaluations."""
        return {k: self.scale.score(run, n, kind) for k, run in self.runs[tuner].items()}

    def mean(self, tuner, n, kind):
        return score.mean(score.by_task(self.scores(tuner, n, kind)))

    def order(self, n, kind="fresh"):
        """The tuners, the best first."""
        return sorted(self.runs, key=lambda t: -self.mean(t, n, kind))

    def gaps(self, tuner, other, n, kind):
        """(mean, low, high, number of pairs) of the paired differences, or None where no run is paired."""
        pairs = score.differences(self.scores(tuner, n, kind), self.scores(other, n, kind))
        grouped = score.by_task(pairs)
        return (score.mean(grouped), *score.interval(grouped), len(pairs)) if pairs else None


def table(head, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def ranged(value, low, high, sign=""):
    """A value with its interval."""
    return f"{value:{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"


def named(tuner, names=None):
    """A tuner's label as a table shows it."""
    return (names or {}).get(tuner, f"`{tuner}`")


def scores(comparison, at):
    """Fresh and seen scores with their 95% intervals, the best fresh one first."""
    columns = [(n, kind) for kind in score.KINDS for n in at]
    rows = []
    for tuner in comparison.order(at[-1]):
        row = [named(tuner)]
        for n, kind in columns:
            grouped = score.by_task(comparison.scores(tuner, n, kind))
            row.append(ranged(score.mean(grouped), *score.interval(grouped)))
        runs = comparison.runs[tuner]
        rows.append([*row, str(len({t for t, _ in runs})), str(len(runs)), str(sum("error" in r for r in runs.values()))])
    return table(["tuner", *(f"{kind}, {n}" for n, kind in columns), "tasks", "runs", "failed"], rows)


def differences(comparison, tuner, at, names=None, others=None):
    """A tuner less each other, on the tasks and seeds that both have run."""
    columns = [(n, kind) for kind in score.KINDS for n in at]
    rows = []
    for other in others or comparison.order(at[-1]):
        if other == tuner or other not in comparison.runs:
            continue
        gaps = [comparison.gaps(tuner, other, n, kind) for n, kind in columns]
        if gaps[0]:
            rows.append([named(other, names), *(ranged(*g[:3], sign="+") for g in gaps), str(gaps[0][3])])
    return table([f"{named(tuner, names)} less", *(f"{kind}, {n}" for n, kind in columns), "pairs"], rows)


def models(comparison, n, kind="fresh"):
    """The score on each model."""
    tasks = sorted({t for runs in comparison.runs.values() for t, _ in runs})
    models = list(dict.fromkeys(t.split("_")[0] for t in tasks))
    rows = []
    for tuner in comparison.order(n, kind):
        own = comparison.scores(tuner, n, kind)
        row = [named(tuner)]
        for model in models:
            grouped = score.by_task({k: v for k, v in own.items() if k[0].split("_")[0] == model})
            row.append(f"{score.mean(grouped):.1f}" if grouped else "")
        rows.append(row)
    return table(["tuner", *models], rows)


def asking(comparison):
    """The seconds that a run's asks take together: mean, median, largest."""
    rows = []
    for tuner, runs in comparison.runs.items():
        sums = [sum(r["asks"]) for r in runs.values() if "asks" in r]
        if sums:
            rows.append((statistics.median(sums), [named(tuner), *(f"{v:.2f}" for v in (statistics.fmean(sums), statistics.median(sums), max(sums)))]))
    return table(["tuner", "mean, s", "median, s", "largest, s"], [row for _, row in sorted(rows)])


def asynchronous(batch, free, at):
    """Each tuner's asynchronous runs less its own in batches, on the same tasks and seeds."""
    columns = [(n, kind) for kind in score.KINDS for n in at]
    rows = []
    for tuner in free.order(at[-1]):
        cells = []
        for n, kind in columns:
            pairs = score.differences(free.scores(tuner, n, kind), batch.scores(tuner, n, kind)) if tuner in batch.runs else {}
            grouped = score.by_task(pairs)
            cells.append(ranged(score.mean(grouped), *score.interval(grouped), sign="+") if pairs else "")
        if any(cells):
            rows.append([named(tuner), *cells])
    return table(["asynchronous less batches", *(f"{kind}, {n}" for n, kind in columns)], rows)
