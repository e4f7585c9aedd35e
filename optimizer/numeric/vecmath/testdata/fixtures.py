"""Writes fixtures.csv: function, argument, correctly rounded result, and the
exact result minus that, in units of the result's last place. Needs mpmath
(pip install mpmath==1.4.1)."""

import math
import os
import random
from fractions import Fraction

from mpmath import exp, log, mp, mpf

mp.prec = 400
rng = random.Random(1)


def row(name, f, x):
    exact = f(mpf(x))
    sign, mantissa, exponent, _ = exact._mpf_
    value = Fraction(-mantissa if sign else mantissa) * Fraction(2) ** exponent
    rounded = float(value)  # subnormal results are rounded once, too
    rest = (exact - mpf(rounded)) / mpf(math.ulp(rounded))
    assert abs(rest) <= 0.5000001, (name, x, rest)
    return f"{name},{float(x).hex()},{rounded.hex()},{float(rest):.6f}\n"


def near(x, n=3):
    """x and its n neighbours on both sides"""
    down = up = x
    yield x
    for _ in range(n):
        down, up = math.nextafter(down, -math.inf), math.nextafter(up, math.inf)
        yield down
        yield up


exps = [rng.uniform(-1, 1) for _ in range(400)] + [rng.uniform(-20, 0) for _ in range(400)]
exps += [rng.uniform(-708, 709) for _ in range(400)] + [rng.uniform(-745, -708) for _ in range(200)]
exps += [math.copysign(2.0 ** rng.uniform(-1074, -1), rng.random() - 0.5) for _ in range(200)]
for n in (-1074, -1022, -537, -2, -1, 0, 1, 2, 511, 1023):
    exps += near((n + 0.5) * math.log(2))
    exps += near(n * math.log(2))
exps += near(1.0)
exps = [x for x in exps if -745.13 <= x <= 709.782712893383]

logs = [rng.uniform(0.5, 2) for _ in range(600)] + [math.exp(rng.uniform(-700, 700)) for _ in range(400)]
logs += [1 + rng.uniform(-1, 1) * 2.0 ** rng.uniform(-52, -1) for _ in range(400)]
logs += [2.0 ** rng.uniform(-1074, -1022) for _ in range(100)]
for x in (1.0, math.sqrt(0.5), math.sqrt(2), 2.0, 0.5, 2.0**-1022, 2.0**1023, math.e):
    logs += near(x)
logs += [math.ulp(0.0), math.nextafter(math.inf, 0)]
logs = [x for x in logs if x != 1]

with open(os.path.join(os.path.dirname(__file__), "fixtures.csv"), "w") as out:
    out.writelines(row("exp", exp, x) for x in exps)
    out.writelines(row("log", log, x) for x in logs)
