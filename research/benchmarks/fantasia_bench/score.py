"""The scores of runs, as Bayesmark defines them, and their uncertainty.

A loss y on a task becomes 100·(1 − clip((y − least) / (median − least), −1, 1)): `median` is that of single random
evaluations, `least` the least loss that any of the reference's runs has reached. 0 is a random point, 100 the best of the
reference. Scores are averaged over seeds, then over tasks.

seen   y is the least loss among the first n evaluations. Where evaluations are noisy this is the luckiest, too.
fresh  y is the mean loss of the incumbent, evaluated again; `least` is the least such mean. It is what a user gets.
"""

import json
import math
import random
import statistics
from collections import defaultdict

from .tuners import FANTASIA

KINDS = ("fresh", "seen")


def seen(run, n):
    """The least of the first n losses; inf where all failed."""
    return min((y for y in run.get("losses", [])[:n] if y is not None), default=math.inf)


def fresh(run, n):
    """The incumbent's mean loss at the last look up to n; inf where there is none."""
    looks = {int(at): look for at, look in run.get("fresh", {}).items() if look and int(at) <= n}
    return looks[max(looks)][0] if looks else math.inf


READ = {"seen": seen, "fresh": fresh}


class Scale:
    """What scores are relative to: {task: {"median": …, "seen": least, "fresh": least, "runs": number}}."""

    def __init__(self, tasks):
        self.tasks = tasks

    @classmethod
    def of(cls, runs):
        """That of the runs of others than Fantasia; it needs `random` in batches on each task."""
        single, least, count = defaultdict(list), defaultdict(lambda: dict.fromkeys(KINDS, math.inf)), defaultdict(int)
        for run in (r for r in runs if "error" not in r and not r["optimizer"].startswith(FANTASIA)):
            task = run["task"]
            count[task] += 1
            looks = [int(at) for at in run["fresh"]]
            least[task]["seen"] = min(least[task]["seen"], seen(run, len(run["losses"])))
            least[task]["fresh"] = min([least[task]["fresh"]] + [fresh(run, at) for at in looks])
            if run["optimizer"] == "random" and run["mode"] == "batch":
                single[task] += [math.inf if y is None else y for y in run["losses"]]
        return cls({t: {"median": statistics.median(single[t]), **least[t], "runs": count[t]} for t in sorted(single)})

    @classmethod
    def load(cls, path):
        with open(path) as file:
            return cls(json.load(file)["tasks"])

    def save(self, path, note):
        with open(path, "w") as file:
            json.dump({"note": note, "tasks": self.tasks}, file, indent=1)
            file.write("\n")

    def knows(self, task):
        """Whether a loss can be scored; it cannot where a random point is as good as any."""
        return task in self.tasks and all(self.tasks[task]["median"] - self.tasks[task][kind] > 1e-12 for kind in KINDS)

    def score(self, run, n, kind):
        """A run's score after n evaluations; a run that failed has that of a random point, one that ended early keeps its last."""
        if "error" in run:
            return 0.0
        task = self.tasks[run["task"]]
        regret = (READ[kind](run, n) - task[kind]) / (task["median"] - task[kind])
        return 100 * (1 - max(-1.0, min(1.0, regret)))


def by_task(scores):
    """{task: [score, ...]} of {(task, seed): score}."""
    grouped = defaultdict(list)
    for (task, _), value in scores.items():
        grouped[task].append(value)
    return dict(grouped)


def mean(grouped):
    """The mean over tasks of the means over seeds."""
    return statistics.fmean(statistics.fmean(values) for values in grouped.values())


def interval(grouped, draws=2000, level=0.95):
    """The bootstrap's percentile interval of `mean`: tasks are drawn with replacement, and seeds within each."""
    rng, names = random.Random(0), sorted(grouped)
    means = []
    for _ in range(draws):
        means.append(statistics.fmean(statistics.fmean(rng.choices(grouped[t], k=len(grouped[t]))) for t in rng.choices(names, k=len(names))))
    means.sort()
    tail = (1 - level) / 2
    return means[int(tail * draws)], means[min(draws - 1, int((1 - tail) * draws))]


def differences(mine, others):
    """Score differences of two {(task, seed): score} where both have a run."""
    return {k: mine[k] - others[k] for k in mine if k in others}
