#!/usr/bin/env python3
"""Prints updates.json: generations of cmaes 0.13.1 and its distributions after each.

    pip install cmaes==0.13.1 numpy scipy && ./updates.py > updates.json

Points are those of the unit cube. A column with n levels has them at (i + 1/2)/n. For CMAwM a
point is where it was drawn with the scale of the margin, not where cmaes wants to be told.
"""
import json

import numpy
from cmaes import CMA, CatCMAwM, CMAwM, SepCMA

MINIMUM = 0.37


def value(x):
    # Curved, and of different scales.
    return float(sum((i + 1) * (v - MINIMUM) ** 2 for i, v in enumerate(x)) + 3 * (x[0] - x[-1] ** 2) ** 2)


def gaussian(cma, generations, population, inner=None):
    inner, out = inner or cma, []
    for _ in range(generations):
        points, told = [], []
        for _ in range(population):
            asked = cma.ask()
            if isinstance(asked, tuple):
                encoded, raw = asked
                point = raw.copy() if not hasattr(cma, "_A") else (raw - inner._mean) * cma._A + inner._mean
                y = value(encoded)
            else:
                raw = point = asked
                y = value(asked)
            points.append({"at": point.tolist(), "value": y})
            told.append((raw, y))
        cma.tell(told)
        cov = inner._C if inner._C.ndim == 1 else inner._C[numpy.triu_indices(len(inner._C))]
        out.append({
            "points": points, "mean": inner._mean.tolist(), "sigma": float(inner._sigma), "cov": ((cov + cov) / 2).tolist(),
            "path": inner._p_sigma.tolist(), "scale": cma._A.tolist() if hasattr(cma, "_A") else [],
        })
    return out


def categories():
    cma = CatCMAwM(c_space=[3, 4, 2], population_size=8, seed=3)
    out = []
    for _ in range(12):
        points, told = [], []
        for _ in range(8):
            s = cma.ask()
            chosen = [int(row.argmax()) for row in s.c]
            y = chosen[0] + 0.5 * chosen[1] + 0.1 * chosen[2]
            points.append({"chosen": chosen, "value": y})
            told.append((s, y))
        told = list(zip(*sorted(zip(points, told), key=lambda p: p[0]["value"])))
        points = list(told[0])
        cma.tell(list(told[1]))
        out.append({"points": points, "shares": [cma._q[i, :k].tolist() for i, k in enumerate((3, 4, 2))]})
    return out


def main():
    box = numpy.tile([0.0, 1.0], (5, 1))
    full = CMA(mean=numpy.full(5, 0.5), sigma=0.2, bounds=box, seed=1, population_size=9)
    diagonal = SepCMA(mean=numpy.full(70, 0.5), sigma=0.1, bounds=numpy.tile([0.0, 1.0], (70, 1)), seed=2, population_size=16)
    levels = [0, 0, 2, 5, 40]
    bounds = numpy.array([[0.5 / n, 1 - 0.5 / n] if n else [0.0, 1.0] for n in levels])
    margin = CMAwM(mean=numpy.full(5, 0.48), sigma=0.2, bounds=bounds, steps=numpy.array([1 / n if n else 0 for n in levels]), seed=4, population_size=8)
    print(json.dumps({
        "full": gaussian(full, 12, 9), "diagonal": gaussian(diagonal, 3, 16),
        "margin": gaussian(margin, 25, 8, margin._cma), "levels": levels, "categories": categories(),
    }))


if __name__ == "__main__":
    main()
