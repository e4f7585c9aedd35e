"""Makes ordinary.db and ordinary.log with Optuna (5.0.0): python make_ordinary.py. Both hold the same studies."""

import sqlite3

import optuna
from optuna.distributions import FloatDistribution

optuna.logging.set_verbosity(optuna.logging.ERROR)
storages = [
    "sqlite:///ordinary.db",
    optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("ordinary.log")),
]


def objective(trial):
    trial.suggest_categorical("data set", ["digits"])
    trial.suggest_int("seed", 7, 7)
    trial.suggest_float("model/lr", 1e-5, 1e-1 if trial.number < 6 else 1, log=True)
    trial.suggest_float("_drop", 0, 0.5, step=0.1)
    trial.suggest_float("C", 0, 1)
    trial.suggest_int("c", 1, 64, log=True)
    trial.suggest_categorical("args", [None, True, 1, 0.5, "1", "x"])
    for layer in range(trial.suggest_int("n_layers", 1, 3)):
        trial.suggest_int(f"layers[{layer}].units", 8, 64, step=8)
    if trial.suggest_categorical("solver", ["adam", "sgd"]) == "sgd":
        trial.suggest_float("momentum", 0, 0.99)
    trial.report(float("nan") if trial.number == 1 else 0.5, 1)
    trial.set_user_attr("seconds", 1.5)
    if trial.number == 3:
        raise optuna.TrialPruned
    if trial.number == 4:
        return float("nan")  # Optuna makes it a failed trial
    return {5: float("inf"), 8: float("-inf")}.get(trial.number, trial.params["C"])


for storage in storages:
    study = optuna.create_study(storage=storage, study_name="ordinary", sampler=optuna.samplers.RandomSampler(seed=4))
    study.optimize(objective, n_trials=24)
    study.ask({"C": FloatDistribution(0, 1)})
    pair = optuna.create_study(storage=storage, study_name="two goals", directions=["minimize", "maximize"])
    pair.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1), n_trials=2)
    optuna.create_study(storage=storage, study_name="deleted")
    optuna.delete_study(storage=storage, study_name="deleted")
for t in optuna.load_study(storage=storages[0], study_name="ordinary").trials:
    print(t.number, t.state.name, t.value, t.params)
with sqlite3.connect("ordinary.db") as db:
    db.execute("VACUUM")
