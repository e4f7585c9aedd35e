from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from fantasia_hpo import evaluator

EVALUATOR = """
import sys, time
import fantasia_hpo as fantasia

@fantasia.evaluator(metric="loss")
def train(trial):
    print("a line of the function's own")
    x = trial.params["x"]
    if x > 0.95:
        raise fantasia.TrialInfeasible("x is too large")
    if 0.90 < x < 0.95:
        raise RuntimeError("a failure with a reason")
    for step in range(1, 11):
        time.sleep(0.02)
        trial.report(x + 1 / step, step)
        if trial.should_prune():
            raise fantasia.TrialPruned
    return {"loss": x, "double": 2 * x}

if __name__ == "__main__":
    train.serve()
"""


def run(program: str, tmp_path: Path, **spec: Any) -> list[dict[str, Any]]:
    """Run a study of the evaluator, and return its trials."""
    (tmp_path / "train.py").write_text(EVALUATOR)
    study = {
        "apiVersion": "fantasia.dev/v1",
        "kind": "Study",
        "metadata": {"name": "evaluator"},
        "spec": {
            "objective": {"metric": "loss", "direction": "minimize"},
            "parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}],
            "algorithm": {"name": "random", "seed": 1},
            "trial": {"command": [sys.executable, "train.py"], "mode": "stream"},
            **spec,
        },
    }
    (tmp_path / "study.json").write_text(json.dumps(study))
    subprocess.run(
        [program, "run", "study.json", "-o", "json"], cwd=tmp_path, check=True, capture_output=True
    )
    listed = subprocess.run(
        [program, "trial", "list", "evaluator", "--state", ".fantasia", "-o", "json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    trials: list[dict[str, Any]] = json.loads(listed.stdout)
    return trials


def test_worker_runs_a_function_in_stream_mode(program: str, tmp_path: Path) -> None:
    points = [{"x": 0.25}, {"x": 0.99}, {"x": 0.92}]
    trials = run(program, tmp_path, initial=points, budget={"maxTrials": 3})
    assert [t["state"] for t in trials] == ["COMPLETED", "INFEASIBLE", "FAILED"]
    assert trials[0]["value"] == 0.25
    assert trials[0]["metrics"]["double"] == 0.5
    assert "x is too large" in json.dumps(trials[1])
    assert "RuntimeError: a failure with a reason" in json.dumps(trials[2])


def test_pruned_function_keeps_its_process(program: str, tmp_path: Path) -> None:
    points = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}, {"x": 0.85}, {"x": 0.05}]
    trials = run(program, tmp_path, initial=points, budget={"maxTrials": 5}, earlyStopping={"name": "median"})
    assert [t["state"] for t in trials] == ["COMPLETED"] * 3 + ["PRUNED", "COMPLETED"]


def test_evaluator_is_still_a_function() -> None:
    @evaluator
    def double(trial: Any) -> dict[str, float]:
        return {"loss": 2.0 * trial}

    assert double(3) == {"loss": 6.0}  # type: ignore[arg-type]
