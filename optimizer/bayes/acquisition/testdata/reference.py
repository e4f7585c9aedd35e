"""Writes reference.json with mpmath 1.4.1 at 60 digits (Python 3.12 or later).

Run from optimizer/bayes/acquisition: python3 testdata/reference.py
"""
import json

import mpmath as mp

mp.mp.dps = 60


def mills(t):
    """(1 - Phi(t)) / phi(t), by the continued fraction where erfc underflows."""
    t = mp.mpf(t)
    if t < 1000:
        return mp.exp(t * t / 2) * mp.sqrt(mp.pi / 2) * mp.erfc(t / mp.sqrt(2))
    f = t
    for k in range(60, 0, -1):
        f = t + k / f
    return 1 / f


def log_pdf(z):
    return -z * z / 2 - mp.log(2 * mp.pi) / 2


def row(z):
    z = mp.mpf(z)
    ratio = mills(-z)
    with mp.workdps(120):  # 1 + z*ratio cancels
        h = 1 + z * mills(-z)
    return {
        "z": float(z),
        "log_h": float(log_pdf(z) + mp.log(h)),
        "log_cdf": float(mp.log1p(-mp.erfc(z / mp.sqrt(2)) / 2) if z > 0 else log_pdf(z) + mp.log(ratio)),
        "pdf_over_h": float(1 / h),
        "cdf_over_h": float(ratio / h),
    }


zs = [-1e10, -3.7e8, -1e6 - 1, -1e6, -1e6 + 1, -1e5, -12345.678, -1e3, -300.25, -100, -40.5, -38, -30, -20, -12, -9,
      -6.5, -5, -4, -3.25, -3.0001, -3, -2.9999, -2.5, -2, -1.5, -1.0001, -1, -0.9999, -0.75, -0.5, -0.25, -1e-3,
      -1e-9, 0, 1e-9, 1e-3, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5.5, 7, 8.25, 10, 15, 20, 25, 30, 37.5, 40]
xs = [-26.5, -20, -10, -5.25, -2, -1, -0.5, -1e-8, 0, 1e-8, 0.1, 0.5, 1, 1.5, 2, 2.1, 2.12, 2.1213203435596424, 2.13, 2.5,
      3, 4, 5, 7.5, 10, 20, 50, 100, 1e4, 1e8, 1e100, 1e300]


def erfcx(x):
    return mills(mp.mpf(x) * mp.sqrt(2)) * mp.sqrt(2 / mp.pi)


with open("testdata/reference.json", "w") as out:
    json.dump({"normal": [row(z) for z in zs], "erfcx": [[x, float(erfcx(x))] for x in xs]}, out, indent=0)
    out.write("\n")
