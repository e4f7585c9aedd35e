"""A flag for each feature, and a transformation only for those that are used."""

import numpy as np
import optuna

FEATURES = ["age", "sex", "bmi"]


def objective(trial):
    x = np.random.default_rng(1).normal(size=(60, len(FEATURES))) + 3
    target = np.log(np.abs(x[:, 0])) + x[:, 2]
    columns = [np.ones(60)]
    for i, name in enumerate(FEATURES):
        if trial.suggest_categorical(f"use_{name}", [True, False]):
            power = trial.suggest_float(f"power_{name}", 0.25, 2)
            columns.append(np.abs(x[:, i]) ** power)
    design = np.stack(columns, axis=1)
    _, residual, _, _ = np.linalg.lstsq(design, target, rcond=None)
    return float(residual[0]) + 0.1 * len(columns)


study = optuna.create_study(direction="minimize")
study.enqueue_trial({f"use_{name}": True for name in FEATURES})
study.optimize(objective, n_trials=10)
print(study.best_params)
