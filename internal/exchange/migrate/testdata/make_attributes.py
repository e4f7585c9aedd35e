"""Makes attributes.db and attributes.log with Optuna (5.0.0): python make_attributes.py. Both hold the same study."""

import sqlite3

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
storages = [
    "sqlite:///attributes.db",
    optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("attributes.log")),
]
for storage in storages:
    study = optuna.create_study(storage=storage, study_name="noted", sampler=optuna.samplers.RandomSampler(seed=1))
    study.set_user_attr("data set", "old")
    study.set_user_attr("data set", "digits é")
    study.set_user_attr("sizes", [64, 0.5, {"deep": True}])
    study.set_user_attr("best", float("nan"))
    study.set_user_attr("nothing", None)
    study.set_user_attr("long", "x" * 2000)
    study.set_user_attr("longer", "x" * 2040)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
with sqlite3.connect("attributes.db") as db:
    db.execute("VACUUM")
