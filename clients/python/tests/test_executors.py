"""Trials that are evaluated in the processes of an executor: concurrent.futures, joblib's loky, Dask."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Float, TrialState


@contextmanager
def processes() -> Iterator[Any]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def loky() -> Iterator[Any]:
    from joblib.externals.loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=2)
    yield pool
    pool.shutdown(wait=True)


@contextmanager
def dask() -> Iterator[Any]:
    import distributed

    start: Any = distributed.Client
    with start(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


EXECUTORS = [
    processes,
    pytest.param(loky, marks=pytest.mark.slow),
    pytest.param(dask, marks=[pytest.mark.slow, pytest.mark.integrations]),
]


def objective(trial: fantasia.Trial) -> float:
    trial.set_user_attr("process", os.getpid())
    if trial.number == 2:
        raise ValueError("trial 2 fails")
    if trial.number == 3:
        raise fantasia.TrialInfeasible("not here")
    return float(trial.params["x"]) ** 2


def learned(trial: fantasia.Trial) -> float | None:
    x = trial.suggest_float("x", -1, 1)
    if trial.suggest_categorical("kind", ["a", "b"]) == "b":
        trial.suggest_int("depth", 1, 4)
    trial.report(x**2, 1)
    return None  # the value is what it has reported


def stopped(trial: fantasia.Trial) -> float:
    for step in range(1, 9):
        trial.report(float(trial.number), step)
        if trial.should_prune():
            raise fantasia.TrialPruned
    return float(trial.number)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_outcomes_come_back_from_other_processes(storage: Path, executor: Any) -> None:
    study = fantasia.create_study(
        storage=storage, direction="minimize", parameters={"x": Float(-1, 1)}, algorithm="random"
    )
    numbers: list[int] = []
    with executor() as pool:
        study.optimize(
            objective, n_trials=8, n_jobs=2, executor=pool, callbacks=[lambda _, t: numbers.append(t.number)]
        )
    trials = study.trials
    assert sorted(numbers) == list(range(1, 9))
    assert [t.state for t in trials] == [
        TrialState.COMPLETED,
        TrialState.FAILED,
        TrialState.INFEASIBLE,
    ] + 5 * [TrialState.COMPLETED]
    assert trials[1].reason == "ValueError: trial 2 fails"
    assert all(t.value == t.params["x"] ** 2 for t in trials if t.state is TrialState.COMPLETED)
    used = {t.user_attrs["process"] for t in trials}
    assert os.getpid() not in used
    assert 1 <= len(used) <= 2


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_space_is_learned_from_other_processes(storage: Path, executor: Any) -> None:
    study = fantasia.create_study(storage=storage, direction="minimize", algorithm="random")
    with executor() as pool:
        study.optimize(learned, n_trials=8, n_jobs=2, executor=pool)
    assert {"x", "kind"} <= set(study.space)
    assert all(t.value == t.params["x"] ** 2 for t in study.trials)
    assert all(("depth" in t.params) == (t.params["kind"] == "b") for t in study.trials)


def test_trials_are_stopped_early_in_other_processes(storage: Path) -> None:
    study = fantasia.create_study(
        storage=storage,
        direction="minimize",
        parameters={"x": Float(-1, 1)},
        algorithm="random",
        early_stopping=fantasia.EarlyStopping("threshold", {"upper": 4.5}),
    )
    with processes() as pool:
        study.optimize(stopped, n_trials=6, executor=pool)
    assert [t.state for t in study.trials] == 4 * [TrialState.COMPLETED] + 2 * [TrialState.PRUNED]


def test_the_traceback_of_another_process_is_shown(storage: Path) -> None:
    study = fantasia.create_study(storage=storage, direction="minimize", parameters={"x": Float(-1, 1)})
    with processes() as pool, pytest.raises(ValueError, match="trial 2 fails") as raised:
        study.optimize(objective, n_trials=3, executor=pool, catch=ArithmeticError)
    assert "in objective" in str(raised.value.__cause__)
    assert [t.state for t in study.trials] == [TrialState.COMPLETED, TrialState.FAILED]
