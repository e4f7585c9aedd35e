"""Writes hypervolume.json with mpmath 1.4.1 at 60 digits (Python 3.12 or later).

Run from optimizer/bayes/acquisition: python3 testdata/hypervolume.py

The expected hypervolume improvement is the integral, over all z that the front does not
dominate, of the probability that the point dominates z. Here the space is cut into the
cells between all coordinates of the front, which needs no clever decomposition.
"""
import itertools
import json
import random

import mpmath as mp

mp.mp.dps = 60
random.seed(20261127)


def below(mean, sd, edge):
    """E[max(edge - f, 0)] of a normal f."""
    z = (mp.mpf(edge) - mp.mpf(mean)) / mp.mpf(sd)
    return mp.mpf(sd) * (mp.npdf(z) + z * mp.ncdf(z))


def log_ehvi(front, reference, mean, sd):
    with mp.workdps(900):  # differences in the tails cancel
        total = mp.mpf(0)
        edges = [sorted({p[i] for p in front} | {r}) for i, r in enumerate(reference)]
        cells = [list(zip([None] + e[:-1], e)) for e in edges]
        value = [[below(m, s, b) - (0 if a is None else below(m, s, a)) for a, b in c] for c, m, s in zip(cells, mean, sd)]
        for cell in itertools.product(*[range(len(c)) for c in cells]):
            high = [cells[i][k][1] for i, k in enumerate(cell)]
            inside = all(h <= r for h, r in zip(high, reference))
            if not inside or any(all(x < h for x, h in zip(p, high)) for p in front):
                continue
            term = mp.mpf(1)
            for i, k in enumerate(cell):
                term *= value[i][k]
            total += term
        return mp.log(total)


def derivative(f, x, i):
    step = mp.mpf(10) ** -30
    ends = []
    for sign in (1, -1):
        y = [mp.mpf(v) for v in x]
        y[i] += sign * step
        ends.append(f(y))
    return (ends[0] - ends[1]) / (2 * step)


cases = []
for objectives in (1, 2, 3, 4):
    for number, scale in [(0, 1), (1, 1), (4, 1), (6, 0.2), (6, 10), (3, 30)]:
        if objectives == 4:
            number = min(number, 4)
        front = [[round(random.gauss(0, 1), 3) for _ in range(objectives)] for _ in range(number)]
        reference = [round(random.uniform(1, 2), 3) for _ in range(objectives)]
        mean = [round(random.gauss(0, 1) * scale, 3) for _ in range(objectives)]
        sd = [round(random.uniform(0.05, 1.5), 3) for _ in range(objectives)]
        front = [p for p in front if all(x < r for x, r in zip(p, reference))]
        case = {"front": front, "reference": reference, "mean": mean, "sd": sd}
        case["log"] = mp.nstr(log_ehvi(front, reference, mean, sd), 20)
        case["d_mean"] = [mp.nstr(derivative(lambda m: log_ehvi(front, reference, m, sd), mean, i), 20) for i in range(objectives)]
        case["d_sd"] = [mp.nstr(derivative(lambda s: log_ehvi(front, reference, mean, s), sd, i), 20) for i in range(objectives)]
        for key in ("d_mean", "d_sd"):
            case[key] = [float(v) for v in case[key]]
        case["log"] = float(case["log"])
        cases.append(case)
with open("testdata/hypervolume.json", "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
