"""HEBO's paper scores runs by an equation of its own: what it makes of the tuners here, beside Bayesmark's scale.

Its equation 3 relates the least loss of a run to that of random search with as many evaluations, so that random search scores 0
on average; here the sign is such that more is better. Its tables give random search 92.0, which the equation cannot.
"""

import statistics
from collections import defaultdict

from . import report, score

EVALUATIONS = 128

# The means of the paper's Table 4.
PAPER = {"hebo": 100.12, "hyperopt": 96.37, "nevergrad": 93.20, "random": 92.00}


def scores(comparison, scale, n=EVALUATIONS):
    """{tuner: (mean, median) over tasks} of the scores by the equation. Tasks where random search reaches the least loss have none."""
    search = {}
    for task, runs in _by_task(comparison.runs["random"]).items():
        mean = statistics.fmean(score.seen(r, n) for r in runs)
        if scale.tasks[task]["seen"] + 1e-12 < mean:
            search[task] = mean
    made = {}
    for tuner, runs in comparison.runs.items():
        means = []
        for task, of in _by_task(runs).items():
            if task in search:
                least = scale.tasks[task]["seen"]
                means.append(statistics.fmean(100 * (1 - (score.seen(r, n) - least) / (search[task] - least)) for r in of))
        made[tuner] = statistics.fmean(means), statistics.median(means)
    return made


def firsts(comparison, n=EVALUATIONS):
    """{tuner: number of tasks on which no other has a higher mean score}, of the tasks that all have run."""
    means = {}
    for tuner in comparison.runs:
        grouped = score.by_task(comparison.scores(tuner, n, "seen"))
        means[tuner] = {task: statistics.fmean(scores) for task, scores in grouped.items()}
    common = set.intersection(*map(set, means.values()))
    best = {task: max(of[task] for of in means.values()) for task in common}
    return {tuner: sum(of[task] >= best[task] - 1e-9 for task in common) for tuner, of in means.items()}


def _by_task(runs):
    grouped = defaultdict(list)
    for (task, _), run in runs.items():
        if "error" not in run:
            grouped[task].append(run)
    return grouped


def table(comparison, scale, n=EVALUATIONS):
    """The table of both scales, the best tuner first."""
    by_equation, ahead, rows = scores(comparison, scale, n), firsts(comparison, n), []
    for tuner in comparison.order(n, "seen"):
        gap = comparison.gaps("hebo", tuner, n, "seen") if tuner != "hebo" else None
        mean, median = by_equation[tuner]
        row = [f"`{tuner}`", f"{comparison.mean(tuner, n, 'seen'):.1f}", report.ranged(*gap[:3], sign="+") if gap else ""]
        rows.append([*row, f"{PAPER[tuner]:.1f}" if tuner in PAPER else "", str(ahead[tuner]), f"{mean:.0f}", f"{median:.0f}"])
    return report.table(["tuner", "Bayesmark's scale", "`hebo` less it", "in the paper", "first on", "equation 3, mean", "equation 3, median"], rows)
