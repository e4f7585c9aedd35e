"""An objective with arguments of its own, types, and all options of `optimize`."""

import functools

import optuna
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import cross_val_score


def objective(trial: optuna.trial.Trial, data, folds: int = 3) -> float:
    model = ElasticNet(
        alpha=trial.suggest_float("alpha", 1e-4, 1e2, log=True),
        l1_ratio=trial.suggest_float("l1_ratio", 0.1, 1.0, step=0.1),
        fit_intercept=trial.suggest_categorical("fit_intercept", [True, False]),
    )
    return cross_val_score(model, *data, cv=folds, scoring="neg_mean_squared_error").mean()


study: optuna.study.Study = optuna.create_study(study_name="Elastic_Net", direction="maximize")
study.optimize(
    functools.partial(objective, data=load_diabetes(return_X_y=True), folds=4),
    n_trials=12,
    n_jobs=2,
    timeout=600,
    gc_after_trial=True,
)
print(f"best of {len(study.trials)}: {study.best_value:.3f} with {study.best_params}")
