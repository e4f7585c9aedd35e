"""Writes constrained.json with scikit-learn 1.9.1 and SciPy 1.17.1: the logarithm of the expected
improvement within two limits (Gardner et al. 2014, equation 4), integrated over independent
posteriors of scikit-learn's processes with fixed hyperparameters.

Run from optimizer/bayes/loop: python3 testdata/constrained.py
"""
import json
import math

import numpy as np
from scipy import integrate, stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

x = np.array([[0.1, 0.2], [0.7, 0.3], [0.4, 0.9], [0.8, 0.8], [0.3, 0.5]])
y = np.array([0.3, -0.6, 1.2, 0.1, -0.2])
at = np.array([[0.5, 0.5], [0.15, 0.9], [0.95, 0.05], [0.7, 0.35], [0.02, 0.6]])
INCUMBENT, BOUNDS, NOISE = -0.6, [0.1, -0.4], 1e-3


def posterior(log_length):
    kernel = Matern(math.exp(log_length), "fixed", nu=2.5) + WhiteKernel(NOISE, "fixed")
    mean, cov = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(x, y).predict(at, return_cov=True)
    return mean, np.sqrt(np.diag(cov) - NOISE)  # of the function, without noise


objective, limit = posterior(-1.5), posterior(-1)
rows = []
for i, point in enumerate(at):
    mean, sd = objective[0][i], objective[1][i]
    improvement, _ = integrate.quad(
        lambda f: (INCUMBENT - f) * stats.norm.pdf(f, mean, sd), mean - 40 * sd, INCUMBENT,
        points=[min(mean, INCUMBENT)],
        epsabs=0, epsrel=1e-11, limit=500)
    within = [integrate.quad(lambda c: stats.norm.pdf(c, limit[0][i], limit[1][i]), limit[0][i] - 40 * limit[1][i], b,
                             points=[min(limit[0][i], b)], epsabs=0, epsrel=1e-11, limit=500)[0] for b in BOUNDS]
    rows.append({"at": list(point), "log": math.log(improvement) + sum(math.log(p) for p in within)})
with open("testdata/constrained.json", "w") as out:
    json.dump({"incumbent": INCUMBENT, "bounds": BOUNDS, "rows": rows}, out, indent=1)
    out.write("\n")
