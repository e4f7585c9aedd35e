"""Several threads, and a callback that ends the optimisation when it is good enough."""

import optuna


class Enough:
    def __init__(self, wanted):
        self.wanted = wanted
        self.seen = 0

    def __call__(self, study, trial):
        self.seen += 1
        if study.best_value <= self.wanted:
            study.stop()


def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    y = trial.suggest_int("y", 0, 10)
    return (x - 2) ** 2 + (y - 3) ** 2


study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=1))
enough = Enough(wanted=20.0)
study.optimize(objective, n_trials=40, n_jobs=2, callbacks=[enough])
print(f"{enough.seen} trials, the best is {study.best_value:.2f}")
print(study.trials_dataframe()[["number", "value", "params_x", "params_y", "state"]].tail(3))
