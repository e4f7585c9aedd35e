"""A loop of one's own: a batch is asked for, evaluated together, and told."""

import numpy as np
import optuna

study = optuna.create_study(direction="minimize", sampler=optuna.samplers.QMCSampler(seed=1))
for _ in range(3):
    trials = [study.ask() for _ in range(4)]
    points = np.array([[trial.suggest_float(name, -5, 5) for name in ("x", "y")] for trial in trials])
    values = ((points - [1, -2]) ** 2).sum(axis=1)
    for trial, value in zip(trials, values, strict=True):
        study.tell(trial, value)
print(study.best_value, study.best_params)
