#!/usr/bin/env python3
"""Small studies as people write them: 40 trials of models of scikit-learn, XGBoost and LightGBM, beside Optuna's TPE.

    research/benchmarks/small.py play --out small.jsonl [--seeds 20] [--tasks forest,network] [--jobs 4] [--tuners hebo,optuna-tpe]
    research/benchmarks/small.py report small.jsonl

An objective asks for its parameters as Optuna's do: some on a logarithmic scale, some only under a condition, some that hardly matter.
Fantasia's studies are created without parameters. A run keeps the best value (an error, a log loss or a mean squared error) after
10, 20 and 40 trials, of which four run at once in threads. A point has the same value in every run, so that tuners differ in their
points alone. The report has the best value after 20 and 40 trials on a scale for each task: 0 is the best value of any run, and 1 the
median of all runs after ten trials. It shows means over seeds, and differences over pairs of the same task and seed.

`setup small` makes a Python for it. It needs bin/fantasia.
"""
import argparse
import functools
import json
import os
import statistics
import sys
import tempfile
import threading
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
ROOT = Path(__file__).resolve().parents[2]
TRIALS, JOBS, AFTER = 40, 4, (10, 20, 40)


@functools.cache
def data():
    from sklearn.datasets import make_classification
    from sklearn.model_selection import train_test_split

    x, y = make_classification(3000, 20, n_informative=6, n_clusters_per_class=4, flip_y=0.05, random_state=1)
    return train_test_split(x, y, test_size=1000, random_state=1)


@functools.cache
def digits():
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return x[:900], y[:900]


@functools.cache
def curve():
    """Friedman's function of five of ten inputs, with noise."""
    from sklearn.datasets import make_friedman1
    from sklearn.model_selection import train_test_split

    x, y = make_friedman1(900, 10, noise=1.0, random_state=2)
    return train_test_split(x, y, test_size=300, random_state=2)


def cross_validated(model, x, y, folds=3):
    from sklearn.model_selection import cross_val_score

    return 1 - cross_val_score(model, x, y, cv=folds).mean()


def log_loss(model):
    from sklearn.metrics import log_loss as loss

    x, held, y, wanted = data()
    return loss(wanted, model.fit(x, y).predict_proba(held))


def squared_error(model):
    from sklearn.metrics import mean_squared_error

    x, held, y, wanted = curve()
    return mean_squared_error(wanted, model.fit(x, y).predict(held))


def xgboost(trial):
    import xgboost

    return log_loss(xgboost.XGBClassifier(
        n_jobs=1, n_estimators=100, max_depth=trial.suggest_int("max_depth", 2, 9),
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True), subsample=trial.suggest_float("subsample", 0.4, 1),
        colsample_bytree=trial.suggest_float("colsample_bytree", 0.3, 1), reg_lambda=trial.suggest_float("reg_lambda", 1e-3, 100, log=True),
    ))


def lightgbm(trial):
    import lightgbm

    return log_loss(lightgbm.LGBMClassifier(
        n_jobs=1, verbose=-1, n_estimators=100, num_leaves=trial.suggest_int("num_leaves", 2, 128, log=True),
        learning_rate=trial.suggest_float("learning_rate", 1e-3, 0.5, log=True), min_child_samples=trial.suggest_int("min_child_samples", 1, 100),
        feature_fraction=trial.suggest_float("feature_fraction", 0.3, 1), reg_lambda=trial.suggest_float("reg_lambda", 1e-3, 100, log=True),
    ))


def pipeline(trial):
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    steps = [StandardScaler()] if trial.suggest_categorical("scale", [True, False]) else []
    if trial.suggest_categorical("reduce", [True, False]):
        steps.append(PCA(trial.suggest_int("components", 4, 64), random_state=0))
    kernel = trial.suggest_categorical("kernel", ["linear", "rbf"])
    gamma = trial.suggest_float("gamma", 1e-5, 1, log=True) if kernel == "rbf" else "scale"
    return cross_validated(make_pipeline(*steps, SVC(kernel=kernel, gamma=gamma, C=trial.suggest_float("C", 1e-3, 1e3, log=True))), *digits())


def forest(trial):
    from sklearn.ensemble import RandomForestClassifier

    bootstrap = trial.suggest_categorical("bootstrap", [True, False])
    return log_loss(RandomForestClassifier(
        n_estimators=trial.suggest_int("n_estimators", 5, 60, log=True), max_depth=trial.suggest_int("max_depth", 2, 24),
        min_samples_split=trial.suggest_int("min_samples_split", 2, 40), min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 40),
        max_features=trial.suggest_float("max_features", 0.05, 1), criterion=trial.suggest_categorical("criterion", ["gini", "entropy"]),
        ccp_alpha=trial.suggest_float("ccp_alpha", 1e-6, 1e-1, log=True), bootstrap=bootstrap,
        max_samples=trial.suggest_float("max_samples", 0.2, 1) if bootstrap else None, random_state=0,
    ))


