"""The server that the client starts: shared by processes, killed, and gone with its last user."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import _server
from fantasia_hpo.errors import ProgramError

SCRIPT = """
import sys, time
import fantasia_hpo as fantasia

def objective(trial):
    time.sleep(0.02)
    print(trial.number, flush=True)
    return trial.params["x"] ** 2

study = fantasia.create_study(
    name="shared", storage=sys.argv[1], direction="minimize", load_if_exists=True, seed=1,
    parameters={"x": fantasia.Float(-1, 1)}, algorithm="random", max_trials=int(sys.argv[2]),
)
study.optimize(objective)
"""


def start(storage: Path, trials: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(storage), str(trials)], stdout=subprocess.PIPE, text=True
    )


def served(storage: Path) -> dict[str, object] | None:
    try:
        at: dict[str, object] = json.loads((storage / "_server" / "server.json").read_text())
    except (OSError, ValueError):
        return None
    return at


def pid(storage: Path) -> int:
    at = served(storage)
    assert at is not None
    assert isinstance(at["pid"], int)
    return at["pid"]


def await_(what: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)


def results(storage: Path) -> list[tuple[int, str]]:
    study = fantasia.load_study("shared", storage)
    try:
        return [(t.number, t.state.value) for t in study.trials]
    finally:
        _server.close_servers()


def test_killed_server_starts_again_and_loses_nothing(tmp_path: Path) -> None:
    script = start(tmp_path, 60)
    assert script.stdout is not None
    for line in script.stdout:
        if line.strip() in ("15", "30"):
            os.kill(pid(tmp_path), signal.SIGKILL)
    assert script.wait(60) == 0
    assert results(tmp_path) == [(n, "COMPLETED") for n in range(1, 61)]


def test_killed_script_goes_on_where_it_was(tmp_path: Path) -> None:
    script = start(tmp_path, 40)
    assert script.stdout is not None
    for line in script.stdout:
        if line.strip() == "12":
            script.kill()
    script.wait(60)
    await_(lambda: served(tmp_path) is None)  # the server ends with the process that started it
    study = fantasia.load_study("shared", tmp_path)
    known = {t.number: t.value for t in study.get_trials([fantasia.TrialState.COMPLETED])}
    assert set(known) >= set(range(1, 12))
    study.optimize(lambda trial: float(trial.params["x"] ** 2))
    trials = study.get_trials([fantasia.TrialState.COMPLETED])
    _server.close_servers()
    assert len(trials) == 40
    assert {t.number: t.value for t in trials if t.number in known} == known


def test_processes_share_a_server(tmp_path: Path) -> None:
    first = start(tmp_path, 80)
    assert first.stdout is not None
    first.stdout.readline()
    second = start(tmp_path, 80)
    assert second.stdout is not None
    numbers = [int(n) for n in first.stdout] + [int(n) for n in second.stdout]
    assert (first.wait(60), second.wait(60)) == (0, 0)
    assert len(set(numbers)) == len(numbers)
    assert results(tmp_path) == [(n, "COMPLETED") for n in range(1, 81)]


def test_missing_program_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FANTASIA_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramError, match=r"was not found: install a wheel.*FANTASIA_PROGRAM"):
        fantasia.study_names(tmp_path)


def test_program_that_fails_shows_its_error(tmp_path: Path) -> None:
    (tmp_path / "_server").write_text("a file, not a directory")
    with pytest.raises(ProgramError, match=r"ended with 2: .*not a directory"):
        fantasia.study_names(tmp_path)


def test_storage_is_a_directory_or_a_url() -> None:
    with pytest.raises(
        fantasia.SpaceError, match=r"storage: expected a directory, http.*got 'sqlite:///a.db'"
    ):
        fantasia.study_names("sqlite:///a.db")


def test_new_storage_is_small_and_git_ignores_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    storage = tmp_path / ".fantasia"
    study = fantasia.create_study(
        direction="minimize", parameters={"x": fantasia.Float(0, 1)}, storage=storage
    )
    study.optimize(lambda trial: 1.0, n_trials=3)
    taken = sum(path.lstat().st_blocks * 512 for path in storage.rglob("*"))
    assert taken < 2 << 20
    status = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, capture_output=True, check=True, text=True).stdout == ""
    _server.close_servers()
    (storage / ".gitignore").write_text("mine\n")
    fantasia.load_study(study.name, storage)
    assert (storage / ".gitignore").read_text() == "mine\n"
    _server.close_servers()


def test_storage_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ProgramError, match=r"the storage .*file/storage cannot be made: .*another storage"):
        fantasia.create_study(direction="minimize", storage=tmp_path / "file" / "storage")
