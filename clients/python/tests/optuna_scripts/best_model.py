"""Keeps something of the best model in the study, from a callback."""

import pickle

import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split

optuna.logging.set_verbosity(optuna.logging.WARNING)
train, test, labels, answers = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)


def objective(trial):
    options = {
        "n_estimators": trial.suggest_int("n_estimators", 10, 60, step=10),
        "max_features": trial.suggest_categorical("max_features", ["sqrt", "log2", None]),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 8),
    }
    model = ExtraTreesClassifier(random_state=0, **options).fit(train, labels)
    trial.set_user_attr("model", pickle.dumps(model)[:8].hex())
    trial.set_user_attr("depths", [tree.get_depth() for tree in model.estimators_][:3])
    return model.score(test, answers)


def keep_best(study, trial):
    if study.best_trial.number == trial.number:
        study.set_user_attr("best", trial.params["n_estimators"])


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=10, callbacks=[keep_best])
assert study.user_attrs["best"] == study.best_params["n_estimators"]
print(study.best_trial.user_attrs["depths"], study.best_value)
