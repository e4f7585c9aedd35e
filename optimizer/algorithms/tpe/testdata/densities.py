#!/usr/bin/env python3
"""Prints densities.json: densities of Optuna's Parzen estimator, as its TPESampler makes it.

    pip install optuna==5.0.0 && ./densities.py > densities.json

Each case has points and where the log density was evaluated, both as values of the
parameters. Optuna's density of a float is in its own unit (or its logarithm); the range's
logarithm is added, which makes it one on the unit interval. Optuna sorts by an unstable
algorithm, so the values of a case differ.
"""
import json
import math
import random

import numpy
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_gamma, default_weights

SPACE = {
    "plain": FloatDistribution(-5, 10),
    "log": FloatDistribution(1e-5, 1, log=True),
    "int": IntDistribution(1, 20),
    "intlog": IntDistribution(1, 256, log=True),
    "grid": FloatDistribution(0, 2, step=0.25),
    "choice": CategoricalDistribution(["a", "b", "c"]),
}
PARAMETERS = _ParzenEstimatorParameters(1.0, True, False, default_weights, True)
JACOBIAN = math.log(15) + math.log(math.log(1e5))


def draw(rng, n, few):
    """n points, no two of which share a value of a discrete parameter with an order."""
    columns = {"plain": [rng.uniform(-5, 10) for _ in range(n)], "log": [10 ** rng.uniform(-5, 0) for _ in range(n)], "choice": rng.choices("abc", k=n)}
    if few:
        columns |= {"int": rng.sample(range(1, 21), n), "intlog": rng.sample(range(1, 20), n - n // 2) + rng.sample(range(20, 257), n // 2)}
        columns["grid"] = [k / 4 for k in rng.sample(range(9), n)]
    return [{k: v[i] for k, v in columns.items()} for i in range(n)]


def internal(points, space):
    return {k: numpy.array([d.to_internal_repr(p[k]) for p in points], dtype=float) for k, d in space.items()}


def main():
    rng, cases = random.Random(1), []
    for n in (0, 1, 2, 9, 60, 150):
        few = n < 16
        space = {k: d for k, d in SPACE.items() if few or k in ("plain", "log", "choice")}
        points, at = draw(rng, n, few), draw(rng, 6, few)
        estimator = _ParzenEstimator(internal(points, space), space, PARAMETERS)
        logs = estimator.log_pdf(internal(at, space)) + JACOBIAN
        cases.append({"points": points, "at": at, "logs": logs.tolist()})
    good = {str(n): default_gamma(n) for n in (1, 10, 11, 95, 250, 251, 1000)}
    print(json.dumps({"cases": cases, "good": good, "weights": default_weights(30).tolist()}, indent=1))


if __name__ == "__main__":
    main()
