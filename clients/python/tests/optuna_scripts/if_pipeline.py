"""Steps of a pipeline that may be None, in functions of their own."""

import optuna
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC


def scaler(trial):
    return {None: "passthrough", "minmax": MinMaxScaler(), "standard": StandardScaler()}[
        trial.suggest_categorical("scaler", [None, "minmax", "standard"])
    ]


def reducer(trial):
    if not trial.suggest_categorical("pca", [True, False]):
        return "passthrough"
    n_components = trial.suggest_int("n_components", 1, 3)
    return PCA(n_components, whiten=trial.suggest_categorical("whiten", [True, False]))


def objective(trial):
    model = make_pipeline(scaler(trial), reducer(trial), SVC(C=trial.suggest_float("C", 0.01, 100, log=True)))
    return cross_val_score(model, *load_iris(return_X_y=True), cv=3).mean()


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=10)
print(study.best_params)
