"""Runs of W&B, written by the real package in its offline mode and read from its files."""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import EarlyStopping, Float, Int

pytestmark = [pytest.mark.slow, pytest.mark.integrations]


def records(file: Path) -> Iterator[Any]:
    """Yield the records of a run's file: W&B's header, then the log format of LevelDB."""
    messages = importlib.import_module("wandb.proto.wandb_internal_pb2")

    data, at, block, whole = file.read_bytes(), 7, 1 << 15, b""
    while at + 7 <= len(data):
        if block - at % block < 7:  # the rest of a block holds no header
            at += block - at % block
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # full, or the last part
            record = messages.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def run_of(file: Path) -> dict[str, Any]:
    """Return what the file of a run says."""
    run: dict[str, Any] = {"history": [], "summary": {}}
    for record in records(file):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run |= {"id": record.run.run_id, "name": record.run.display_name, "group": record.run.run_group}
            run |= {"project": record.run.project, "tags": list(record.run.tags)}
            run["config"] = {item.key: json.loads(item.value_json) for item in record.run.config.update}
        elif kind == "history":
            row = {
                (item.key or ".".join(item.nested_key)): json.loads(item.value_json)
                for item in record.history.item
            }
            run["history"].append((row["_step"], row.get("value")))
        elif kind == "summary":
            items = record.summary.update
            run["summary"] |= {
                item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items
            }
        elif kind == "exit":
            run["exit"] = record.exit.exit_code
    return run


def test_runs_of_wandb(storage: Path, tmp_path: Path) -> None:
    study = fantasia.create_study(
        storage=storage,
        direction="minimize",
        parameters={"x": Float(-1, 1), "n": Int(1, 9)},
        algorithm="random",
        early_stopping=EarlyStopping("threshold", {"upper": 10.0}),
    )

    def objective(trial: fantasia.Trial) -> dict[str, float]:
        trial.set_user_attr("sizes", [64, 32])
        if trial.number == 2:
            raise ValueError("it does not work")
        for step in (1, 2):
            trial.report(20.0 if trial.number == 3 else 1 / step, step)
            if trial.should_prune():
                raise fantasia.TrialPruned
        return {"value": trial.params["x"], "time": 3.0}

    study.optimize(objective, n_trials=3)
    options = {"mode": "offline", "dir": str(tmp_path)}
    ids = study.to_wandb("tuning", **options)
    assert len(ids) == 3
    assert [t.labels["wandb"] for t in study.trials] == ids
    runs = {run["id"]: run for run in map(run_of, tmp_path.glob("wandb/offline-run-*/*.wandb"))}
    first, failed, pruned = (runs[i] for i in ids)
    trial = study.trials[0]
    assert (first["project"], first["group"], first["name"]) == ("tuning", study.name, f"{study.name}-1")
    assert {k: first["config"][k] for k in ("x", "n")} == trial.params
    assert first["config"]["fantasia"]["state"] == "COMPLETED"
    assert first["history"] == [(1, 1.0), (2, 0.5)]
    assert (first["summary"]["value"], first["summary"]["time"]) == (trial.value, 3.0)
    assert first["summary"]["user_attrs.sizes"] == [64, 32]
    assert [run["tags"] for run in (first, failed, pruned)] == [["COMPLETED"], ["FAILED"], ["PRUNED"]]
    assert [run["exit"] for run in (first, failed, pruned)] == [0, 1, 0]
    assert failed["config"]["fantasia"]["reason"] == "ValueError: it does not work"

    assert study.to_wandb("tuning", **options) == []  # all trials have runs
    study.optimize(objective, n_trials=1)
    assert len(study.to_wandb("tuning", **options)) == 1
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 4
