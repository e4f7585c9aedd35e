"""Boosters of which two have trees, and one of these drops some: conditions in conditions."""

import numpy as np
import optuna
import xgboost as xgb


def objective(trial):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(120, 4))
    y = (x[:, 0] > 0).astype(int)
    param = {
        "objective": "binary:logistic",
        "nthread": 1,
        "verbosity": 0,
        "booster": trial.suggest_categorical("booster", ["gbtree", "gblinear", "dart"]),
        "alpha": trial.suggest_float("alpha", 1e-8, 1.0, log=True),
    }
    if param["booster"] in ["gbtree", "dart"]:
        param["max_depth"] = trial.suggest_int("max_depth", 3, 9, step=2)
        param["gamma"] = trial.suggest_float("gamma", 1e-8, 1.0, log=True)
        param["grow_policy"] = trial.suggest_categorical("grow_policy", ["depthwise", "lossguide"])
    if param["booster"] == "dart":
        param["sample_type"] = trial.suggest_categorical("sample_type", ["uniform", "weighted"])
        param["rate_drop"] = trial.suggest_float("rate_drop", 1e-8, 1.0, log=True)
    model = xgb.train(param, xgb.DMatrix(x[:80], y[:80]), 3)
    return float(np.mean((model.predict(xgb.DMatrix(x[80:])) > 0.5) == y[80:]))


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=12)
print(study.best_trial.value)
