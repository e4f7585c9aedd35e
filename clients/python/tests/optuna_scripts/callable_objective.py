"""An objective that is an object, which keeps its data."""

import optuna
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier


class Objective:
    def __init__(self, data):
        self.data = data

    def __call__(self, trial):
        features, labels = self.data
        if trial.suggest_categorical("model", ["neighbours", "bayes"]) == "neighbours":
            model = KNeighborsClassifier(trial.suggest_int("k", 1, 30, log=True))
        else:
            model = GaussianNB(var_smoothing=trial.suggest_float("smoothing", 1e-12, 1e-3, log=True))
        return cross_val_score(model, features, labels, cv=3).mean()


study = optuna.create_study(direction="maximize")
study.optimize(Objective(load_wine(return_X_y=True)), n_trials=12)
print(study.best_trial)
