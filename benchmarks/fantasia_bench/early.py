"""Early stopping: peers on a table of curves, and the report of all runs. scripts/stopping has the same rules for Fantasia."""

import heapq
import json
import math
import os
import random
import statistics

from . import publish

WORKERS = 8
MOST = 2000  # trials of a run, for tuners that repeat points
RUNGS = (1, 3, 9, 27)


class Optuna:
    """Reports at the rungs only: between them its pruners do not judge."""

    def __init__(self, grid, seed, tpe, hyperband):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.states, self.grid, self.trials = optuna.trial.TrialState, grid, {}
        sampler = optuna.samplers.TPESampler(seed=seed) if tpe else optuna.samplers.RandomSampler(seed=seed)
        pruner = optuna.pruners.HyperbandPruner(1, 81, 3) if hyperband else optuna.pruners.SuccessiveHalvingPruner(1, 3)
        self.study = optuna.create_study(sampler=sampler, pruner=pruner)

    def ask(self, number):
        trial = self.trials[number] = self.study.ask()
        return {name: trial.suggest_int(name, 0, len(values) - 1) for name, values in self.grid.items()}

    def stops(self, number, step, loss):
        if step not in RUNGS:
            return False
        self.trials[number].report(loss, step)
        return self.trials[number].should_prune()

    def end(self, number, completed, least):
        self.study.tell(self.trials[number], *([least] if completed else [None, self.states.PRUNED]))


class SyneTune:
    def __init__(self, grid, seed, searcher):
        import logging

        import numpy
        from syne_tune.backend.trial_status import Trial
        from syne_tune.config_space import randint
        from syne_tune.optimizer import baselines

        logging.disable(logging.INFO)
        numpy.random.seed(seed)  # what it draws brackets with
        space = {name: randint(0, len(values) - 1) for name, values in grid.items()}
        self.make, self.trials = Trial, {}
        self.scheduler = getattr(baselines, searcher)(space, "loss", do_minimize=True, time_attr="epoch", max_t=81, random_seed=seed)

    def ask(self, number):
        trial = self.trials[number] = self.make(number, self.scheduler.suggest().config, None)
        self.scheduler.on_trial_add(trial)
        return trial.config

    def stops(self, number, step, loss):
        self.last = {"loss": loss, "epoch": step}
        if step == 81:
            return False
        return self.scheduler.on_trial_result(self.trials[number], self.last) == "STOP"

    def end(self, number, completed, _):
        if completed:
            self.scheduler.on_trial_complete(self.trials[number], self.last)


TUNERS = {
    "optuna-random+sha": lambda grid, seed: Optuna(grid, seed, False, False),
    "optuna-tpe+sha": lambda grid, seed: Optuna(grid, seed, True, False),
    "optuna-tpe+hyperband": lambda grid, seed: Optuna(grid, seed, True, True),
    "syne-tune-asha": lambda grid, seed: SyneTune(grid, seed, "ASHA"),
    "syne-tune-bohb": lambda grid, seed: SyneTune(grid, seed, "BOHB"),
}


def play(name, table, data, seed):
    """Plays a tuner until a trial reports the target."""
    tuner, replicate = TUNERS[name](table.grid, seed), seed % table.seeds
    target, paces = table.target(data, replicate), table.seconds[table.data.index(data)]
    result = {"tuner": name, "data": data, "seed": seed, "seconds": 0.0, "reached": False, "trials": 0, "stopped": 0, "epochs": 0}
    running = []

    def start():
        result["trials"] += 1
        number = result["trials"]
        network = table.network(tuner.ask(number))
        pace = paces[network % len(paces)]
        heapq.heappush(running, (result["seconds"] + pace, number, 0, math.inf, pace, table.curve(data, network, replicate)))

    for _ in range(WORKERS):
        start()
    while running and not result["reached"]:
        now, number, step, least, pace, curve = heapq.heappop(running)
        loss, step = curve[step], step + 1
        least = min(least, loss)
        result["seconds"], result["epochs"], result["reached"] = now, result["epochs"] + 1, least <= target
        completed = step == table.epochs
        if not tuner.stops(number, step, loss) and not completed:
            heapq.heappush(running, (now + pace, number, step, least, pace, curve))
            continue
        result["stopped"] += not completed
        tuner.end(number, completed, least)
        if result["trials"] < MOST:
            start()
    return result


def load(paths):
    runs = []
    for path in paths:
        if os.path.exists(path):
            with open(path) as file:
                runs += [json.loads(line) for line in file]
    return runs


def interval(values, draws=2000):
    """The median, and its 95% bootstrap interval."""
    rng, middle = random.Random(0), statistics.median
    drawn = sorted(middle(rng.choices(values, k=len(values))) for _ in range(draws))
    return middle(values), drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1]


def speedups(runs, base):
    """How many times as fast each run is as the base's on the same data and seed; 0 if it does not reach the target."""
    other = {(r["data"], r["seed"]): r for r in base}
    return [other[r["data"], r["seed"]]["seconds"] / r["seconds"] if r["reached"] else 0.0 for r in runs if (r["data"], r["seed"]) in other]


def report(runs, into=None, base="random+none:as-is"):
    by_tuner = {}
    for r in runs:
        by_tuner.setdefault(r["tuner"], []).append(r)
    data = list(dict.fromkeys(r["data"] for r in runs))
    rows = []
    for name, mine in by_tuner.items():
        middle, low, high = interval(speedups(mine, by_tuner[base]))
        plain = name.split("+")[0] + "+none:as-is"
        own = ""
        if name != plain and plain in by_tuner:
            own = "{:.2f} ({:.2f} to {:.2f})".format(*interval(speedups(mine, by_tuner[plain])))
        times = [statistics.median([r["seconds"] if r["reached"] else math.inf for r in mine if r["data"] == d]) for d in data]
        missed = sum(not r["reached"] for r in mine)
        rows.append((-middle, f"| `{name}` | " + " | ".join(f"{t:.2f}" for t in times) + f" | {missed} of {len(mine)} | {middle:.2f} ({low:.2f} to {high:.2f}) | {own} |"))
    heading = f"| tuner | {' | '.join(data)} | not reached | as fast as random search | as fast as without stopping |"
    lines = [heading, "|" + " --- |" * (len(data) + 4)] + [row for _, row in sorted(rows)]
    text = "\n".join(lines)
    print(text)
    if into:
        publish.fill(into, {"stopping": text})
