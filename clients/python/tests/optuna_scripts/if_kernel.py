"""Kernels in an early return and a conditional expression."""

import optuna
from sklearn.datasets import load_iris
from sklearn.svm import SVC


def model(trial):
    kernel = trial.suggest_categorical("kernel", ["linear", "poly", "rbf"])
    c = trial.suggest_float("C", 1e-2, 1e2, log=True)
    if kernel == "linear":
        return SVC(kernel=kernel, C=c)
    gamma = trial.suggest_float("gamma", 1e-3, 1.0, log=True)
    degree = trial.suggest_int("degree", 2, 4) if kernel == "poly" else 3
    return SVC(kernel=kernel, C=c, gamma=gamma, degree=degree)


def objective(trial):
    x, y = load_iris(return_X_y=True)
    return 1 - model(trial).fit(x[::2], y[::2]).score(x[1::2], y[1::2])


study = optuna.create_study()
study.optimize(objective, n_trials=10)
print(study.best_value, study.best_params)