def network(trial):
    from sklearn.neural_network import MLPClassifier

    solver = trial.suggest_categorical("solver", ["adam", "sgd"])
    layers = trial.suggest_int("layers", 1, 3)
    return cross_validated(MLPClassifier(
        tuple(trial.suggest_int(f"width_{i}", 4, 64, log=True) for i in range(layers)), solver=solver, max_iter=8, random_state=0,
        activation=trial.suggest_categorical("activation", ["relu", "tanh", "logistic"]), alpha=trial.suggest_float("alpha", 1e-7, 1e-1, log=True),
        batch_size=trial.suggest_categorical("batch_size", [16, 32, 64, 128]),
        learning_rate_init=trial.suggest_float("learning_rate", 1e-5, 1, log=True),
        momentum=trial.suggest_float("momentum", 0, 0.99) if solver == "sgd" else 0.9,
    ), *digits(), folds=2)


def linear(trial):
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    penalty = trial.suggest_categorical("penalty", ["l1", "l2", "elasticnet"])
    schedule = trial.suggest_categorical("schedule", ["constant", "invscaling", "adaptive", "optimal"])
    return cross_validated(make_pipeline(
        {"none": "passthrough", "standard": StandardScaler(), "range": MinMaxScaler()}[trial.suggest_categorical(
            "scaler", ["none", "standard", "range"])],
        SGDClassifier(
            loss=trial.suggest_categorical("loss", ["hinge", "log_loss", "modified_huber", "squared_hinge"]), penalty=penalty,
            alpha=trial.suggest_float("alpha", 1e-8, 10, log=True), learning_rate=schedule, max_iter=30, random_state=0,
            l1_ratio=trial.suggest_float("l1_ratio", 0, 1) if penalty == "elasticnet" else 0.15,
            eta0=trial.suggest_float("eta0", 1e-5, 10, log=True) if schedule != "optimal" else 1e-2,
            power_t=trial.suggest_float("power_t", 0.1, 0.9) if schedule == "invscaling" else 0.5,
            average=trial.suggest_categorical("average", [True, False]),
        )), *digits())


def boosting(trial):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return squared_error(HistGradientBoostingRegressor(
        max_iter=60, learning_rate=trial.suggest_float("learning_rate", 1e-3, 1, log=True),
        max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 2, 64, log=True), max_depth=trial.suggest_int("max_depth", 1, 12),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 60), l2_regularization=trial.suggest_float("l2", 1e-6, 100, log=True),
        max_bins=trial.suggest_int("max_bins", 8, 255), max_features=trial.suggest_float("max_features", 0.1, 1), random_state=0,
    ))


def regression(trial):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    kernel = trial.suggest_categorical("kernel", ["rbf", "poly", "sigmoid", "linear"])
    return squared_error(make_pipeline(StandardScaler(), SVR(
        kernel=kernel, C=trial.suggest_float("C", 1e-3, 1e3, log=True), epsilon=trial.suggest_float("epsilon", 1e-4, 2, log=True),
        gamma=trial.suggest_float("gamma", 1e-4, 1, log=True) if kernel != "linear" else "scale",
        degree=trial.suggest_int("degree", 2, 5) if kernel == "poly" else 3,
        coef0=trial.suggest_float("coef0", 0, 2) if kernel in ("poly", "sigmoid") else 0, max_iter=20_000,
    )))


def neighbours(trial):
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    steps = {"none": [], "standard": [StandardScaler()], "range": [MinMaxScaler()]}[trial.suggest_categorical(
        "scaler", ["none", "standard", "range"])]
    reduce = trial.suggest_categorical("reduce", ["none", "pca", "select"])
    if reduce == "pca":
        steps = [*steps, PCA(trial.suggest_int("components", 2, 64), whiten=trial.suggest_categorical("whiten", [True, False]), random_state=0)]
    elif reduce == "select":
        steps = [*steps, SelectKBest(k=trial.suggest_int("features", 2, 64))]
    return cross_validated(make_pipeline(*steps, KNeighborsClassifier(
        n_neighbors=trial.suggest_int("n_neighbors", 1, 60, log=True), weights=trial.suggest_categorical("weights", ["uniform", "distance"]),
        p=trial.suggest_float("p", 1, 4),
    )), *digits())


TASKS = {"xgboost": xgboost, "lightgbm": lightgbm, "pipeline": pipeline, "forest": forest, "network": network, "linear": linear,
         "boosting": boosting, "regression": regression, "neighbours": neighbours}


