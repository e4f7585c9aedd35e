"""The 108 tasks of Bayesmark (https://github.com/uber/bayesmark): models, data sets, metrics and search spaces."""

import fnmatch
import os
import random
import sys
from dataclasses import dataclass

from .space import BOOL, INT, REAL, Parameter

TRIALS, WORKERS = 128, 8

CLASSIFICATION = ("digits", "iris", "wine", "breast")
REGRESSION = ("boston", "diabetes")
METRICS = {data: ("nll", "acc") for data in CLASSIFICATION} | {data: ("mae", "mse") for data in REGRESSION}

# Optimisers may be developed on these sets; the other 72 tasks are kept to see whether they were tuned to them.
OPEN = ("wine_nll", "breast_nll", "boston_mse", "diabetes_mae")


def _real(name, low, high, scale="linear"):
    return Parameter(name, REAL, scale, low, high)


def _int(name, low, high, scale="linear"):
    return Parameter(name, INT, scale, low, high)


_TREE = [
    _int("max_depth", 1, 15),
    _real("min_samples_split", 0.01, 0.99, "logit"),
    _real("min_samples_leaf", 0.01, 0.49, "logit"),
    _real("min_weight_fraction_leaf", 0.01, 0.49, "logit"),
    _real("max_features", 0.01, 0.99, "logit"),
    _real("min_impurity_decrease", 0.0, 0.5),
]
_NETWORK = [
    _int("hidden_layer_sizes", 50, 200),
    _real("alpha", 1e-5, 1e1, "log"),
    _int("batch_size", 10, 250),
    _real("learning_rate_init", 1e-5, 1e-1, "log"),
    _real("tol", 1e-5, 1e-1, "log"),
    _real("validation_fraction", 0.1, 0.9, "logit"),
]
_ADAM = [_real("beta_1", 0.5, 0.99, "logit"), _real("beta_2", 0.9, 1 - 1e-6, "logit"), _real("epsilon", 1e-9, 1e-6, "log")]
_SGD = [_real("power_t", 0.1, 0.9, "logit"), _real("momentum", 0.001, 0.999, "logit")]
_LOGISTIC = [_real("C", 1e-2, 1e2, "log"), _real("intercept_scaling", 1e-2, 1e2, "log")]


def _penalised(tol):
    return [
        _real("alpha", 1e-2, 1e2, "log"),
        Parameter("fit_intercept", BOOL),
        Parameter("normalize", BOOL),
        _int("max_iter", 10, 5000, "log"),
        _real("tol", tol, 1e-1, "log"),
    ]


SPACES = {
    "kNN": [_int("n_neighbors", 1, 25), _int("p", 1, 4)],
    "SVM": [_real("C", 1.0, 1e3, "log"), _real("gamma", 1e-4, 1e-3, "log"), _real("tol", 1e-5, 1e-1, "log")],
    "DT": _TREE,
    "RF": _TREE,
    "MLP-adam": _NETWORK + _ADAM,
    "MLP-sgd": _NETWORK + _SGD,
    "ada": [_int("n_estimators", 10, 100), _real("learning_rate", 1e-4, 1e1, "log")],
    "lasso": _LOGISTIC,
    "linear": _LOGISTIC,
}
REGRESSION_SPACES = {"lasso": _penalised(1e-5) + [Parameter("positive", BOOL)], "linear": _penalised(1e-4)}


@dataclass(frozen=True)
class Task:
    """A model on a data set under a metric."""

    model: str
    data: str
    metric: str

    @property
    def name(self):
        return f"{self.model}_{self.data}_{self.metric}"

    @property
    def regression(self):
        return self.data in REGRESSION

    @property
    def space(self):
        return REGRESSION_SPACES.get(self.model, SPACES[self.model]) if self.regression else SPACES[self.model]


TASKS = {t.name: t for t in (Task(m, d, k) for m in SPACES for d, metrics in METRICS.items() for k in metrics)}


def task(name):
    """The task of a name; it exits where there is none."""
    if name not in TASKS:
        sys.exit(f"no task is named {name!r}: `research/benchmarks/tasks.py list` prints the names")
    return TASKS[name]


def select(text):
    """The names that a comma-separated list means: names, patterns such as kNN_*, `open`, `other`, `all`, `other:12` (12 of the others, always the same), `other:12-24` (the 12 that `other:24` has beside those)."""
    chosen = []
    for word in text.split(","):
        group, _, count = word.partition(":")
        if group in ("open", "other", "all"):
            names = [n for n in TASKS if group == "all" or n.endswith(OPEN) == (group == "open")]
            after, _, last = count.rpartition("-")
            found = sorted(random.Random("tasks").sample(names, int(last))[int(after or 0) :], key=names.index) if count else names
        else:
            found = fnmatch.filter(TASKS, word)
        if not found:
            sys.exit(f"no task is named {word!r}: want open, other, all, other:12, a name or a pattern; `research/benchmarks/tasks.py list` prints the names")
        chosen += [n for n in found if n not in chosen]
    return chosen


def study(name, algorithm, seed=0, trials=TRIALS, parallelism=WORKERS, settings=None):
    """The task's study file as an object; JSON is YAML. Its program is the evaluator in stream mode, run by this Python."""
    parameters = []
    for p in task(name).space:
        if p.continuous:
            parameters.append({"name": p.name, "type": "int" if p.kind == INT else "float", "min": p.low, "max": p.high, "scale": p.scale})
        else:
            parameters.append({"name": p.name, "type": "bool"})
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tasks.py")
    return {
        "apiVersion": "fantasia.dev/v1",
        "kind": "Study",
        "metadata": {"name": name.lower().replace("_", "-")},
        "spec": {
            "objective": {"metric": "loss", "direction": "minimize"},
            "parameters": parameters,
            "algorithm": {"name": algorithm, "seed": seed} | ({"settings": settings} if settings else {}),
            "budget": {"maxTrials": trials},
            "parallelism": parallelism,
            "trial": {"command": [sys.executable, script, "serve", name], "mode": "stream"},
        },
    }
