"""Multiruns of a real Hydra with the sweeper of Fantasia, by its basic launcher and Joblib's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Categorical, Fixed, Float, Int, TrialState

pytestmark = [pytest.mark.slow, pytest.mark.integrations]

APP = """
import hydra

@hydra.main(version_base=None, config_path=".", config_name="config")
def sphere(cfg):
    if cfg.broken and cfg.z == "bad":
        raise ValueError("z is bad")
    value = cfg.x ** 2 + cfg.model.depth
    return (value, cfg.x) if cfg.both else value

if __name__ == "__main__":
    sphere()
"""
CONFIG = """
defaults:
  - override hydra/sweeper: fantasia
x: 1.0
z: good
broken: false
both: false
model: {depth: 1}
hydra:
  sweep: {dir: out}
  sweeper:
    n_trials: 6
    n_jobs: 2
    seed: 1
    algorithm: random
    study_name: sphere
    params:
      x: interval(-5.5, 5.5)
      model.depth: range(1, 9, step=2)
"""


def multirun(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(APP)
    (folder / "config.yaml").write_text(CONFIG)
    return subprocess.run(
        [sys.executable, "app.py", "-m", *arguments],
        cwd=folder,
        env={**os.environ, "HYDRA_FULL_ERROR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def load(file: Path) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(OmegaConf.load(file))


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_multirun(tmp_path: Path, launcher: str) -> None:
    done = multirun(tmp_path, f"hydra/launcher={launcher}", "z=choice(good,better)")
    assert done.returncode == 0, done.stderr[-3000:]
    study = fantasia.load_study("sphere", tmp_path / ".fantasia")
    trials = study.trials
    assert [t.state for t in trials] == 6 * [TrialState.COMPLETED]
    assert all(t.value == pytest.approx(t.params["x"] ** 2 + t.params["model.depth"]) for t in trials)
    assert {t.params["model.depth"] for t in trials} <= {1, 3, 5, 7}
    assert {t.params["z"] for t in trials} <= {"good", "better"}
    results = load(tmp_path / "out/optimization_results.yaml")
    assert results["best_value"] == study.best_value
    assert results["best_params"] == study.best_params
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.is_dir()) == list("012345")
    overrides = load(tmp_path / "out/0/.hydra/overrides.yaml")
    assert f"z={trials[0].params['z']}" in overrides


def test_failed_jobs(tmp_path: Path) -> None:
    arguments = ["broken=true", "hydra.sweeper.n_jobs=1"]
    bad = "z=bad"
    stopped = multirun(tmp_path, *arguments, bad)
    assert stopped.returncode != 0
    assert "z is bad" in stopped.stderr
    study = fantasia.load_study("sphere", tmp_path / ".fantasia")
    assert [t.state for t in study.trials] == [TrialState.FAILED]
    assert study.trials[0].reason == "ValueError: z is bad"

    going_on = multirun(tmp_path, *arguments, bad, "hydra.sweeper.max_failure_rate=1")
    assert going_on.returncode != 0
    assert "StudyFailedError" in going_on.stderr  # its first three trials have failed
    assert [t.state for t in study.trials] == 3 * [TrialState.FAILED]


def test_several_objectives(tmp_path: Path) -> None:
    done = multirun(
        tmp_path, "hydra.sweeper.direction=[minimize,maximize]", "both=true", "hydra.sweeper.study_name=two"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    study = fantasia.load_study("two", tmp_path / ".fantasia")
    solutions = load(tmp_path / "out/optimization_results.yaml")["solutions"]
    assert [s["values"] for s in solutions] == [list(t.values or ()) for t in study.best_trials]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x=interval(0,1)", Float(0.0, 1.0)),
        ("x=tag(log, interval(1e-4,1e-1))", Float(1e-4, 1e-1, scale="log")),
        ("x=int(interval(1,8))", Int(1, 8)),
        ("x=range(1,5)", Int(1, 4)),
        ("x=range(0,12,step=4)", Int(0, 8, step=4)),
        ("x=range(-1.0,1.0,step=0.5)", Float(-1.0, 0.5, step=0.5)),
        ("x=choice(a,1,2.5,true)", Categorical(["a", 1, 2.5, True])),
        ("x=a,b", Categorical(["a", "b"])),
        ("x='two words'", Fixed("'two words'")),
        ("+x=3", Fixed("3")),
    ],
)
def test_sweeps_of_hydra(text: str, want: Any) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from fantasia_hpo.hydra import parameter_of

    assert parameter_of(OverridesParser.create().parse_override(text)) == want


@pytest.mark.parametrize("text", ["x=interval(1,0)", "x=range(1,2)", "x=glob(*)"])
def test_sweeps_that_are_refused(text: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from fantasia_hpo.hydra import parameter_of

    with pytest.raises(fantasia.SpaceError, match=r"expected .* got x="):
        parameter_of(OverridesParser.create().parse_override(text))
