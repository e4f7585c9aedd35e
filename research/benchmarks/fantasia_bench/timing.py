"""How long tuners take to suggest, side by side in one run.

The space is that of MLP-adam, 9 dimensions. A tuner is told n − 8 random points, asked for 8 and told their losses, and then
asked for 8 more, which is timed: n observations, after the requests that a real study would have made before. Tuners take
turns, so that a machine that is busy for a while is busy for all of them.
"""

import math
import random
import statistics
import sys
import time

from . import definitions, report, tuners
from .space import sample

BATCH = 8
SPACE = definitions.SPACES["MLP-adam"]


def loss(point, noise):
    """A smooth valley with noise, on the parameters' own scales: only times matter here, but models should have something to fit."""
    total = 0.0
    for i, p in enumerate(SPACE):
        low, high = p.coordinates()
        total += (1 + i) * ((p.encode(point[p.name]) - low) / (high - low) - 0.3) ** 2
    return math.log1p(total) + 0.05 * noise.gauss(0, 1)


def once(name, n, seed, binary=None, settings=None):
    """Seconds that a new tuner takes for 8 suggestions with n observations."""
    rng = random.Random(seed)
    points = [sample(SPACE, rng) for _ in range(n - BATCH)]
    tuner = tuners.make(name, SPACE, seed, binary, settings, trials=max(definitions.TRIALS, n + BATCH))
    try:
        tuner.observe(points, [loss(p, rng) for p in points])
        tuner.tell([(key, loss(point, rng)) for key, point in tuner.ask(BATCH)])
        start = time.perf_counter()
        tuner.ask(BATCH)
        return time.perf_counter() - start
    finally:
        tuner.close()


def measure(names, n, rounds, binary=None, settings=None, out=sys.stderr):
    """{name: [seconds, ...]}, a round after another. Round 0 is not kept: it loads code, compiles and fills caches."""
    times = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name in names:
            took = once(name, n, turn, binary, settings)
            print(f"round {turn} of {rounds}, {n} observations, {name}: {took:.4f} s", file=out, flush=True)
            if turn:
                times[name].append(took)
    return times


def table(made, main):
    """Medians of {observations: {name: [seconds, ...]}}, and how many times as long as the main tuner each takes: the median of the rounds' ratios."""
    rows = []
    for n, times in made.items():
        for name, took in sorted(times.items(), key=lambda item: statistics.median(item[1])):
            ratio = statistics.median(t / own for t, own in zip(took, times[main]))
            alone = len(times) == 1
            rows.append([report.named(name), f"{n:,}", f"{1000 * statistics.median(took):,.0f} ms", "" if alone else f"{ratio:.{1 if ratio < 9.95 else 0}f}"])
    return report.table(["tuner", "observations", "median", f"times `{main}`"], rows)
