"""Two objectives, and the trials of the front."""

import optuna


def objective(trial):
    x = trial.suggest_float("x", 0, 5)
    y = trial.suggest_float("y", 0, 3)
    return 4 * x**2 + 4 * y**2, (x - 5) ** 2 + (y - 5) ** 2


study = optuna.create_study(directions=["minimize", "minimize"])
study.optimize(objective, n_trials=8)
print(f"{len(study.best_trials)} trials on the front")
for trial in sorted(study.best_trials, key=lambda t: t.values):
    print(trial.number, trial.values, trial.params)
