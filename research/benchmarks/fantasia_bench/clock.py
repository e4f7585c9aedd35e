"""How tuner and workers take turns, in virtual time."""

import heapq
import random

MODES = ("batch", "async", "sequential")


def durations(task, seed):
    """Draws one evaluation's duration after another: lognormal with sigma 1 and mean 1, the same for every tuner."""
    rng = random.Random(f"durations {task} {seed}")
    return lambda: rng.lognormvariate(-0.5, 1.0)


def turns(mode, ask, tell, draw, trials, workers):
    """Plays a run; yields (now, told) after each tell, where told lists what the tuner just heard, in order.

    ask(n) returns up to n evaluated suggestions; fewer than wanted, or none, means that the tuner has no more points now.
    tell(list) tells them. In `batch` all workers wait for the slowest, in `async` a free worker gets one suggestion at once,
    knowing all that has ended; `sequential` has one worker.
    """
    if mode == "async":
        yield from _free_running(ask, tell, draw, trials, workers)
    else:
        yield from _rounds(ask, tell, draw, trials, workers if mode == "batch" else 1)


def _rounds(ask, tell, draw, trials, workers):
    now, told = 0.0, 0
    while told < trials:
        batch = ask(min(workers, trials - told))
        if not batch:
            return
        now += max(draw() for _ in batch)
        tell(batch)
        told += len(batch)
        yield now, batch


def _free_running(ask, tell, draw, trials, workers):
    now, started, running = 0.0, 0, []
    while True:
        while started < trials and len(running) < workers:
            got = ask(1)
            if not got:
                break
            started += 1
            heapq.heappush(running, (now + draw(), started, got[0]))
        if not running:
            return
        now, _, ended = heapq.heappop(running)
        tell([ended])
        yield now, [ended]
