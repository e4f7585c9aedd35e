"""Writes reference.json: the power transforms of SciPy 1.17.1 (NumPy 2.4.6) on
samples of several shapes. The log-likelihoods are those of scipy.stats, in which
a variance is divided by n.

Run from optimizer/bayes/transform: python3 testdata/reference.py
"""
import json

import numpy as np
from scipy import optimize, stats

rng = np.random.default_rng(20221)
LOW, HIGH = -5, 2  # the bounds of lambda


def best(llf):
    """The bounded maximum, from a fine grid and a bounded Brent search."""
    grid = np.linspace(LOW, HIGH, 2001)
    values = [llf(g) for g in grid]
    i = int(np.argmax(values))
    lo, hi = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    r = optimize.minimize_scalar(lambda g: -llf(g), bounds=(lo, hi), method="bounded", options={"xatol": 1e-10})
    return (r.x, -r.fun) if -r.fun > values[i] else (grid[i], values[i])


samples = {
    "normal": rng.normal(10, 1, 40),
    "lognormal": rng.lognormal(0, 1, 60),
    "wide lognormal": rng.lognormal(3, 4, 30),
    "exponential": rng.exponential(2, 50),
    "error rates": 0.05 + 0.9 * rng.beta(1, 6, 48),
    "left skewed": 1 - rng.beta(1, 5, 33),
    "mixed signs": rng.gumbel(0, 2, 45),
    "negative": -rng.gamma(2, 3, 25),
    "few": np.array([0.31, 0.74, 0.33, 0.9, 0.41]),
}
cases = []
for name, y in samples.items():
    case = {"name": name, "y": y.tolist()}
    scaled = y / y.std(ddof=1)
    lam, llf = best(lambda g: stats.yeojohnson_llf(g, scaled))
    case["yeojohnson"] = {"lambda": lam, "llf": llf, "at": [[g, stats.yeojohnson_llf(g, scaled)] for g in (-3.0, -0.5, 0.0, 0.7, 2.0, 4.0)],
                          "z": stats.zscore(stats.yeojohnson(scaled, lam), ddof=1).tolist()}
    if LOW + 1e-6 < lam < HIGH - 1e-6:  # SciPy's own search, as a check of the script
        assert abs(stats.yeojohnson(scaled)[1] - lam) < 1e-4, name
    if (y > 0).all():
        lam, llf = best(lambda g: stats.boxcox_llf(g, y))
        case["boxcox"] = {"lambda": lam, "llf": llf, "at": [[g, stats.boxcox_llf(g, y)] for g in (-3.0, -0.5, 0.0, 0.7, 2.0, 4.0)],
                          "z": stats.zscore(stats.boxcox(y, lam), ddof=1).tolist()}
        if LOW + 1e-6 < lam < HIGH - 1e-6:
            assert abs(stats.boxcox(y)[1] - lam) < 1e-4, name
    cases.append(case)

with open("testdata/reference.json", "w") as f:
    json.dump({"cases": cases}, f, indent=1)
    f.write("\n")
