"""Ends when the last trials have improved nothing, as a callback finds in the trials so far."""

import optuna
from optuna.trial import TrialState
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier


def objective(trial):
    depth = trial.suggest_int("max_depth", 1, 16)
    share = trial.suggest_float("min_samples_split", 0.01, 1)
    model = DecisionTreeClassifier(max_depth=depth, min_samples_split=share, random_state=0)
    return cross_val_score(model, *load_iris(return_X_y=True), cv=5).mean()


def stop_when_stalled(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    if len(complete) >= 8 and study.best_trial.number < trial.number - 6:
        study.stop()


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=30, callbacks=[stop_when_stalled])
print(len(study.trials), study.best_value, study.best_params)
