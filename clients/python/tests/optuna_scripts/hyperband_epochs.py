"""Hyperband over the epochs of a descent."""

import numpy as np
import optuna


def objective(trial):
    rate = trial.suggest_float("rate", 1e-3, 1.5, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.95)
    place, speed = np.array([3.0, -2.0]), np.zeros(2)
    loss = np.inf
    for epoch in range(1, 28):
        speed = momentum * speed - rate * np.array([1.0, 0.1]) * place
        place = place + speed
        loss = float(np.log1p(place @ place))
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.exceptions.TrialPruned()
    return loss


study = optuna.create_study(
    sampler=optuna.samplers.TPESampler(seed=10),
    pruner=optuna.pruners.HyperbandPruner(min_resource=1, max_resource=27, reduction_factor=3),
)
study.optimize(objective, n_trials=16)
print([trial.state.name for trial in study.trials], study.best_params)
