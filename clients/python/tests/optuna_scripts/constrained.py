"""Constraints that the sampler computes from parameters, read again from its notes."""

import optuna


def weight(trial):
    return trial.params["width"] * trial.params["layers"]


def constraints(trial):
    return (weight(trial) - 200, 10 - weight(trial))


def objective(trial):
    width = trial.suggest_int("width", 4, 256)
    layers = trial.suggest_categorical("layers", [1, 2, 4, 8])
    return 1 / width + 0.1 / layers


sampler = optuna.samplers.TPESampler(constraints_func=constraints, seed=1)
study = optuna.create_study(sampler=sampler)
study.optimize(objective, n_trials=15)

allowed = [t.number for t in study.trials if all(c <= 0 for c in t.system_attrs["constraints"])]
best = min((study.trials[number] for number in allowed), key=lambda trial: trial.value)
print(best.number, best.params, best.value, weight(best))
