#!/usr/bin/env python3
"""Prints split.json: which trials Optuna's TPESampler counts as good, of several objectives and with limits.

    pip install optuna==5.0.0 && ./split.py > split.json
"""
import json
import random

import optuna
from optuna.samplers._tpe.sampler import _split_complete_trials_multi_objective, _split_trials, default_gamma_multiobjective

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
    for objectives in (1, 2):
        for limits in (1, 3):
            for share in (0.1, 0.9):  # of the trials that are within a limit
                for n in (11, 120):
                    cases.append(limited(rng, objectives, limits, share, n))
    print(json.dumps(cases))


def limited(rng, objectives, limits, share, n):
    """Trials of which the first is outside of every limit by 1, and no other by more."""
    directions = rng.choices(["minimize", "maximize"], k=objectives)
    study = optuna.create_study(directions=directions)
    excess = [[1.0] * limits]
    for _ in range(n - 1):
        excess.append([round(-rng.random() if rng.random() < share else rng.random(), 3) for _ in range(limits)])
    for e in excess:
        study.add_trial(optuna.create_trial(
            values=values(rng, "cube", objectives), constraints={str(i): v for i, v in enumerate(e)}))
    below = (n + 9) // 10
    good, _ = _split_trials(study, study.trials, below)
    return {
        "directions": directions, "values": [t.values for t in study.trials], "excess": excess,
        "below": below, "good": sorted(t.number for t in good),
    }


if __name__ == "__main__":
    main()
