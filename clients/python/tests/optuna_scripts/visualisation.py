"""Plots and importances of a study with a named sampler."""

import optuna


def objective(trial):
    x = trial.suggest_float("x", -100, 100)
    y = trial.suggest_categorical("y", [-1, 0, 1])
    return x**2 + y


study = optuna.create_study(sampler=optuna.samplers.TPESampler(multivariate=True, seed=1))
study.optimize(objective, n_trials=10)
figure = optuna.visualization.plot_optimization_history(study)
optuna.visualization.plot_slice(study, params=["x"])
print(len(figure.data), optuna.importance.get_param_importances(study))
