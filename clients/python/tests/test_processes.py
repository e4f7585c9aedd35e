"""Studies in several processes: forks, pickles, signals."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Float, TrialState, _server


def create(storage: Path, **options: Any) -> fantasia.Study:
    return fantasia.create_study(
        storage=storage, direction="minimize", parameters={"x": Float(-1, 1)}, algorithm="random", **options
    )


def evaluate(study: fantasia.Study) -> list[int]:
    """Evaluate six trials, and return their numbers."""
    numbers: list[int] = []

    def objective(trial: fantasia.Trial) -> float:
        numbers.append(trial.number)
        time.sleep(0.02)
        return float(trial.params["x"])

    study.optimize(objective, n_trials=6)
    return numbers


def check(study: fantasia.Study, got: list[list[int]], processes: int) -> None:
    assert Counter(n for numbers in got for n in numbers) == Counter(range(1, 6 * processes + 1))
    assert [t.state for t in study.trials] == [TrialState.COMPLETED] * 6 * processes


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_evaluate_different_trials(storage: Path, method: str) -> None:
    study = create(storage)
    assert study.state == "RUNNING"  # so that there are connections that a child must not use
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context(method)) as pool:
        check(study, list(pool.map(evaluate, [study] * 3)), 3)


def test_processes_that_inherit_a_study_evaluate_different_trials(storage: Path) -> None:
    study = create(storage)
    held = study.ask()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if len(set(evaluate(study))) == 6 else 2
            finally:
                os._exit(code)
        children.append(child)
    assert len(set(evaluate(study))) == 6
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    study.tell(held, 0.0)
    assert [t.state for t in study.trials] == [TrialState.COMPLETED] * 25
    assert len({t.worker.rpartition("-")[0] for t in study.trials}) == 4


def test_fork_does_not_keep_the_parents_server_alive(tmp_path: Path) -> None:
    earlier = set(_server._servers)
    create(tmp_path)
    programs = [s._process for at, s in _server._servers.items() if at not in earlier]
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    _server.close_servers()  # kills a program that does not end by itself
    assert [p and p.returncode for p in programs] == [0]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.slow
def test_processes_of_joblib_evaluate_different_trials(storage: Path) -> None:
    import joblib

    study = create(storage)
    with joblib.parallel_config("loky", n_jobs=3):
        check(study, joblib.Parallel()(joblib.delayed(evaluate)(study) for _ in range(3)), 3)


def test_pickled_study_is_the_same(storage: Path) -> None:
    study = create(storage, name="pickled")
    trial = study.ask()
    other, moved = pickle.loads(pickle.dumps((study, trial)))
    assert other.name == "pickled"
    assert other.parameters == study.parameters
    moved.report(0.5, 1)
    assert moved.study.tell(moved, 1.0).value == 1.0
    assert evaluate(other) == list(range(2, 8))
    assert study.best_trial == copy.deepcopy(other).best_trial


def test_pickled_study_holds_no_token() -> None:
    message = {
        "id": "s",
        "studyFile": '{"metadata": {"name": "n"}, "spec": {"parameters": [], "objective": '
        '{"metric": "m", "direction": "minimize"}}}',
    }
    transport = _server.connect("http://localhost:1", "secret", None)
    assert b"secret" not in pickle.dumps(fantasia.Study(transport, message))


INTERRUPTED = """
import os, signal, sys, threading, time
import fantasia_hpo as fantasia

delay, jobs, how = float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
study = fantasia.create_study(
    name="interrupted", storage=sys.argv[1], direction="minimize", load_if_exists=True, max_trials=100_000,
    parameters={"x": fantasia.Float(-1, 1)}, algorithm="random",
)
number = signal.SIGINT
if how == "term":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    number = signal.SIGTERM

def objective(trial):
    if how == "raise" and time.monotonic() > end:
        raise KeyboardInterrupt
    time.sleep(0.01)
    return 1.0

end = time.monotonic() + delay
if how != "raise":
    threading.Timer(delay, os.kill, (os.getpid(), number)).start()
try:
    study.optimize(objective, n_jobs=jobs)
except (KeyboardInterrupt, SystemExit):
    pass
else:
    print("not interrupted")
print([t.number for t in study.get_trials(["CLAIMED", "RUNNING"])], flush=True)
"""


def interrupt(storage: Path, delay: float, jobs: int, how: str) -> str:
    command = [sys.executable, "-c", INTERRUPTED, str(storage), str(delay), str(jobs), how]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("how", ["int", "term", "raise"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupt_leaves_no_trial_open(storage: Path, jobs: int, how: str) -> None:
    for i in range(4):
        assert interrupt(storage, 0.1 + 0.037 * i, jobs, how) == "[]\n"


def test_interrupt_waits_for_a_suggestion_in_flight(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = create(storage)
    suggest = study._suggest

    def slow(client: str, wait: float, count: int = 1) -> list[fantasia.Trial]:
        if client.endswith("-0"):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        return suggest(client, wait, count)

    monkeypatch.setattr(study, "_suggest", slow)
    for jobs in (1, 2):
        study._renew()
        with pytest.raises(KeyboardInterrupt):
            study.optimize(lambda trial: 1.0, n_trials=5, n_jobs=jobs)
        assert {t.state for t in study.trials} <= {TrialState.PENDING, TrialState.COMPLETED}
        assert study._heartbeat.open() == []


def test_second_interrupt_ends_at_once(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = create(storage)

    def stuck(trial: fantasia.Trial, **_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(20)

    def objective(trial: fantasia.Trial) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "release", stuck)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, n_trials=2)
    assert time.monotonic() - began < 10
    assert study._heartbeat.open() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_exception_of_a_callback_leaves_no_trial_open(storage: Path, jobs: int) -> None:
    study = create(storage)

    def callback(study: fantasia.Study, trial: fantasia.FrozenTrial) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda trial: 1.0, n_trials=10, n_jobs=jobs, callbacks=[callback])
    assert study.get_trials([TrialState.CLAIMED, TrialState.RUNNING]) == []
    assert study._heartbeat.open() == []


CLOSING = """
import os, signal, subprocess, sys, time
import fantasia_hpo as fantasia

space = {"x": fantasia.Float(0, 1)}
study = fantasia.create_study(storage=sys.argv[1], direction="minimize", parameters=space)
study.optimize(lambda trial: 1.0, n_trials=1)
wait = subprocess.Popen.wait

def interrupted(process, timeout=None):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
    return wait(process, timeout)

subprocess.Popen.wait = interrupted
raise KeyboardInterrupt
"""


def test_interrupt_while_the_server_ends_says_nothing(tmp_path: Path) -> None:
    """The server ends with its parent, and the next process finds the study as it was."""
    command = [sys.executable, "-c", CLOSING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.endswith("\nKeyboardInterrupt\n")
    assert "ignored" not in done.stderr
    assert "atexit" not in done.stderr
    assert len(fantasia.load_study(fantasia.study_names(tmp_path)[0], tmp_path).trials) == 1
