"""Makes optuna.db and optuna.log with Optuna (5.0.0): python make_optuna.py. Or the same in another storage: make_optuna.py URL."""

import sys

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
storages = sys.argv[1:] or [
    "sqlite:///optuna.db",
    optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("optuna.log")),
]


def objective(trial):
    rate = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    width = trial.suggest_int("width", 16, 256, log=True)
    layers = trial.suggest_int("layers", 1, 4)
    drop = trial.suggest_float("dropout", 0.0, 0.5, step=0.1)
    solver = trial.suggest_categorical("solver", ["adam", "sgd"])
    if solver == "sgd":
        trial.suggest_float("momentum", 0.0, 0.99)
    if trial.number == 3:
        raise optuna.TrialPruned
    return abs(rate - 1e-3) + abs(width - 64) / 64 + layers + drop


for storage in storages:
    study = optuna.create_study(storage=storage, study_name="My Study", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    best = study.best_trial
    print(best.number, best.value, best.params)
    optuna.create_study(storage=storage, study_name="empty", direction="maximize")
