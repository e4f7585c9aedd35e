"""Makes constraints.db and constraints.log with Optuna (5.0.0): python make_constraints.py. Both hold the same studies."""

import sqlite3
import warnings

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore", FutureWarning)
storages = [
    "sqlite:///constraints.db",
    optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("constraints.log")),
]
# Of each trial: x, and the values of the constraints that it sets.
SET = [
    (0.1, {"peak memory": 3, "size": -1}),
    (0.2, {"size": 0, "peak memory": -2}),
    (0.3, {"size": -1}),
    (0.4, {"size": float("-inf"), "peak memory": -1}),
    (0.5, {"size": float("inf"), "peak memory": -1}),
    (0.6, {"size": 0.5, "peak memory": 0.5}),
]
COMPUTED = [(0.1, (1, -1)), (0.2, (-1, 0.5)), (0.3, (0, -3))]


def sets(trial):
    _, constraints = SET[trial.number]
    for name, value in constraints.items():
        trial.set_constraint(name, value)
    return trial.suggest_float("x", 0, 1)


for storage in storages:
    study = optuna.create_study(storage=storage, study_name="set", sampler=optuna.samplers.RandomSampler(seed=1))
    for x, _ in SET:
        study.enqueue_trial({"x": x})
    study.optimize(sets, n_trials=len(SET))
    sampler = optuna.samplers.TPESampler(constraints_func=lambda trial: COMPUTED[trial.number][1], seed=1)
    pair = optuna.create_study(
        storage=storage, study_name="computed", sampler=sampler, directions=["minimize", "maximize"]
    )
    for x, _ in COMPUTED:
        pair.enqueue_trial({"x": x})
    pair.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1), n_trials=len(COMPUTED))
    for s in (study, pair):
        print(s.study_name, [(t.params, t.values, t.constraints) for t in s.trials], [t.number for t in s.best_trials])
with sqlite3.connect("constraints.db") as db:
    db.execute("VACUUM")
