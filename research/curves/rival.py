"""Plays another tuner that stops or pauses trainings, for `go run ./research/curves`.

The first line of input is a JSON object with the tuner, the seed, the dimension, how many epochs a training has, the loss of a guess
and the places of all trainings in the unit cube.
Each further line is a worker that is free, with what its trial has just reported, if there is one:
  {"done": {"trial": 3, "step": 9, "loss": 0.4, "value": 0.38, "last": false}}
The loss is null where it is not finite, and the value is the best one so far. The answer is which trial goes on by an epoch, {"trial": 3},
nothing, {}, or the place of a new one in the unit cube, {"x": [...]}. This is answered with its number and the place of the nearest
training, {"trial": 8, "x": [...]}, which the tuner takes as what it asked for; or with {} if all are used.
"""
import datetime
import json
import logging
import os
import sys
import types
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one process at a time, and the matrices are small

import numpy

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
answers, sys.stdout = sys.stdout, sys.stderr  # some tuners print


class Exhausted(Exception):
    """All trainings are used."""


def answer(what):
    print(json.dumps(what), file=answers, flush=True)


def begin(x):
    """Returns the number and the place of the training that is nearest to a place."""
    answer({"x": x})
    began = json.loads(sys.stdin.readline())
    if not began:
        raise Exhausted
    return began["trial"], began["x"]


class Optuna:
    """TPESampler as its documentation advises for parallel trials. A diverged training is a failed trial."""

    def __init__(self, about, pruner):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.states, self.trials = optuna.trial.TrialState, {}
        pruners = {
            "hyperband": lambda: optuna.pruners.HyperbandPruner(1, about["epochs"], 3),
            "sha": lambda: optuna.pruners.SuccessiveHalvingPruner(1, 3),
            "median": optuna.pruners.MedianPruner,
            "none": optuna.pruners.NopPruner,
        }
        # Its brackets depend on the study's name.
        self.study = optuna.create_study(
            study_name=str(about["seed"]),
            sampler=optuna.samplers.TPESampler(seed=about["seed"], multivariate=True, constant_liar=True),
            pruner=pruners[pruner](),
        )
        self.space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(about["dim"])}

    def goes_on(self, done):
        trial = self.trials[done["trial"]]
        trial.report(float("nan") if done["loss"] is None else done["loss"], done["step"])
        if done["last"]:
            value = done["value"]
            self.study.tell(trial, value, state=self.states.FAIL if value is None else None)
            return False
        if trial.should_prune():
            self.study.tell(trial, state=self.states.PRUNED)
            return False
        return True

    def next(self):
        trial = self.study.ask(self.space)
        number, x = begin([trial.params[name] for name in self.space])
        self.trials[number] = trial
        for (name, distribution), v in zip(self.space.items(), x):
            self.study._storage.set_trial_param(trial._trial_id, name, min(max(v, 0.0), 1.0), distribution)
        return number


