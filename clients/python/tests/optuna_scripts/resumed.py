"""A study in a storage, which the same script continues when it is started again."""

import optuna


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    return x**2


def main(n_trials):
    study = optuna.create_study(
        study_name="resumed-study",
        storage="sqlite:///resumed.db",
        direction="minimize",
        load_if_exists=True,
    )
    study.optimize(objective, n_trials=n_trials)
    return study


main(3)
study = main(3)
assert len(study.trials) == 6
print(study.best_trial)
