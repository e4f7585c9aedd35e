"""Attributes of the study and of trials, points to begin with, and failures that do not end it."""

import math

import optuna


def objective(trial):
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    batch = trial.suggest_categorical("batch", [16, 32, 64])
    if batch == 64 and rate > 5e-2:
        raise ValueError("diverged")
    trial.set_user_attr("steps", 6400 // batch)
    return abs(math.log10(rate) + 3) + batch / 64


study = optuna.create_study(direction="minimize")
study.set_user_attr("data", "digits")
study.enqueue_trial({"rate": 1e-3, "batch": 32})
study.enqueue_trial({"rate": 1e-1, "batch": 64}, user_attrs={"why": "a large step"})
study.optimize(objective, n_trials=8, catch=(ValueError,))
print(study.user_attrs, study.best_trial.user_attrs["steps"], study.best_trial.duration)
