"""Writes hypervolume.json with moocore 0.3.2 and pymoo 0.6.2 (Python 3.12 or later).

Run from optimizer/numeric/pareto: python3 testdata/hypervolume.py
"""
import json

import moocore
import numpy
from pymoo.indicators.hv import HV

random = numpy.random.default_rng(20261127)
cases = []
for objectives in range(2, 9):
    for shape, count in [("cube", 25), ("simplex", 25), ("sphere", 12), ("grid", 25)]:
        x = random.uniform(size=(count, objectives))
        if shape == "simplex":  # a front without inner points
            x = random.exponential(size=(count, objectives))
            x /= x.sum(axis=1, keepdims=True)
        elif shape == "sphere":
            x = 1 - numpy.abs(random.normal(size=(count, objectives)))
            x = 1 - (1 - x) / numpy.linalg.norm(1 - x, axis=1, keepdims=True)
        elif shape == "grid":  # equal coordinates and equal points
            x = numpy.floor(x * 4) / 4
        reference = [0.9] * objectives  # some points are not below it
        volume = float(moocore.hypervolume(x, ref=reference))
        assert abs(volume - HV(ref_point=numpy.array(reference))(x)) < 1e-12
        cases.append({"shape": shape, "points": x.tolist(), "reference": reference, "volume": volume})
with open("testdata/hypervolume.json", "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
