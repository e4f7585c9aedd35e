"""Prints the coefficients in exp.go and log.go, with the largest error of each
approximation. Needs mpmath (pip install mpmath==1.4.1)."""

from mpmath import chebyfit, exp, log, mp, mpf, nstr, sqrt

mp.prec = 300
TINY = mpf(10) ** -15


def exp_rest(r):
    """(exp(r) − 1 − r) / r²"""
    if abs(r) < TINY:
        return mpf(1) / 2 + r / 6 + r * r / 24
    return (exp(r) - 1 - r) / r**2


def log_rest(z):
    """(log((1+s)/(1−s)) − 2s) / s³ at s² = z"""
    if abs(z) < TINY:
        return mpf(2) / 3 + 2 * z / 5 + 2 * z * z / 7
    s = sqrt(z)
    return (log((1 + s) / (1 - s)) / s - 2) / z


def show(name, f, low, high, terms, scale):
    coefficients, error = chebyfit(f, [low, high], terms, error=True)
    print(name, "error", nstr(error * scale, 3))
    for i, c in enumerate(reversed(coefficients)):
        print(f"{name}{i} = {float(c).hex()}")


half = log(2) / 2 * mpf("1.00001")
show("exp", exp_rest, -half, half, 11, half**2)
s = (sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1) * mpf("1.000005")
show("log", log_rest, mpf(10) ** -30, s**2, 7, s**3)
