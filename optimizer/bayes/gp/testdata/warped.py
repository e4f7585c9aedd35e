"""Writes warped.json with mpmath 1.4.1 at 50 digits, and checks it against
scikit-learn 1.9.1 (numpy 2.4.6, SciPy 1.17.1): the posterior mean and variance,
the log marginal likelihood and its derivatives by all hyperparameters in log
space, of a Gaussian process with fixed hyperparameters and the kernel

    s Matern(nu=1.5, ARD)(w(x), w(y)) + v sum_c (2 w(x_c) - 1) (2 w(y_c) - 1)

where w is Kumaraswamy's distribution function with shapes a, b of its own for
each column, of coordinates that were mapped from [0, 1] to [1e-6, 1 - 1e-6].

Run from optimizer/bayes/gp: python3 testdata/warped.py
"""
import json

import numpy as np
from mpmath import cholesky_solve, diff, exp, eye, log, matrix, mp, mpf, pi, sqrt
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

mp.dps = 50
epsilon = mpf(10) ** -6


def warp(x, a, b):
    u = epsilon + (1 - 2 * epsilon) * mpf(x)
    return 1 - (1 - u**a) ** b


def kernel(theta, x, y):
    """theta: log lengths, log s, log v, then log a, log b of each column."""
    d = len(x)
    shapes = [exp(t) for t in theta[d + 2 :]]
    x = [warp(v, shapes[2 * c], shapes[2 * c + 1]) for c, v in enumerate(x)]
    y = [warp(v, shapes[2 * c], shapes[2 * c + 1]) for c, v in enumerate(y)]
    a = sqrt(3 * sum(((p - q) / exp(theta[c])) ** 2 for c, (p, q) in enumerate(zip(x, y))))
    linear = sum((2 * p - 1) * (2 * q - 1) for p, q in zip(x, y))
    return exp(theta[d]) * (1 + a) * exp(-a) + exp(theta[d + 1]) * linear


def covariance(theta, x, noise):
    n = len(x)
    k = noise * eye(n)
    for i in range(n):
        for j in range(n):
            k[i, j] += kernel(theta, x[i], x[j])
    return k


def log_likelihood(theta, x, y, noise):
    """Rasmussen and Williams, equation 2.30; the last of theta is log noise if noise is None."""
    if noise is None:
        theta, noise = theta[:-1], exp(theta[-1])
    k, y = covariance(theta, x, noise), matrix([mpf(v) for v in y])
    factor = mp.cholesky(k)
    log_det = 2 * sum(log(factor[i, i]) for i in range(len(x)))
    return -(y.T * cholesky_solve(k, y))[0] / 2 - log_det / 2 - len(x) * log(2 * pi) / 2


def case(name, seed, n, lengths, signal, slope, shapes, noise):
    rng = np.random.default_rng(seed)
    d = len(lengths)
    x, at = rng.random((n, d)), rng.random((4, d))
    x[0], at[0] = np.round(x[0]), x[1]  # a corner and a data point
    y = np.sin(3 * x.sum(axis=1)) + x[:, 0] + np.sqrt(noise) * rng.standard_normal(n)
    theta = [log(mpf(v)) for v in [*lengths, signal, slope, *shapes]]
    k = covariance(theta, x, mpf(noise))
    mean, variance = [], []
    for p in at:
        cross = matrix([kernel(theta, p, q) for q in x])
        solved = cholesky_solve(k, cross)
        mean.append(float((solved.T * matrix([mpf(v) for v in y]))[0]))
        variance.append(float(kernel(theta, p, p) - (solved.T * cross)[0]))
    everything = [*theta, log(mpf(noise))]
    gradient = []
    for i in range(len(everything)):
        def along(t, i=i):
            return log_likelihood([*everything[:i], t, *everything[i + 1 :]], x, y, None)
        gradient.append(float(diff(along, everything[i])))
    likelihood = float(log_likelihood(theta, x, y, mpf(noise)))

    bent = lambda m: np.array([[float(warp(v, mpf(shapes[2 * c]), mpf(shapes[2 * c + 1]))) for c, v in enumerate(r)] for r in m])
    centred = lambda m: 2 * bent(m) - 1
    # Distances between 2w - 1 are twice those between w.
    composite = ConstantKernel(signal) * Matern(2 * np.array(lengths), nu=1.5) + ConstantKernel(slope) * DotProduct(0, "fixed") + WhiteKernel(noise)
    gp = GaussianProcessRegressor(composite, alpha=0, optimizer=None).fit(centred(x), y)
    their_mean, their_cov = gp.predict(centred(at), return_cov=True)
    np.testing.assert_allclose(mean, their_mean, rtol=1e-8)
    np.testing.assert_allclose(variance, np.diag(their_cov) - noise, rtol=1e-7)
    their_likelihood, their_gradient = gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)
    np.testing.assert_allclose(likelihood, their_likelihood, rtol=1e-9)
    # In their order: signal, lengths, slope, noise.
    np.testing.assert_allclose([gradient[d], *gradient[:d], gradient[d + 1], gradient[-1]], their_gradient, rtol=1e-6)
    return {
        "name": name, "x": x.tolist(), "y": y.tolist(), "at": at.tolist(),
        "lengths": lengths, "signal": signal, "slope": slope, "shapes": shapes, "noise": noise,
        "mean": mean, "variance": variance, "log_likelihood": likelihood, "gradient": gradient,
    }


cases = [
    case("one column", 1, 6, [0.3], 1.0, 0.5, [1.0, 1.0], 1e-2),
    case("two columns", 2, 12, [0.3, 1.5], 1.7, 0.2, [0.4, 2.0, 3.0, 0.7], 1e-3),
    case("extreme shapes", 3, 14, [0.2, 0.6, 2.0], 0.8, 1.0, [9.0, 0.05, 0.05, 9.0, 5.0, 6.0], 5e-2),
]
with open("testdata/warped.json", "w") as out:
    json.dump(cases, out)
    out.write("\n")
