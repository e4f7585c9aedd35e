"""Plays a sampler of Optuna for `go run ./research/durations`, which evaluates the points.

It reads requests from standard input, a JSON object a line, and answers each with the places of the points' values:
  {"tell": [{"trial": 1, "loss": 0.3}], "ask": 2}  →  [[0, 3], [1, 7]]
Trials are numbered from 1. Its one argument is a JSON object with the sampler, the seed, the parameters and the points to begin with.
"""
import json
import sys
import warnings

import optuna

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
about = json.loads(sys.argv[1])
make = {
    "tpe": lambda: optuna.samplers.TPESampler(seed=about["seed"], multivariate=True, constant_liar=True),
    "gp": lambda: optuna.samplers.GPSampler(seed=about["seed"]),
}
study = optuna.create_study(sampler=make[about["sampler"]]())
space = {}
for p in about["parameters"]:
    d = optuna.distributions
    space[p["name"]] = d.IntDistribution(0, len(p["values"]) - 1) if p["ordered"] else d.CategoricalDistribution(range(len(p["values"])))
for point in about["first"]:
    study.enqueue_trial({p["name"]: p["values"].index(point[p["name"]]) for p in about["parameters"]})
for line in sys.stdin:
    request = json.loads(line)
    for told in request["tell"]:
        state = optuna.trial.TrialState.FAIL if told["loss"] is None else None
        study.tell(told["trial"] - 1, told["loss"], state=state)
    trials = [study.ask(space) for _ in range(request["ask"])]
    print(json.dumps([[trial.params[name] for name in space] for trial in trials]), flush=True)
