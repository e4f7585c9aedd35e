"""Writes mpmath.csv with mpmath 1.4.1 at 400 digits: x, a, b, then Kumaraswamy's
1 - (1 - u^a)^b at u = 1e-6 + (1 - 2e-6) x and its derivatives by x, a and b,
with shapes from the bounds to the middle and x up to the last numbers before 0
and 1.

Run from optimizer/bayes/warp: python3 testdata/reference.py
"""
from mpmath import log, mp, mpf

mp.dps = 400
epsilon = mpf(10) ** -6
points = [0.0, 1e-300, 1e-9, 1e-6, 1e-3, 0.05, 0.25, 0.4999, 0.5, 0.7, 0.95, 0.999, 1 - 1e-6, 1 - 1e-9, 1 - 2.0**-53, 1.0]
shapes = [0.01, 0.37, 1.0, 2.2, 10.0]

with open("testdata/mpmath.csv", "w") as out:
    for x in points:
        for a in shapes:
            for b in shapes:
                u = epsilon + (1 - 2 * epsilon) * mpf(x)
                t = u ** mpf(a)
                q = 1 - t
                w = 1 - q ** mpf(b)
                by_q = b * q ** (mpf(b) - 1)  # -dw/dq
                row = [w, by_q * a * t / u * (1 - 2 * epsilon), by_q * t * log(u), -(q ** mpf(b)) * log(q)]
                out.write(",".join([repr(x), repr(a), repr(b)] + [mp.nstr(v, 20) for v in row]) + "\n")
