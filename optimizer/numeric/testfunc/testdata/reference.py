"""Writes reference.json with mpmath 1.4.1 at 40 digits: every function, from its
definition in the source that it names, at 20 random points of its domain.

BoTorch 0.18.1, botorch.test_functions.synthetic: ackley, beale, branin, bukin,
dixon-price, drop-wave, egg-holder, griewank, hartmann, holder-table, levy,
michalewicz, rastrigin, rosenbrock, six-hump-camel, styblinski-tang,
three-hump-camel. McCourt's evalset: branin02, cosine-mixture, cross-in-tray,
deceptive, deflected-corrugated-spring, exponential, levy13, powell-triple-log,
shubert01, weierstrass, and the domains of the names that end in -lgp. Bodin et al.
(2020), Figure 8: the corruption. Ha et al., Appendix: h1, whose sign is turned.

Run from optimizer/numeric/testfunc: python3 testdata/reference.py
"""
import json
import random

import mpmath as mp

mp.mp.dps = 40
pi, sin, cos, exp, sqrt = mp.pi, mp.sin, mp.cos, mp.exp, mp.sqrt


def dec(text):
    return mp.mpf(text)


def norm(x):
    return sqrt(mp.fsum(v**2 for v in x))


def mean(values):
    values = list(values)
    return mp.fsum(values) / len(values)


def ackley(x):
    return 20 + mp.e - 20 * exp(-norm(x) / (5 * sqrt(len(x)))) - exp(mean(cos(2 * pi * v) for v in x))


def beale(x):
    return mp.fsum((c - x[0] * (1 - x[1]**k)) ** 2 for k, c in ((1, dec("1.5")), (2, dec("2.25")), (3, dec("2.625"))))


def ridge(x):
    return x[1] - dec("5.1") / (4 * pi**2) * x[0]**2 + 5 / pi * x[0] - 6


def branin(x):
    return ridge(x) ** 2 + (10 - 10 / (8 * pi)) * cos(x[0]) + 10


def branin02(x):
    return ridge(x) ** 2 + (10 - 10 / (8 * pi)) * cos(x[0]) * cos(x[1]) + mp.log(1 + x[0]**2 + x[1]**2) + 10


def bukin(x):
    return 100 * sqrt(abs(x[1] - x[0]**2 / 100)) + abs(x[0] + 10) / 100


def cosine_mixture(x):
    return mp.fsum(cos(5 * pi * v) / 10 + v**2 for v in x)


def cross_in_tray(x):
    return -mp.power(abs(sin(x[0]) * sin(x[1])) * exp(abs(100 - norm(x) / pi)) + 1, dec("0.1")) / 10000


def deceptive(x):
    g = []
    for i, v in enumerate(x, 1):
        alpha = mp.mpf(i) / (len(x) + 1)
        knots = [(0, dec("0.8")), (4 * alpha / 5, 0), (alpha, 1), ((1 + 4 * alpha) / 5, 0), (1, dec("0.8"))]
        for (a, ga), (b, gb) in zip(knots, knots[1:]):
            if a <= v <= b:
                g.append(ga + (gb - ga) * (v - a) / (b - a))
                break
    return -(mean(g) ** 2)


def corrugated_spring(x):
    r = norm([v - 5 for v in x])
    return r**2 / 10 - cos(5 * r)


def dixon_price(x):
    return (x[0] - 1) ** 2 + mp.fsum(i * (2 * b**2 - a) ** 2 for i, (a, b) in enumerate(zip(x, x[1:]), 2))


def drop_wave(x):
    return -2 * (1 + cos(12 * norm(x))) / (norm(x) ** 2 + 4)


def egg_holder(x):
    return -(x[1] + 47) * sin(sqrt(abs(x[1] + x[0] / 2 + 47))) - x[0] * sin(sqrt(abs(x[0] - x[1] - 47)))


def exponential(x):
    return -exp(-(norm(x) ** 2) / 2)


def griewank(x):
    return 1 + norm(x) ** 2 / 4000 - mp.fprod(cos(v / sqrt(i)) for i, v in enumerate(x, 1))


