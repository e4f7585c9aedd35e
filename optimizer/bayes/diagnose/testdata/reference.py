"""Writes reference.json with SciPy 1.17.1 and NumPy 2.4 (Python 3.11 or later).

Run from optimizer/bayes/diagnose: python3 testdata/reference.py
"""
import json

import numpy as np
from scipy import stats

rng = np.random.default_rng(20260301)


def groups(sizes, scales, draw):
    return [(s * draw(n)).tolist() for n, s in zip(sizes, scales)]


normal = rng.standard_normal
cases = {
    "equal normal": groups([10, 10, 10], [1, 1, 1], normal),
    "growing normal": groups([12, 9, 15, 20], [1, 2, 3, 4], normal),
    "two small": groups([3, 3], [1, 10], normal),
    "heavy tails": groups([25, 25], [1, 1], lambda n: rng.standard_t(2, n)),
    "skewed": groups([14, 17, 11], [1, 1, 1.5], lambda n: rng.lognormal(0, 1, n)),
    "far away": [(1e6 + np.array(g)).tolist() for g in groups([10, 12], [1, 2], normal)],
    "tiny p": groups([200, 200], [1, 6], normal),
    "fifty of ten": groups([10] * 50, np.linspace(1, 2, 50), normal),
    "ties": [[1, 1, 2, 3, 3], [2, 2, 2, 5, 9, 9], [0, 1, 1, 4]],
    # The counts of the data set InsectSprays of R (Beall 1942).
    "insect sprays": [
        [10, 7, 20, 14, 14, 12, 10, 23, 17, 20, 14, 13],
        [11, 17, 21, 11, 16, 14, 17, 17, 19, 21, 7, 13],
        [0, 1, 7, 2, 3, 1, 2, 1, 3, 0, 1, 4],
        [3, 5, 12, 6, 4, 3, 5, 5, 5, 5, 2, 4],
        [3, 5, 3, 5, 3, 6, 1, 1, 3, 2, 6, 4],
        [11, 9, 15, 22, 15, 16, 13, 10, 26, 26, 24, 13],
    ],
}


def outcome(test):
    return [float(test.statistic), float(test.pvalue)]


tests = [
    {
        "name": name,
        "groups": g,
        "median": outcome(stats.levene(*g, center="median")),
        "mean": outcome(stats.levene(*g, center="mean")),
        "fligner": outcome(stats.fligner(*g)),
    }
    for name, g in cases.items()
]

x = rng.standard_normal(40)
pairs = {
    "alike": (x, x + 0.5 * rng.standard_normal(40)),
    "opposed": (x, -(x**3)),
    "unrelated": (x, rng.standard_normal(40)),
    "ties": (np.round(x), np.round(x + rng.standard_normal(40))),
    "two": (np.array([1.0, 2.0]), np.array([3.0, 1.0])),
}
ranks = [
    {
        "name": name,
        "x": a.tolist(),
        "y": b.tolist(),
        "ranks": stats.rankdata(a).tolist(),
        "spearman": float(stats.spearmanr(a, b).statistic),
        "kendall": float(stats.kendalltau(a, b).statistic),
    }
    for name, (a, b) in pairs.items()
]

with open("testdata/reference.json", "w") as out:
    json.dump({"tests": tests, "ranks": ranks}, out, indent=0)
    out.write("\n")
