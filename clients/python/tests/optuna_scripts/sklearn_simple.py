"""A forest on iris, scored by cross-validation."""

import optuna
import sklearn.datasets
import sklearn.ensemble
import sklearn.model_selection


def objective(trial):
    x, y = sklearn.datasets.load_iris(return_X_y=True)
    forest = sklearn.ensemble.RandomForestClassifier(
        n_estimators=trial.suggest_int("n_estimators", 2, 16, log=True),
        max_depth=int(trial.suggest_float("max_depth", 1, 32, log=True)),
        criterion=trial.suggest_categorical("criterion", ["gini", "entropy"]),
    )
    return sklearn.model_selection.cross_val_score(forest, x, y, cv=3).mean()


if __name__ == "__main__":
    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=6)
    print(f"best value {study.best_value:.3f} with {study.best_trial.params}")
