"""Prints the positive nodes and the weights of the 16-point Gauss-Hermite rule
for the standard normal density, to double precision (mpmath 1.4.1).

Run from optimizer/bayes/transform: python3 testdata/hermite.py
"""
import mpmath as mp

mp.mp.dps = 40
N = 16

roots = [r for r in mp.polyroots(mp.taylor(lambda x: mp.mpf(2) ** (-mp.mpf(N) / 2) * mp.hermite(N, x / mp.sqrt(2)), 0, N)[::-1],
                                 maxsteps=500, extraprec=200) if r > 0]


def he(n, x):
    return mp.mpf(2) ** (-mp.mpf(n) / 2) * mp.hermite(n, x / mp.sqrt(2))


roots.sort()
print([float(r) for r in roots])
print([float(mp.factorial(N - 1) / (N * he(N - 1, r) ** 2)) for r in roots])
