#!/usr/bin/env python3
"""Prints densities.json: densities and bandwidths of statsmodels' KDEMultivariate.

    pip install statsmodels==0.15.0 && ./densities.py > densities.json

Each case has data, the kinds of its columns (c for numbers, u for unordered and o for ordered
values), the bandwidths of the normal reference rule, and densities at some points with those
bandwidths, or with given ones.
"""
import json
import random

import numpy
from statsmodels.nonparametric.kernel_density import KDEMultivariate

rng = random.Random(1)
LEVELS = {"u": 3, "o": 5}


def value(kind, spread):
    return rng.uniform(0.5 - spread, 0.5 + spread) if kind == "c" else float(rng.randrange(LEVELS[kind]))


cases = []
for kinds, rows, spread, widths in [
    ("c", 4, 0.5, None),
    ("ccc", 12, 0.1, None),
    ("cccccc", 40, 0.5, None),
    ("u", 9, 0, [0.3]),
    ("o", 9, 0, [0.4]),
    ("cuoc", 20, 0.4, [0.05, 0.2, 0.3, 0.7]),
    ("uuoo", 25, 0, [0.6, 0.1, 0.9, 0.05]),
]:
    data = [[value(kind, spread) for kind in kinds] for _ in range(rows)]
    for column, kind in enumerate(kinds):  # statsmodels takes the values that it sees for all
        if kind == "u":
            for level in range(LEVELS[kind]):
                data[level][column] = float(level)
    reference = KDEMultivariate(numpy.array(data), kinds, bw="normal_reference").bw
    model = KDEMultivariate(numpy.array(data), kinds, bw=numpy.array(reference if widths is None else widths))
    points = [[value(kind, 0.5) for kind in kinds] for _ in range(12)]
    cases.append({
        "kinds": kinds, "data": data, "reference": list(reference), "width": list(model.bw), "points": points,
        "densities": [float(model.pdf(numpy.array([p]))) if len(kinds) > 1 else float(model.pdf(numpy.array(p))) for p in points],
    })
print(json.dumps(cases, indent=1))
