"""Times the client's calls beside Optuna's, in one run: reports, lists of trials, and XGBoost with pruning.

usage: python benchmarks/calls.py [--trials 10000] [--rounds 100]

Read the ratios; the seconds are those of this machine as busy as it is. Needs bin/fantasia (make build),
Optuna and XGBoost: $(clients/python/setup test)/bin/python has them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "clients/python/src"))
os.environ.setdefault("FANTASIA_PROGRAM", str(ROOT / "bin/fantasia"))

import numpy as np  # noqa: E402
import optuna  # noqa: E402
import xgboost  # noqa: E402

import fantasia_hpo as fantasia  # noqa: E402
from fantasia_hpo.xgboost import PruningCallback  # noqa: E402

_STEPS = 2000


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def study(storage: str, **options: Any) -> fantasia.Study:
    """Create a study with random points."""
    space = {"eta": fantasia.Float(0.01, 0.3, scale="log"), "max_depth": fantasia.Int(2, 8)}
    options = {"parameters": space, "algorithm": "random", "seed": 1, **options}
    return fantasia.create_study(direction="minimize", storage=storage, **options)


def reports(storage: str) -> None:
    """Time a report and the question after it."""
    trial = study(storage, early_stopping="median").ask()

    def step(number: int) -> None:
        trial.report(1 / number, number)
        trial.should_prune()

    times = [seconds(lambda n=n: step(n)) for n in range(1, _STEPS + 1)]  # type: ignore[misc]
    end = seconds(lambda: trial.study.tell(trial, 0.0))
    median = statistics.median(times) * 1e3
    print(f"report and should_prune: median {median:.4f} ms of {_STEPS}, end {end:.3f} s")


def lists(storage: str, most: int) -> None:
    """Time lists of trials, and count Optuna's in a file of SQLite as 1."""
    made = study(storage)
    rng = np.random.default_rng(1)
    there = 0
    for count in (500, most):
        points = [{"eta": float(rng.uniform(0.01, 0.3)), "max_depth": 3} for _ in range(count - there)]
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda p: made.add_trial(p, 1.0), points))
        there = count
        own = min(seconds(lambda: made.trials) for _ in range(3))
        print(f"trials of a study of {count}: {own:.3f} s")


def boosting(storage: str, rounds: int) -> None:
    """Tune XGBoost with pruning: 40 trials, 4 at once, here and in Optuna."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, 20))
    y = (x[:, 0] * x[:, 1] + rng.normal(size=2000) > 0).astype(int)
    train, test = xgboost.DMatrix(x[:1500], y[:1500]), xgboost.DMatrix(x[1500:], y[1500:])

    def fit(params: dict[str, Any], callback: Any) -> float:
        params = {**params, "objective": "binary:logistic", "nthread": 1, "eval_metric": "logloss"}
        result: dict[str, Any] = {}
        xgboost.train(
            params,
            train,
            rounds,
            evals=[(test, "test")],
            evals_result=result,
            callbacks=[callback],
            verbose_eval=False,
        )
        return float(result["test"]["logloss"][-1])

    class OptunaCallback(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        def __init__(self, trial: optuna.Trial):
            super().__init__()
            self._trial = trial

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            self._trial.report(evals_log["test"]["logloss"][-1], epoch)
            if self._trial.should_prune():
                raise optuna.TrialPruned
            return False

    def theirs(trial: optuna.Trial) -> float:
        params = {
            "eta": trial.suggest_float("eta", 0.01, 0.3, log=True),
            "max_depth": trial.suggest_int("max_depth", 2, 8),
        }
        return fit(params, OptunaCallback(trial))

    file = f"sqlite:///{storage}/optuna.db"
    other = optuna.create_study(storage=file, sampler=optuna.samplers.RandomSampler(seed=1))
    took = seconds(lambda: other.optimize(theirs, n_trials=40, n_jobs=4))
    made = study(storage, early_stopping="median")
    own = seconds(
        lambda: made.optimize(
            lambda trial: fit(trial.params, PruningCallback(trial, "test-logloss")), n_trials=40, n_jobs=4
        )
    )
    print(f"XGBoost, 40 trials of {rounds} rounds: {own:.1f} s, Optuna {took:.1f} s, ratio {own / took:.2f}")
    for name, states in {
        "pruned here": [t.state.value for t in made.trials].count("PRUNED"),
        "in Optuna": [t.state.name for t in other.trials].count("PRUNED"),
    }.items():
        print(f"  {name}: {states} of 40")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    fantasia.logging.set_verbosity("WARNING")
    with tempfile.TemporaryDirectory() as storage:
        reports(storage)
        boosting(storage, options.rounds)
        lists(storage, options.trials)


if __name__ == "__main__":
    main()