class Recorder:
    """An objective that keeps the best value after each trial, in the order in which they end."""

    def __init__(self, objective):
        self.objective, self.best, self.lock = objective, [], threading.Lock()

    def __call__(self, trial):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = float(self.objective(trial))
        with self.lock:
            self.best.append(min([value, *self.best[-1:]]))
        return value


def study_of(tuner, seed, storage):
    if tuner != "optuna-tpe":
        import fantasia_hpo

        return fantasia_hpo.create_study(direction="minimize", seed=seed, storage=storage, algorithm=tuner)
    import optuna

    return optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))


def play(task, tuner, seed, jobs, storage):
    objective = Recorder(TASKS[task])
    study_of(tuner, seed, storage).optimize(objective, n_trials=TRIALS, n_jobs=jobs)
    return {"task": task, "tuner": tuner, "seed": seed, "best": [float(f"{objective.best[n - 1]:.5g}") for n in AFTER]}


def seed_of(task, seed):
    """The seed of a run. No two tasks have the same seeds, so that none begin with the same points."""
    return (sum(task.encode()) * 1000 + seed) % 2**31


def prepare(program):
    """Let Fantasia's client find its program, and the tuners say nothing but errors."""
    os.environ["FANTASIA_PROGRAM"] = str(Path(program).resolve())
    sys.path.insert(0, str(ROOT / "clients/python/src"))
    import fantasia_hpo
    import optuna

    warnings.simplefilter("ignore")
    fantasia_hpo.logging.set_verbosity("ERROR")
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def play_all(a):
    prepare(a.fantasia)
    Path(a.out).parent.mkdir(parents=True, exist_ok=True)
    rows = read(a.out) if os.path.exists(a.out) else []
    done = {(r["task"], r["tuner"], r["seed"]) for r in rows}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as storage, open(a.out, "a") as out:
        for seed in range(a.first, a.first + a.seeds):
            for task in a.tasks.split(","):
                for tuner in a.tuners.split(","):
                    if (task, tuner, seed) not in done:
                        row = play(task, tuner, seed_of(task, seed), a.jobs, storage) | {"seed": seed}
                        print(json.dumps(row), file=out, flush=True)


def read(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def shares(rows):
    """Each run's best values on its task's scale: 0 is the best value of any run, and 1 the median of all runs after ten trials."""
    scaled = {}
    for task in TASKS:
        runs = [r for r in rows if r["task"] == task]
        if runs:
            best = min(r["best"][-1] for r in runs)
            unit = statistics.median(r["best"][0] for r in runs) - best
            for r in runs:
                scaled[task, r["tuner"], r["seed"]] = [(v - best) / unit for v in r["best"]]
    return scaled


def table(rows, base="optuna-tpe"):
    """The lines of the report: each tuner beside the base."""
    from fantasia_bench.score import interval, mean

    scaled = shares(rows)
    lines = ["| task | pairs | tuner | after 20 | 40 | of `" + base + "`, after 20 | 40 | less, after 20 | 40 |",
             "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- | --- |"]
    for tuner in sorted({r["tuner"] for r in rows} - {base}):
        grouped = {}
        for task in TASKS:
            seeds = sorted(s for t, u, s in scaled if t == task and u == tuner and (t, base, s) in scaled)
            if seeds:
                grouped[task] = [(scaled[task, tuner, s], scaled[task, base, s]) for s in seeds]
        for name, groups in [*((t, {t: p}) for t, p in grouped.items()), ("all", grouped)]:
            cells = [f"{mean({t: [p[side][at] for p in g] for t, g in groups.items()}):.2f}" for side in (0, 1) for at in (1, 2)]
            less = []
            for at in (1, 2):
                differences = {t: [theirs[at] - own[at] for own, theirs in g] for t, g in groups.items()}
                low, high = interval(differences)
                less.append(f"{mean(differences):+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "−"))
            lines.append(f"| {name} | {sum(map(len, groups.values()))} | `{tuner}` | {' | '.join(cells + less)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("play")
    p.add_argument("--out", required=True)
    p.add_argument("--seeds", type=int, default=20)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--jobs", type=int, default=JOBS)
    p.add_argument("--tasks", default=",".join(TASKS))
    p.add_argument("--tuners", default="hebo,optuna-tpe")
    p.add_argument("--fantasia", default="bin/fantasia")
    verbs.add_parser("report").add_argument("file")
    a = parser.parse_args()
    if a.verb == "play":
        play_all(a)
    else:
        print("\n".join(table(read(a.file))))


if __name__ == "__main__":
    main()