def h1(x):
    below = sqrt((x[0] - dec("8.6998")) ** 2 + (x[1] - dec("6.7665")) ** 2 + 1)
    return -(sin(x[0] - x[1] / 8) ** 2 + sin(x[1] + x[0] / 8) ** 2) / below


HARTMANN = {
    3: ("3 10 30/.1 10 35/3 10 30/.1 10 35", "3689 1170 2673/4699 4387 7470/1091 8732 5547/381 5743 8828"),
    6: (
        "10 3 17 3.5 1.7 8/.05 10 17 .1 8 14/3 3.5 1.7 10 17 8/17 8 .05 10 .1 14",
        "1312 1696 5569 124 8283 5886/2329 4135 8307 3736 1004 9991/2348 1451 3522 2883 3047 6650/4047 8828 8732 5743 1091 381",
    ),
}


def hartmann(x):
    a, p = ([[dec(v) for v in row.split()] for row in table.split("/")] for table in HARTMANN[len(x)])
    alpha = [dec(v) for v in ("1", "1.2", "3", "3.2")]
    return -mp.fsum(
        alpha[i] * exp(-mp.fsum(a[i][j] * (v - p[i][j] / 10000) ** 2 for j, v in enumerate(x))) for i in range(4)
    )


def holder_table(x):
    return -abs(sin(x[0]) * cos(x[1])) * exp(abs(1 - norm(x) / pi))


def levy(x):
    w = [(v + 3) / 4 for v in x]
    middle = mp.fsum((v - 1) ** 2 * (1 + 10 * sin(pi * v + 1) ** 2) for v in w[:-1])
    return sin(pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + sin(2 * pi * w[-1]) ** 2)


def levy13(x):
    a, b = x
    return sin(3 * pi * a) ** 2 + (a - 1) ** 2 * (1 + sin(3 * pi * b) ** 2) + (b - 1) ** 2 * (1 + sin(2 * pi * b) ** 2)


def michalewicz(x):
    return -mp.fsum(sin(v) * sin(i * v**2 / pi) ** 20 for i, v in enumerate(x, 1))


