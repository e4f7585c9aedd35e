#!/usr/bin/env python3
"""Prints split.json: which trials of several objectives Optuna's TPESampler counts as good.

    pip install optuna==5.0.0 && ./split.py > split.json
"""
import json
import random

import optuna
from optuna.samplers._tpe.sampler import _split_complete_trials_multi_objective, default_gamma_multiobjective

optuna.logging.set_verbosity(optuna.logging.ERROR)


def values(rng, kind, objectives):
    """Values that fill a cube, that lie near a front, or of which many are equal."""
    draws = [rng.random() for _ in range(objectives)]
    if kind == "front":
        total = sum(draws)
        return [round(d / total + rng.random() / 20 - 0.5, 6) for d in draws]
    if kind == "equal":
        return [rng.choice([-1.0, 0.0, 0.3, 1.7]) for _ in range(objectives)]
    return [round(10 * d - 3, 6) for d in draws]


def main():
    rng, cases = random.Random(1), []
    for objectives in (2, 3, 5):
        for kind in ("cube", "front", "equal"):
            for n in (11, 40, 120):
                directions = rng.choices(["minimize", "maximize"], k=objectives)
                study = optuna.create_study(directions=directions)
                study.add_trials([optuna.create_trial(values=values(rng, kind, objectives)) for _ in range(n)])
                trials = study.trials
                for below in (default_gamma_multiobjective(n), n // 2):
                    good, _ = _split_complete_trials_multi_objective(trials, study, below)
                    cases.append({
                        "directions": directions, "values": [t.values for t in trials],
                        "below": below, "good": sorted(t.number for t in good),
                    })
    print(json.dumps(cases))


if __name__ == "__main__":
    main()
