"""LightGBM with a dictionary of suggestions, and a time limit."""

import lightgbm as lgb
import numpy as np
import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 5))
    y = (x[:, 0] > x[:, 1] ** 2).astype(int)
    param = {
        "objective": "binary",
        "verbosity": -1,
        "num_threads": 1,
        "lambda_l1": trial.suggest_float("lambda_l1", 1e-8, 10.0, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 2, 64),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.4, 1.0, step=0.1),
        "min_child_samples": trial.suggest_int("min_child_samples", 5, 100, step=5),
    }
    model = lgb.train(param, lgb.Dataset(x[:150], label=y[:150]), num_boost_round=5)
    return float(np.mean((model.predict(x[150:]) > 0.5) == y[150:]))


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=6, timeout=600)
for key, value in study.best_params.items():
    print(f"    {key}: {value}")
