"""Trials as tables and as runs: pandas with pyarrow, and a real server of MLflow."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import EarlyStopping, TrialState

pytestmark = pytest.mark.slow


def mixed(storage: Path, name: str) -> fantasia.Study:
    """Return a study whose trials complete, are pruned, fail, and are infeasible."""
    study = fantasia.create_study(
        name=name,
        storage=storage,
        metric="loss",
        direction="minimize",
        parameters={
            "x": fantasia.Float(-1, 1),
            "n": fantasia.Int(1, 9),
            "kind": fantasia.Categorical(["plain", "a,b"]),
            "deep": fantasia.Bool(when={"kind": ["plain"]}),
        },
        algorithm="random",
        seed=3,
        early_stopping=EarlyStopping("threshold", {"upper": 0.8, "minSteps": 1}),
    )

    def objective(trial: fantasia.Trial) -> dict[str, float]:
        x = abs(trial.params["x"])
        if trial.params["n"] == 1:
            raise ValueError("n is 1")
        if trial.params["n"] == 2:
            raise fantasia.TrialInfeasible("n is 2")
        for step in (1, 2, 3):
            trial.report(x / step, step)
            if trial.should_prune():
                raise fantasia.TrialPruned
        return {"loss": x / 4, "size": 7.0}

    study.optimize(objective, n_trials=30)
    states = {t.state for t in study.trials}
    assert states == {TrialState.COMPLETED, TrialState.PRUNED, TrialState.FAILED, TrialState.INFEASIBLE}
    return study


def test_exported_tables_in_pandas(storage: Path, program: str, tmp_path: Path) -> None:
    study = mixed(storage, "tables")
    tables = {}
    for ending in ("csv", "jsonl", "parquet"):
        file = tmp_path / f"trials.{ending}"
        state = storage / "_server"
        subprocess.run([program, "study", "export", "tables", "--state", state, "-o", file], check=True)
        if ending == "csv":
            tables[ending] = pandas.read_csv(file)
        elif ending == "jsonl":
            tables[ending] = pandas.read_json(file, lines=True)
        else:
            tables[ending] = pandas.read_parquet(file, engine="pyarrow")
    for ending, table in tables.items():
        assert list(table.columns) == list(tables["csv"].columns), ending
        assert len(table) == 30
        for row, trial in zip(table.to_dict("records"), study.trials, strict=True):
            assert row["trial"] == trial.number
            assert row["state"] == trial.state.value
            assert row["parameter:x"] == pytest.approx(trial.params["x"], rel=1e-14)
            assert row["parameter:n"] == trial.params["n"]
            assert row["parameter:kind"] == trial.params["kind"]
            assert pandas.isna(row["parameter:deep"]) == ("deep" not in trial.params)
            if trial.value is None:
                assert pandas.isna(row["value"])
            else:
                assert row["value"] == pytest.approx(trial.value, rel=1e-14)
            assert trial.datetime_start is not None
            started = pandas.to_datetime(row["started"], utc=True).timestamp()
            assert started == pytest.approx(trial.datetime_start.timestamp(), abs=2e-3)
    types = tables["parquet"].dtypes.astype(str)
    assert types["trial"] == types["parameter:n"] == "int64"
    assert types["value"] == types["parameter:x"] == "float64"
    assert types["started"] == "datetime64[ms, UTC]"


@pytest.fixture(scope="module")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a tracking server of MLflow over SQLite, and return its address."""
    home = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    store = [
        "--backend-store-uri",
        f"sqlite:///{home}/runs.db",
        "--artifacts-destination",
        str(home / "files"),
    ]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    with (home / "log").open("wb") as output:
        server = subprocess.Popen(
            [*command, *store, "--workers", "1"], cwd=home, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + 180
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                if urllib.request.urlopen(f"{url}/health", timeout=5).read() == b"OK":
                    break
            assert server.poll() is None, (home / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the server of MLflow did not start"
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(30)


def test_runs_of_mlflow(storage: Path, mlflow_server: str) -> None:
    from mlflow import MlflowClient

    study = mixed(storage, "runs")
    experiment = study.to_mlflow(tracking_uri=mlflow_server)
    client = MlflowClient(mlflow_server)
    assert client.get_experiment(experiment).name == "runs"
    status = {
        TrialState.COMPLETED: "FINISHED",
        TrialState.PRUNED: "KILLED",
        TrialState.FAILED: "FAILED",
        TrialState.INFEASIBLE: "FAILED",
    }
    runs = {int(r.data.tags["fantasia.trial"]): r for r in client.search_runs([experiment])}
    assert sorted(runs) == [t.number for t in study.trials]
    for trial in study.trials:
        run = runs[trial.number]
        assert run.info.status == status[trial.state]
        assert run.data.params == {name: str(value) for name, value in trial.params.items()}
        expected = {} if trial.value is None else {"loss": trial.value, **trial.metrics}
        assert run.data.metrics == expected
        history = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "loss")]
        assert set(study.curve(trial).items()) <= set(history)
        assert {step for step, _ in history} == set(study.curve(trial))
        assert trial.datetime_start is not None
        assert abs(run.info.start_time - trial.datetime_start.timestamp() * 1000) < 2
    # Once more adds the later trials only.
    study.add_trial({"x": 0.0, "n": 5, "kind": "a,b"}, 0.5)
    assert study.to_mlflow(tracking_uri=mlflow_server) == experiment
    assert len(client.search_runs([experiment])) == 31


def test_runs_of_mlflow_have_all_values(storage: Path, mlflow_server: str) -> None:
    from mlflow import MlflowClient

    study = fantasia.create_study(
        storage=storage,
        name="several-runs",
        objectives={"error": "minimize", "seconds": "minimize"},
        parameters={"x": fantasia.Float(0, 1)},
        algorithm="random",
    )

    def objective(trial: fantasia.Trial) -> tuple[float, float]:
        for step in (1, 2):
            trial.report({"seconds": step, "error": 1 / step, "size": 3})
        return trial.params["x"], 7

    study.optimize(objective, n_trials=2)
    client = MlflowClient(mlflow_server)
    runs = client.search_runs([study.to_mlflow(tracking_uri=mlflow_server)])
    assert [r.data.metrics for r in reversed(runs)] == [
        {"error": t.params["x"], "seconds": 7.0} for t in study.trials
    ]
    for run in runs:
        reported = client.get_metric_history(run.info.run_id, "seconds")
        assert [(m.step, m.value) for m in reported] == [(1, 1.0), (2, 2.0), (2, 7.0)]
