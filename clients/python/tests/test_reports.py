"""Reports, which are sent in the background."""

from __future__ import annotations

import os
import pickle
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import EarlyStopping, Float, Trial, TrialState


def create(storage: Path, **options: Any) -> fantasia.Study:
    given: dict[str, Any] = {"parameters": {"x": Float(0, 1)}, "algorithm": "random", "seed": 1}
    return fantasia.create_study(storage=storage, direction="minimize", **{**given, **options})


def test_reports_arrive_in_order_before_the_trial_ends(storage: Path) -> None:
    study = create(storage)

    def objective(trial: Trial) -> None:
        for step in range(1, 901):
            trial.report({"value": 1 / step, "other": float(step)}, step)

    study.optimize(objective, n_trials=4, n_jobs=4)
    for trial in study.trials:
        assert trial.value == 1 / 900
        assert trial.metrics == {"other": 900.0}
        assert study.curve(trial) == {step: 1 / step for step in range(1, 901)}


def test_more_reports_than_may_wait(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fantasia_hpo._reports._MOST", 3)
    monkeypatch.setattr("fantasia_hpo._reports._BATCH", 2)
    study = create(storage)
    trials = study._ask(2)
    for step in range(1, 30):
        for trial in trials:
            trial.report(float(step), step)
            assert study._reports._waiting <= 3
    for trial in trials:
        study.tell(trial)
        assert list(study.curve(trial)) == list(range(1, 30))


def test_short_loop_is_stopped(storage: Path) -> None:
    study = create(storage, early_stopping=EarlyStopping("threshold", {"upper": 5, "minSteps": 1}))
    steps: list[int] = []

    def objective(trial: Trial) -> float:
        for step in range(1, 9):
            trial.report(10.0 if step >= 4 else 1.0, step)
            steps.append(step)
            if trial.should_prune():
                raise fantasia.TrialPruned
        return 1.0

    study.optimize(objective, n_trials=1)
    assert study.get_trial(1).state is TrialState.PRUNED
    assert steps == [1, 2, 3, 4]  # the answer to the 4th report is waited for


def test_long_steps_are_answered_before_the_next_one(storage: Path) -> None:
    study = create(storage, early_stopping=EarlyStopping("threshold", {"upper": 5, "minSteps": 1}))
    trial = study.ask()
    for step in range(1, 8):
        trial.report(1.0 if step < 7 else 10.0, step)
        trial.should_prune()
    study._await_reports(trial)  # what a step that takes longer does
    assert trial.should_prune()
    study.release(trial)


def test_refused_report_does_not_hold_back_the_others(
    storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = create(storage)
    trial = study.ask()
    trial.report(1.0, 1)
    study._await_reports(trial)
    entered, go = threading.Event(), threading.Event()
    send = study._reports._send

    def late(trial: Trial, reports: Any) -> None:
        entered.set()
        assert go.wait(30)
        send(trial, reports)

    study._reports._send = late
    trial.report(2.0, 2)
    assert entered.wait(30)
    trial.report(3.0, 1)  # another value at the step
    trial.report(4.0, 4)
    go.set()
    study.tell(trial)
    assert study.curve(trial) == {1: 1.0, 2: 2.0, 4: 4.0}
    assert "a report was refused" in caplog.text


def test_failure_of_a_report_is_raised_once(storage: Path) -> None:
    study = create(storage)
    trial = study.ask()

    def broken(trial: Trial, reports: Any) -> None:
        raise fantasia.UnavailableError("unavailable", "the server is gone")

    send, study._reports._send = study._reports._send, broken
    trial.report(1.0, 1)
    with pytest.raises(fantasia.UnavailableError):
        study.tell(trial, 1.0)
    study._reports._send = send
    assert study.tell(trial, 1.0).value == 1.0


def test_report_of_a_copied_trial_arrives_before_it_returns(storage: Path) -> None:
    study = create(storage)
    trial = study.ask()
    copy: Trial = pickle.loads(pickle.dumps(trial))
    for step in range(1, 4):
        copy.report(float(step), step)
        assert list(study.curve(trial)) == list(range(1, step + 1))
    study.tell(trial, 0.0)


def test_report_of_a_forked_process_arrives_before_it_returns(storage: Path) -> None:
    study = create(storage)
    trial = study.ask()
    trial.report(1.0, 1)
    study._await_reports(trial)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            trial.report(2.0, 2)
            trial.set_user_attr("by", "child")
            code = 0
        finally:
            os._exit(code)  # nothing that waits is sent any more
    assert os.waitpid(child, 0)[1] == 0
    assert study.curve(trial) == {1: 1.0, 2: 2.0}
    assert study.tell(trial).user_attrs == {"by": "child"}


def test_thread_ends_when_nothing_waits(storage: Path) -> None:
    study = create(storage)
    trial = study.ask()
    for step in range(20):
        trial.report(1.0, step)
    study.tell(trial)
    study._reports.flush_all()
    assert study._reports._lines == {}
    for _ in range(100):  # the thread has said that it ends
        if not any(t.name == "fantasia-reports" for t in threading.enumerate()):
            return
        time.sleep(0.05)
    raise AssertionError("the thread still runs")


def test_script_that_tells_nothing_sends_its_reports(storage: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    study = create(storage, name="reports-at-exit")
    code = (
        "import fantasia_hpo as fantasia, sys\n"
        "trial = fantasia.load_study('reports-at-exit', sys.argv[1]).ask()\n"
        "for step in range(1, 301): trial.report(1.0, step)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(storage)], check=True, timeout=60)
    assert len(study.curve(1)) == 300
    assert statistics.mean(study.curve(1).values()) == 1.0


def test_steps_that_do_not_grow_are_warned_of(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = create(storage)
    trial = study.ask()
    for step in (1, 2, 2, 1, None):
        trial.report(0.5, step)
    trial.report({"other": 1.0}, 1)
    study.tell(trial)
    assert [r.getMessage() for r in caplog.records if "steps must grow" in r.getMessage()] == [
        "trial 1: step 2 of 'value' came after step 2: its curve and early stopping leave such reports out, "
        "since steps must grow"
    ]


def test_what_the_server_leaves_out_is_passed_on(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = create(storage)
    trial = study.ask()
    trial.report(0.5, 5)
    study._await_reports(trial)
    study._send_reports(trial, [(3, {"value": 0.25})])  # as another process of the same trial would
    study._send_reports(trial, [(4, {"value": 0.25})])
    study.tell(trial)
    assert [r.getMessage() for r in caplog.records if "leave out" in r.getMessage()] == [
        "trial 1: its curve and early stopping leave out "
        "value at step 3: step 5 was reported before it, and steps must grow"
    ]
