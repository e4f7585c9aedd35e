"""Writes sobol.json: points of scipy.stats.qmc.Sobol(d, scramble=False, bits=32)
of SciPy 1.17.1, as unsigned multiples of 2^-32.

Run from optimizer/numeric/design: python3 testdata/sobol.py
"""
import json

from scipy.stats import qmc


def points(d, start, count):
    engine = qmc.Sobol(d, scramble=False, bits=32)
    if start:
        engine.fast_forward(start)
    return [[int(v * 2**32) for v in row] for row in engine.random(count)]


cases = [(1, 0, 16), (2, 0, 16), (9, 0, 64), (21, 1000, 16), (40, 2**20 - 4, 8), (1111, 4093, 3)]
with open("testdata/sobol.json", "w") as out:
    json.dump([{"dim": d, "start": s, "points": points(d, s, n)} for d, s, n in cases], out)
    out.write("\n")
