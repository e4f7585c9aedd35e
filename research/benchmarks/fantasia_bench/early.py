"""Early stopping: peers on a table of curves, and the report of all runs. research/stopping has the same rules for Fantasia."""

import heapq
import json
import lzma
import math
import os
import random
import statistics

from . import publish

WORKERS = 8
MOST = 500  # trials of a run; one that needs more has not reached its target
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
            with (lzma.open if path.endswith(".xz") else open)(path, "rt") as file:
                runs += [json.loads(line) for line in file]
    return runs


def interval(values, draws=2000):
    """The median, and its 95% bootstrap interval."""
    rng, middle = random.Random(0), statistics.median
    drawn = sorted(middle(rng.choices(values, k=len(values))) for _ in range(draws))
    return middle(values), drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1]


def speedups(runs, base):
    """How many times as fast each run is as the base's on the same data and seed.

    It is 0 where only the base reaches the target, infinite where only the run does, and 1 where neither does.
    """
    other, ratios = {(r["data"], r["seed"]): r for r in base}, []
    for r in runs:
        if b := other.get((r["data"], r["seed"])):
            both = r["reached"] and b["reached"]
            ratios.append(b["seconds"] / r["seconds"] if both else math.inf if r["reached"] else 0.0 if b["reached"] else 1.0)
    return ratios


def ranged(ratios):
    return "{:.2f} ({:.2f} to {:.2f})".format(*interval(ratios)).replace("inf", "∞")


def times(runs, data, base):
    """A row for each tuner, the fastest first."""
    rows = []
    for name, mine in runs.items():
        plain = name.split("+")[0] + "+none"
        own = ranged(speedups(mine, runs[plain])) if name != plain and plain in runs else ""
        middles = [statistics.median([r["seconds"] if r["reached"] else math.inf for r in mine if r["data"] == d] or [math.nan]) for d in data]
        cells = [f"`{name}`", *(f"{t:.2f}".replace("inf", "∞") for t in middles), f"{sum(not r['reached'] for r in mine)} of {len(mine)}"]
        overall = speedups(mine, runs[base])
        rows.append((-statistics.median(overall), "| " + " | ".join([*cells, ranged(overall), own]) + " |"))
    head = ["tuner", *(f"{d}, s" for d in data), "not reached", "as fast as `random+none`", "as fast as without stopping"]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *(row for _, row in sorted(rows))])


def against(runs, mine, others):
    """How many times as fast some tuners are as others."""
    lines = ["| as fast as | " + " | ".join(f"`{name}`" for name in mine) + " |", "|" + " --- |" * (len(mine) + 1)]
    for other in others:
        lines.append(f"| `{other}` | " + " | ".join(ranged(speedups(runs[name], runs[other])) for name in mine) + " |")
    return "\n".join(lines)


def tables(runs, base="random+none"):
    """{name: Markdown}: all tuners, some of Fantasia's beside its peers, and the forms of telling optimisers of stopped trials."""
    by_tuner = {}
    for r in runs:
        by_tuner.setdefault(r["tuner"], []).append(r)
    data = sorted({r["data"] for r in runs})
    forms = {name.replace(":as-is", ""): mine for name, mine in by_tuner.items() if not name.endswith((":dropped", ":extrapolated", ":stopped", ":censored"))}
    ours = [name for name in ("random+asha-fast", "random+promote-9", "tpe+promote-9", "bohb+promote-9", "tpe+hyperband") if name in forms]
    told = {name: mine for name, mine in by_tuner.items() if ":" in name and name.rpartition(":")[0] + ":dropped" in by_tuner}
    told |= {name: forms[name] for name in {base, *(name.split("+")[0] + "+none" for name in told)} if name in forms}
    least = min(len({r["seed"] for r in mine}) for mine in told.values())
    return {
        "stopping": times(forms, data, base),
        "stopping-peers": against(forms, ours, sorted(set(forms) & set(TUNERS))),
        "stopping-told": times({name: [r for r in mine if r["seed"] < least] for name, mine in told.items()}, data, base),
    }


def report(runs, into=None):
    """Prints the tables and, if wanted, puts them into pages."""
    made = tables(runs)
    for name, text in made.items():
        print(f"{name}\n{text}\n")
    if into:
        publish.into(into, made)