def powell_triple_log(x):
    total = mp.mpf(1)
    for k in (0, 4, 8):
        a, b, c, d = x[k : k + 4]
        total += (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return mp.log(total)


def rastrigin(x):
    return mp.fsum(10 + v**2 - 10 * cos(2 * pi * v) for v in x)


def rosenbrock(x):
    return mp.fsum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def shubert01(x):
    return mp.fprod(mp.fsum(i * cos((i + 1) * v + i) for i in range(1, 6)) for v in x)


def six_hump_camel(x):
    a, b = x
    return 4 * a**2 - dec("2.1") * a**4 + a**6 / 3 + a * b - 4 * b**2 + 4 * b**4


def styblinski_tang(x):
    return mp.fsum(v**4 / 2 - 8 * v**2 + 5 * v / 2 for v in x)


def three_hump_camel(x):
    a, b = x
    return 2 * a**2 - dec("1.05") * a**4 + a**6 / 6 + a * b + b**2


def weierstrass(x):
    def terms(v):
        return mp.fsum(mp.mpf(2) ** -k * cos(2 * pi * 3**k * v) for k in range(21))

    return mp.fsum(terms(v + dec("0.5")) - len(x) * terms(dec("0.5")) for v in x)


def square_wave(t):  # scipy.signal.square
    return 1 if mp.fmod(t, 2 * pi) < pi else -1


def sawtooth(t):  # scipy.signal.sawtooth
    return mp.fmod(t, 2 * pi) / pi - 1


def corrupted(f, lower, upper, f_min, f_max, amplitudes):
    def corruption(u):
        gate = square_wave(8 * pi * u) * (dec("0.5") + dec("0.5") * square_wave(8 * pi * u))
        waves = zip(amplitudes, ("0.3", "0", "1", "0.5"), (15, 10, 30, 40))
        return gate * mp.fsum(dec(a) * sawtooth(dec(p) * pi + n * 2 * pi * u) for a, p, n in waves)

    width = dec(upper) - dec(lower)
    return lambda x: f(x) + (f_max - f_min) * max(corruption((v - dec(lower)) / width) for v in x)


FAMILIES = [
    (ackley, "ackley-%d", (1, 2, 5, 6, 10), -32.768, 32.768),
    (ackley, "ackley-%d-lgp", (2, 6), -10, 30),
    (cosine_mixture, "cosine-mixture-%d", (10,), -1, 1),
    (corrugated_spring, "deflected-corrugated-spring-%d", (10,), 0, 7.5),
    (deceptive, "deceptive-%d", (2,), 0, 1),
    (dixon_price, "dixon-price-%d", (1, 2, 5, 10), -10, 10),
    (drop_wave, "drop-wave-%d-lgp", (10,), -2, 5.12),
    (exponential, "exponential-%d", (8,), -0.7, 0.2),
    (griewank, "griewank-%d", (1, 2, 5, 10), -600, 600),
    (griewank, "griewank-%d-lgp", (2,), -50, 20),
    (hartmann, "hartmann%d", (3, 6), 0, 1),
    (levy, "levy-%d", (1, 2, 5, 10), -10, 10),
    (michalewicz, "michalewicz-%d", (2, 5, 10), 0, float(pi)),
    (powell_triple_log, "powell-triple-log-%d", (12,), -4, 1),
    (rastrigin, "rastrigin-%d", (1, 2, 5, 10), -5.12, 5.12),
    (rosenbrock, "rosenbrock-%d", (2, 5, 10), -5, 10),
    (styblinski_tang, "styblinski-tang-%d", (2, 5, 10), -5, 5),
    (weierstrass, "weierstrass-%d", (8,), -0.5, 0.2),
    (
        corrupted(exponential, "-0.7", "0.2", -1, -exp(dec("-1.96")), ("-0.03", "0.20", "0.16", "0.06")),
        "corrupted-exponential-%d", (8,), -0.7, 0.2,
    ),
]
PLANAR = [
    (beale, "beale", (-4.5, -4.5), (4.5, 4.5)),
    (branin, "branin", (-5, 0), (10, 15)),
    (branin02, "branin02", (-5, -5), (15, 15)),
    (bukin, "bukin", (-15, -3), (-5, 3)),
    (cross_in_tray, "cross-in-tray", (-10, -10), (10, 10)),
    (drop_wave, "drop-wave", (-5.12, -5.12), (5.12, 5.12)),
    (egg_holder, "egg-holder", (-512, -512), (512, 512)),
    (h1, "h1", (-100, -100), (100, 100)),
    (holder_table, "holder-table", (-10, -10), (10, 10)),
    (levy13, "levy13", (-10, -10), (10, 10)),
    (shubert01, "shubert01", (-10, -10), (10, 10)),
    (six_hump_camel, "six-hump-camel", (-3, -2), (3, 2)),
    (three_hump_camel, "three-hump-camel", (-5, -5), (5, 5)),
    (
        corrupted(holder_table, "-10", "10", dec("-19.208502567886731832"), 0, ("-0.03", "0.05", "0.08", "0.03")),
        "corrupted-holder-table", (-10, -10), (10, 10),
    ),
]


def main():
    rng = random.Random(20260)
    rows = [(f, name, lo, up) for f, name, lo, up in PLANAR]
    for f, name, dims, lo, up in FAMILIES:
        rows += [(f, name % d, (lo,) * d, (up,) * d) for d in dims]
    lines = []
    for f, name, lo, up in sorted(rows, key=lambda row: row[1]):
        points = [[float("%.6g" % rng.uniform(a, b)) for a, b in zip(lo, up)] for _ in range(20)]
        values = [float(mp.nstr(f([mp.mpf(v) for v in x]), 17)) for x in points]
        row = {"name": name, "lower": lo, "upper": up, "points": points, "values": values}
        lines.append(json.dumps(row, separators=(",", ":")))
    with open("testdata/reference.json", "w") as out:
        out.write("[\n" + ",\n".join(lines) + "\n]\n")


main()