class SyneTune:
    """A scheduler of Syne Tune as it is by default, but for its seed and how its Gaussian processes are fitted.

    A fit is warm and takes at most 20 steps, at each decision while there are few observations and then at each twentieth, which is about
    as Fantasia fits its model: nine tenths of MOBSTER's time went into fits otherwise. They do not bear losses of many orders of magnitude: one
    above that of a guess is told as one that is at most twice a guess's, in the same order, and one that is not finite as twice a guess's.
    With rows, they choose among the trainings, as Syne Tune does with tables, and not anywhere."""

    def __init__(self, about, name, rule):
        from syne_tune.backend.trial_status import Trial
        from syne_tune.config_space import uniform
        from syne_tune.optimizer import legacy_baselines
        from syne_tune.optimizer.schedulers.searchers.bayesopt.tuning_algorithms import bo_algorithm_components as components

        numpy.random.seed(about["seed"])
        self.names, self.guess, self.trials = [f"x{i}" for i in range(about["dim"])], about["guess"], {}
        self.trainings, make = len(about["places"]), getattr(legacy_baselines, name)
        fits = {} if name in ("ASHA", "BOHB") else {
            "opt_skip_init_length": 20, "opt_skip_period": 20, "opt_warmstart": True, "opt_maxiter": 20,
        }
        kind = {"type": "promotion"} if rule == "promotion" else {}
        if rule == "rows":
            rows = [self.config(x) for x in about["places"]]
            fits |= {"skip_local_optimization": True, "restrict_configurations": rows}
        self.scheduler = make(
            {k: uniform(0, 1) for k in self.names}, metric="loss", mode="min", resource_attr="epoch", max_t=about["epochs"],
            random_seed=about["seed"], search_options={"debug_log": False, **fits}, **kind,
        )
        suggested = self.scheduler._on_config_suggest

        def placed(scheduler, config, trial_id, **more):
            number, x = begin([float(config[k]) for k in self.names])
            config = dict(config, **self.config(x))
            self.trials[number] = Trial(number, config, datetime.datetime.now())
            return suggested(config, trial_id, **more)

        for generator in (components.RandomFromSetCandidateGenerator, components.RandomStatefulCandidateGenerator):
            self.limit(generator)
        self.scheduler._on_config_suggest = types.MethodType(placed, self.scheduler)

    def goes_on(self, done):
        trial = self.trials[done["trial"]]
        result = {"loss": self.bounded(done["loss"]), "epoch": done["step"]}
        decision = self.scheduler.on_trial_result(trial, result)
        if decision != "CONTINUE":
            self.scheduler.on_trial_remove(trial)
        elif done["last"]:
            self.scheduler.on_trial_complete(trial, result)
        return decision == "CONTINUE" and not done["last"]

    def limit(self, generator):
        """Lets a generator of places for new trials have none once all trainings are used: it would fail, or go on."""
        search = generator.generate_candidates_en_bulk

        def some(this, *args, **more):
            return search(this, *args, **more) if len(self.trials) < self.trainings else []

        generator.generate_candidates_en_bulk = some

    def config(self, x):
        return {k: min(max(v, 0.0), 1.0) for k, v in zip(self.names, x)}

    def bounded(self, loss):
        if loss is None:
            return 2 * self.guess
        above = loss - self.guess
        return loss if above <= 0 else self.guess + above / (1 + above / self.guess)

    def next(self):
        pauses = self.scheduler.does_pause_resume()
        if len(self.trials) == self.trainings and not pauses:
            raise Exhausted
        for _ in range(20):
            number = len(self.trials) + 1
            try:
                suggestion = self.scheduler.suggest(number)
            except (Exhausted, ValueError, IndexError, AssertionError):  # of a search among no places
                if number <= self.trainings:
                    raise
                continue  # some decide at random whether a trial begins or goes on
            if suggestion is None:
                continue
            if not suggestion.spawn_new_trial_id:
                return suggestion.checkpoint_trial_id
            self.scheduler.on_trial_add(self.trials[number])
            return number
        raise Exhausted


def tuner(about):
    name, _, rule = about["tuner"].partition("+")
    if name == "optuna-tpe":
        return Optuna(about, rule or "none")
    names = {"asha": "ASHA", "mobster": "MOBSTER", "hypertune": "HyperTune", "dyhpo": "DyHPO", "bohb": "BOHB"}
    return SyneTune(about, names[name.removeprefix("syne-tune-")], rule)


def main():
    chosen = tuner(json.loads(sys.stdin.readline()))
    while line := sys.stdin.readline():
        done = json.loads(line)["done"]
        if done and chosen.goes_on(done):
            answer({"trial": done["trial"]})
            continue
        known = len(chosen.trials)
        try:
            number = chosen.next()
        except Exhausted:
            answer({})
            continue
        if number <= known:  # the place of a new one has been answered
            answer({"trial": number})


main()
