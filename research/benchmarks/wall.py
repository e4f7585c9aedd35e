#!/usr/bin/env python3
"""Wall time and result of tuning real models beside Optuna: XGBoost, LightGBM and a pipeline of scikit-learn.

    research/benchmarks/wall.py play --out wall.jsonl [--seeds 5]
    research/benchmarks/wall.py report wall.jsonl

A run is 40 trials, 4 at once in threads, of one objective that asks for its parameters as Optuna's do; Fantasia's studies are
created without parameters and keep everything on disk, Optuna's are in memory. The tuners take turns for each seed, in an order
that moves on by one, so that a busy machine slows all of them alike: read the ratios. The report shows medians over seeds of
the seconds and of the best value (1 less the accuracy, or the log loss), and Fantasia's seconds as a part of the others'.

`setup wall` makes a Python for it; Optuna's GP needs PyTorch. It needs bin/fantasia.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = Path(__file__).resolve().parents[2]
TRIALS, JOBS = 40, 4
TUNERS = ("fantasia", "optuna-tpe", "optuna-gp")


def data():
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    x, y = make_classification(3000, 20, n_informative=6, n_clusters_per_class=4, flip_y=0.05, random_state=1)
    return train_test_split(x, y, test_size=1000, random_state=1)


def xgboost(trial):
    import xgboost
    from sklearn.metrics import log_loss

    x, held, y, wanted = data()
    model = xgboost.XGBClassifier(
        n_jobs=1, n_estimators=100, max_depth=trial.suggest_int("max_depth", 2, 9),
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True), subsample=trial.suggest_float("subsample", 0.4, 1),
        colsample_bytree=trial.suggest_float("colsample_bytree", 0.3, 1), reg_lambda=trial.suggest_float("reg_lambda", 1e-3, 100, log=True),
    )
    return log_loss(wanted, model.fit(x, y).predict_proba(held))


def lightgbm(trial):
    import lightgbm
    from sklearn.metrics import log_loss

    x, held, y, wanted = data()
    model = lightgbm.LGBMClassifier(
        n_jobs=1, verbose=-1, n_estimators=100, num_leaves=trial.suggest_int("num_leaves", 2, 128, log=True),
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True), min_child_samples=trial.suggest_int("min_child_samples", 1, 100),
        feature_fraction=trial.suggest_float("feature_fraction", 0.3, 1), reg_lambda=trial.suggest_float("reg_lambda", 1e-3, 100, log=True),
    )
    return log_loss(wanted, model.fit(x, y).predict_proba(held))


def pipeline(trial):
    from sklearn.decomposition import PCA
    from sklearn.datasets import load_digits
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    steps = [StandardScaler()] if trial.suggest_categorical("scale", [True, False]) else []
    if trial.suggest_categorical("reduce", [True, False]):
        steps.append(PCA(trial.suggest_int("components", 4, 64)))
    kernel = trial.suggest_categorical("kernel", ["linear", "rbf"])
    gamma = trial.suggest_float("gamma", 1e-5, 1, log=True) if kernel == "rbf" else "scale"
    model = make_pipeline(*steps, SVC(kernel=kernel, gamma=gamma, C=trial.suggest_float("C", 1e-3, 1e3, log=True)))
    x, y = load_digits(return_X_y=True)
    return 1 - cross_val_score(model, x[:900], y[:900], cv=3).mean()


TASKS = {"xgboost": xgboost, "lightgbm": lightgbm, "pipeline": pipeline}


def study_of(tuner, seed, storage):
    if tuner == "fantasia":
        import fantasia_hpo

        return fantasia_hpo.create_study(direction="minimize", seed=seed, storage=storage)
    import optuna

    sampler = {"optuna-tpe": optuna.samplers.TPESampler, "optuna-gp": optuna.samplers.GPSampler}[tuner]
    return optuna.create_study(sampler=sampler(seed=seed))


def play(task, tuner, seed, storage):
    study = study_of(tuner, seed, storage)
    began = time.perf_counter()
    study.optimize(TASKS[task], n_trials=TRIALS, n_jobs=JOBS)
    return {"task": task, "tuner": tuner, "seed": seed, "seconds": round(time.perf_counter() - began, 2), "best": round(study.best_value, 5)}


def play_all(a):
    os.environ["FANTASIA_PROGRAM"] = str(Path(a.fantasia).resolve())
    sys.path.insert(0, str(ROOT / "clients/python/src"))
    import fantasia_hpo
    import optuna

    warnings.simplefilter("ignore")
    fantasia_hpo.logging.set_verbosity("ERROR")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    Path(a.out).parent.mkdir(parents=True, exist_ok=True)
    rows = read(a.out) if os.path.exists(a.out) else []
    done = {(r["task"], r["tuner"], r["seed"]) for r in rows}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as storage, open(a.out, "a") as out:
        for task in TASKS:  # imports, the server's start and the first compilation are nobody's
            for tuner in TUNERS:
                study_of(tuner, 0, storage).optimize(TASKS[task], n_trials=1)
        for seed in range(a.seeds):
            for task in TASKS:
                for i in range(len(TUNERS)):
                    tuner = TUNERS[(seed + i) % len(TUNERS)]
                    if (task, tuner, seed) not in done:
                        print(json.dumps(play(task, tuner, seed, storage)), file=out, flush=True)


def read(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def table(rows):
    """The lines of the report, of the runs that all tuners have."""
    by = {(r["task"], r["tuner"], r["seed"]): r for r in rows}
    lines = ["| task | runs | tuner | seconds | best value | seconds of `fantasia` / seconds |", "| --- | ---: | --- | ---: | ---: | ---: |"]
    for task in TASKS:
        seeds = sorted({s for t, _, s in by if t == task and all((task, u, s) in by for u in TUNERS)})
        for tuner in TUNERS if seeds else ():
            runs = [by[task, tuner, s] for s in seeds]
            ratios = sorted(by[task, "fantasia", s]["seconds"] / by[task, tuner, s]["seconds"] for s in seeds)
            ratio = "" if tuner == "fantasia" else f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            seconds, best = (statistics.median(r[k] for r in runs) for k in ("seconds", "best"))
            lines.append(f"| {task} | {len(seeds)} | `{tuner}` | {seconds:.1f} | {best:.4f} | {ratio} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("play")
    p.add_argument("--out", required=True)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--fantasia", default="bin/fantasia")
    verbs.add_parser("report").add_argument("file")
    a = parser.parse_args()
    if a.verb == "play":
        play_all(a)
    else:
        print("\n".join(table(read(a.file))))


if __name__ == "__main__":
    main()
