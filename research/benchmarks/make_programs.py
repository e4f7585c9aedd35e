#!/usr/bin/env python3
"""Trains the programs whose curves research/benchmarks/programs has, 300 configurations each.

Interrupted, the same command continues. It takes a quarter of an hour of one core and needs scikit-learn and XGBoost.
"""

import argparse
import gzip
import json
import math
import os
import pathlib
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import xgboost
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

CONFIGURATIONS, CLASSES = 300, list(range(10))


def data():
    """The digits of scikit-learn: inputs and classes to train on, and to validate on."""
    inputs, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(inputs))
    inputs = StandardScaler().fit_transform(inputs)[order]
    return inputs[:900], classes[order][:900], inputs[900:], classes[order][900:]


def loss_of(probabilities, classes):
    if not np.all(np.isfinite(probabilities)):
        return math.nan
    return log_loss(classes, probabilities, labels=CLASSES)


def rounds(hp, seed):
    """XGBoost, a loss after each round."""
    inputs, classes, valid, valid_classes = data()
    watched = xgboost.DMatrix(valid, valid_classes)
    given = {
        "objective": "multi:softprob", "num_class": 10, "nthread": 1, "seed": seed, "eta": hp["eta"], "max_depth": hp["depth"],
        "subsample": hp["subsample"], "colsample_bytree": hp["columns"], "min_child_weight": hp["weight"], "lambda": hp["lambda"],
    }
    losses = {}
    xgboost.train(given, xgboost.DMatrix(inputs, classes), 50, evals=[(watched, "v")], evals_result=losses, verbose_eval=False)
    return losses["v"]["mlogloss"]


def passes(hp, seed):
    """Logistic regression by stochastic gradients, a loss after each pass over the data."""
    inputs, classes, valid, valid_classes = data()
    model = SGDClassifier(
        loss="log_loss", penalty="elasticnet", alpha=hp["alpha"], l1_ratio=hp["l1"], learning_rate="invscaling", eta0=hp["eta"],
        power_t=hp["power"], average=False, random_state=seed,
    )
    losses = []
    for _ in range(50):
        model.partial_fit(inputs, classes, classes=CLASSES)
        scores = model.decision_function(valid)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        losses.append(loss_of(scores / scores.sum(axis=1, keepdims=True), valid_classes))
    return losses


def epochs(hp, seed):
    """A network trained with Adam, a loss after each epoch."""
    inputs, classes, valid, valid_classes = data()
    model = MLPClassifier(
        (hp["width"],), alpha=hp["alpha"], batch_size=hp["batch"], learning_rate_init=hp["rate"], beta_1=hp["beta"], random_state=seed,
    )
    losses = []
    for epoch in range(50):
        model.partial_fit(inputs, classes, classes=None if epoch else CLASSES)
        losses.append(loss_of(model.predict_proba(valid), valid_classes))
    return losses


def trees(hp, seed):
    """A random forest, a loss after each tree."""
    inputs, classes, valid, valid_classes = data()
    model = RandomForestClassifier(
        50, max_depth=hp["depth"], max_features=hp["features"], min_samples_leaf=hp["leaf"], max_samples=hp["samples"],
        min_impurity_decrease=hp["decrease"], random_state=seed, n_jobs=1,
    ).fit(inputs, classes)
    total, losses = 0, []
    for n, tree in enumerate(model.estimators_, 1):
        total = total + tree.predict_proba(valid)
        clipped = np.clip(total / n, 1e-3, 1)
        losses.append(loss_of(clipped / clipped.sum(axis=1, keepdims=True), valid_classes))
    return losses


def folds(hp, seed):
    """A support vector machine, the mean error of the folds of a cross-validation so far."""
    inputs, classes, _, _ = data()
    errors = []
    for train, test in StratifiedKFold(20, shuffle=True, random_state=seed).split(inputs, classes):
        model = SVC(C=hp["C"], gamma=hp["gamma"], coef0=hp["coef0"], kernel="poly", degree=hp["degree"])
        errors.append(1 - model.fit(inputs[train], classes[train]).score(inputs[test], classes[test]))
    return list(np.cumsum(errors) / np.arange(1, 21))


# A parameter is its name, its bounds and its kind: log is searched on a logarithmic scale, int is rounded.
PROGRAMS = {
    "rounds": (rounds, math.log(10), [
        ("eta", 1e-3, 1, "log"), ("depth", 1, 10, "int"), ("subsample", 0.2, 1, ""), ("columns", 0.1, 1, ""), ("weight", 0.5, 32, "log"),
        ("lambda", 1e-3, 100, "log"),
    ]),
    "passes": (passes, math.log(10), [
        ("alpha", 1e-6, 1, "log"), ("l1", 0, 1, ""), ("eta", 1e-4, 1, "log"), ("power", 0, 1, ""),
    ]),
    "epochs": (epochs, math.log(10), [
        ("width", 4, 128, "log int"), ("alpha", 1e-6, 10, "log"), ("batch", 8, 256, "log int"), ("rate", 1e-5, 1, "log"), ("beta", 0, 0.99, ""),
    ]),
    "trees": (trees, math.log(10), [
        ("depth", 1, 20, "int"), ("features", 0.02, 1, ""), ("leaf", 1, 64, "log int"), ("samples", 0.05, 1, ""), ("decrease", 1e-6, 1e-1, "log"),
    ]),
    "folds": (folds, 0.9, [
        ("C", 1e-3, 1e3, "log"), ("gamma", 1e-4, 1, "log"), ("coef0", 0, 4, ""), ("degree", 1, 5, "int"),
    ]),
}


def draw(rng, parameters):
    """A configuration as the program takes it, and as it is searched."""
    hp, searched = {}, {}
    for name, low, high, kind in parameters:
        x = math.log10(low) + rng.random() * math.log10(high / low) if "log" in kind else low + rng.random() * (high - low)
        value = 10**x if "log" in kind else x
        hp[name], searched[name] = (round(value) if "int" in kind else value), round(x, 4)
    return hp, searched


def make(name, path, log):
    train, guess, parameters = PROGRAMS[name]
    rng = np.random.default_rng(list(PROGRAMS).index(name))
    drawn = [draw(rng, parameters) for _ in range(CONFIGURATIONS)]
    part = path.with_suffix(".part")
    done = part.read_text().splitlines() if part.exists() else []
    with part.open("a") as file:
        for i, (hp, searched) in enumerate(drawn[len(done):], len(done)):
            began = time.process_time()
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                losses = [float(f"{v:.5g}") if math.isfinite(v) else None for v in train(hp, i)]
            seconds = (time.process_time() - began) / len(losses)
            file.write(json.dumps({"hp": searched, "seconds": round(seconds, 5), "valid": losses}) + "\n")
            file.flush()
    bounds = [{"name": n, "low": math.log10(a) if "log" in k else a, "high": math.log10(b) if "log" in k else b} for n, a, b, k in parameters]
    head = json.dumps({"guess": guess, "final": name == "folds", "parameters": bounds})  # the mean of some folds is no value
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        out.write("\n".join([head, *part.read_text().splitlines(), ""]).encode())
    part.unlink()
    log(f"{name}: {CONFIGURATIONS} trainings")


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--out", type=pathlib.Path, default=pathlib.Path("programs"), help="the folder of the curves")
    given = flags.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        path = given.out / f"{name}.jsonl.gz"
        if not path.exists():
            make(name, path, lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
