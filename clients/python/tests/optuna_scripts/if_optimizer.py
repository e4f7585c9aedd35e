"""An optimiser is chosen by a dictionary of options, which differ."""

import numpy as np
import optuna


def create_optimizer(trial):
    kwargs = {}
    selected = trial.suggest_categorical("optimizer", ["RMSprop", "Adam", "SGD"])
    if selected == "RMSprop":
        kwargs["rate"] = trial.suggest_float("rmsprop_learning_rate", 1e-5, 1e-1, log=True)
        kwargs["decay"] = trial.suggest_float("rmsprop_decay", 0.85, 0.99)
    elif selected == "Adam":
        kwargs["rate"] = trial.suggest_float("adam_learning_rate", 1e-5, 1e-1, log=True)
    elif selected == "SGD":
        kwargs["rate"] = trial.suggest_float("sgd_opt_learning_rate", 1e-5, 1e-1, log=True)
        kwargs["decay"] = trial.suggest_float("sgd_opt_momentum", 0.1, 0.9)
    return kwargs


def objective(trial):
    options = create_optimizer(trial)
    weights, velocity = np.full(3, 2.0), np.zeros(3)
    for _ in range(20):
        velocity = options.get("decay", 0.0) * velocity - options["rate"] * weights
        weights = weights + velocity
    return float((weights**2).sum())


study = optuna.create_study(direction="minimize")
study.optimize(objective, n_trials=12)
print(study.best_trial.params)
