"""Writes sklearn.json with scikit-learn 1.9.1 (numpy 2.4.6, SciPy 1.17.1): the
posterior mean, variance and log marginal likelihood of
ConstantKernel * Matern(nu=2.5, ARD) + WhiteKernel with fixed hyperparameters,
and the largest log marginal likelihood that it finds with free ones.

Run from optimizer/bayes/gp: python3 testdata/reference.py
"""
import json

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel


def case(name, seed, n, d, lengths, signal, noise, duplicate=False):
    rng = np.random.default_rng(seed)
    x, at = rng.random((n, d)), rng.random((5, d))
    if duplicate:
        x[n // 2:] = x[: n - n // 2]
    y = np.sin(3 * x.sum(axis=1)) + np.sqrt(noise) * rng.standard_normal(n)
    at[0] = x[0]
    signal_kernel = ConstantKernel(signal, "fixed") * Matern(lengths, "fixed", nu=2.5)
    gp = GaussianProcessRegressor(signal_kernel + WhiteKernel(noise, "fixed"), alpha=0, optimizer=None).fit(x, y)
    mean, cov = gp.predict(at, return_cov=True)
    # predict's covariance includes WhiteKernel's noise at new points; the
    # variance of the function does not.
    free = ConstantKernel(1, (1e-3, 1e3)) * Matern(np.full(d, 0.5), (1e-2, 1e3), nu=2.5) + WhiteKernel(1e-2, (1e-6, 10))
    best = GaussianProcessRegressor(free, alpha=0, n_restarts_optimizer=20, random_state=0).fit(x, y)
    return {
        "name": name, "x": x.tolist(), "y": y.tolist(), "at": at.tolist(), "lengths": list(lengths),
        "signal": signal, "noise": noise, "mean": mean.tolist(), "variance": (np.diag(cov) - noise).tolist(),
        "log_likelihood": float(gp.log_marginal_likelihood_value_),
        "best_log_likelihood": float(best.log_marginal_likelihood_value_),
    }


cases = [
    case("one point", 1, 1, 1, [0.3], 1.0, 1e-2),
    case("two columns", 2, 12, 2, [0.3, 1.5], 1.7, 1e-3),
    case("duplicates", 3, 10, 2, [0.5, 0.5], 1.0, 1e-2, duplicate=True),
    case("nine columns", 4, 60, 9, list(np.geomspace(0.2, 8, 9)), 0.8, 5e-2),
    case("noisy", 5, 40, 3, [0.1, 0.4, 3.0], 2.5, 1.0),
]
with open("testdata/sklearn.json", "w") as out:
    json.dump(cases, out)
    out.write("\n")
