"""Folds in an order that is drawn, pruned by their ranks; a trial that is pruned returns its mean so far."""

import numpy as np
import optuna
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

features, target = load_diabetes(return_X_y=True)
folds = list(KFold(10, shuffle=True, random_state=0).split(features))


def objective(trial):
    model = Ridge(alpha=trial.suggest_float("alpha", 1e-4, 1e4, log=True))
    errors = []
    for k in np.random.permutation(len(folds)):
        train, test = folds[k]
        residual = model.fit(features[train], target[train]).predict(features[test]) - target[test]
        errors.append(float(np.mean(residual**2)))
        trial.report(errors[-1], int(k))
        if trial.should_prune():
            break
    return float(np.mean(errors))


sampler = optuna.samplers.TPESampler(seed=1)
study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.WilcoxonPruner(p_threshold=0.1))
study.enqueue_trial({"alpha": 1.0})
study.optimize(objective, n_trials=12)
print(study.best_value, study.best_params)
