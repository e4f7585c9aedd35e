"""A default that is enqueued, then importances and a plot."""

import optuna
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_score

features, target = load_diabetes(return_X_y=True)


def objective(trial):
    model = HistGradientBoostingRegressor(
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True),
        max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 4, 64, log=True),
        l2_regularization=trial.suggest_float("l2_regularization", 0.0, 10.0),
        max_iter=20,
        random_state=0,
    )
    return cross_val_score(model, features, target, cv=2, scoring="r2").mean()


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=42))
study.enqueue_trial({"learning_rate": 0.1, "max_leaf_nodes": 31, "l2_regularization": 0.0})
study.optimize(objective, n_trials=14, show_progress_bar=False)
print(optuna.importance.get_param_importances(study))
print(optuna.visualization.plot_slice(study).layout.title.text, study.best_params)
