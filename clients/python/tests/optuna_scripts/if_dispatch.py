"""A table of functions, whose parameters are named after them; the study may be pruned."""

import optuna


def ridge(trial):
    return 1.0 + abs(trial.suggest_float("ridge_alpha", 1e-3, 10, log=True) - 1)


def forest(trial):
    depth = trial.suggest_int("forest_depth", 1, 8)
    return 0.5 + abs(depth - 5) / 8


def boosting(trial):
    rate = trial.suggest_float("boosting_rate", 0.01, 0.3, log=True)
    rounds = trial.suggest_int("boosting_rounds", 10, 100, step=10)
    return 0.2 + abs(rate * rounds - 5) / 10


MODELS = {"ridge": ridge, "forest": forest, "boosting": boosting}


def objective(trial):
    loss = MODELS[trial.suggest_categorical("model", list(MODELS))](trial)
    for fold in range(4):
        trial.report(loss * (1 + 0.1 * fold), fold)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


study = optuna.create_study(direction="minimize", pruner=optuna.pruners.MedianPruner())
study.optimize(objective, n_trials=12)
print(study.best_trial.params["model"])
