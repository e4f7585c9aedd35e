"""XGBoost with a callback that prunes, and a median pruner."""

import numpy as np
import optuna
import xgboost as xgb

rng = np.random.default_rng(1)
X = rng.normal(size=(200, 5))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
TRAIN, VALID = xgb.DMatrix(X[:150], Y[:150]), xgb.DMatrix(X[150:], Y[150:])


class Pruning(xgb.callback.TrainingCallback):
    def __init__(self, trial):
        self.trial = trial

    def after_iteration(self, model, epoch, evals_log):
        self.trial.report(evals_log["valid"]["logloss"][-1], epoch)
        if self.trial.should_prune():
            raise optuna.TrialPruned(f"pruned at round {epoch}")
        return False


def objective(trial):
    param = {
        "objective": "binary:logistic",
        "nthread": 1,
        "eval_metric": "logloss",
        "lambda": trial.suggest_float("lambda", 1e-8, 1.0, log=True),
        "eta": trial.suggest_float("eta", 1e-3, 1.0, log=True),
        "max_depth": trial.suggest_int("max_depth", 1, 9),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
    }
    result = {}
    xgb.train(
        param,
        TRAIN,
        10,
        evals=[(VALID, "valid")],
        evals_result=result,
        callbacks=[Pruning(trial)],
        verbose_eval=False,
    )
    return result["valid"]["logloss"][-1]


study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_warmup_steps=3), direction="minimize")
study.optimize(objective, n_trials=8)
print(study.best_trial.value, study.best_trial.params)
