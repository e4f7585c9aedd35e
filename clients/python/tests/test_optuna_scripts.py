"""Scripts of Optuna in the styles that people write them, moved by changing two lines at most.

Each script in `optuna_scripts` is run as it is, by Optuna, and again after its edits, by Fantasia. Those that
begin with `if_` ask for some of their parameters only under conditions.
"""

from __future__ import annotations

import difflib
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import fantasia_hpo as fantasia
from fantasia_hpo import TrialState

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "optuna_scripts"
PAGE = ROOT / "docs/migrate/from-optuna.md"

Edit = tuple[str, str]

CLIENT: Edit = ("import optuna\n", "import fantasia_hpo as optuna\n")
IMPORT: Edit = ("import optuna\n", "import optuna\nfrom fantasia_hpo.optuna import FantasiaSampler\n")
MEDIAN = 'early_stopping="median"'
SAMPLER = "FantasiaSampler(seed=1)"

# What is replaced in each script.
EDITS: dict[str, list[Edit]] = {
    "sklearn_simple": [CLIENT],
    "xgboost_pruning": [CLIENT, ("pruner=optuna.pruners.MedianPruner(n_warmup_steps=3)", MEDIAN)],
    "lightgbm_params": [CLIENT],
    "sgd_epochs": [IMPORT, ('direction="minimize"', 'direction="minimize", sampler=FantasiaSampler()')],
    "ask_and_tell": [CLIENT, ("sampler=optuna.samplers.QMCSampler(seed=1)", 'algorithm="sobol", seed=1')],
    "multi_objective": [CLIENT],
    "attributes": [CLIENT],
    "callbacks_and_jobs": [CLIENT, ("sampler=optuna.samplers.TPESampler(seed=1)", 'algorithm="tpe", seed=1')],
    "resumed": [CLIENT, ('storage="sqlite:///resumed.db"', 'storage="resumed"')],
    "visualisation": [IMPORT, ("optuna.samplers.TPESampler(multivariate=True, seed=1)", SAMPLER)],
    "callable_objective": [CLIENT],
    "folds_wilcoxon": [IMPORT, ("optuna.samplers.TPESampler(seed=1)", SAMPLER)],
    "constrained": [IMPORT, ("optuna.samplers.TPESampler(", "FantasiaSampler(")],
    "capped": [IMPORT, ("load_if_exists=True", "load_if_exists=True, sampler=FantasiaSampler()")],
    "states_counted": [CLIENT],
    "stalled": [CLIENT],
    "with_arguments": [CLIENT],
    "best_model": [CLIENT],
    "hyperband_epochs": [IMPORT, ("optuna.samplers.TPESampler(", "FantasiaSampler(")],
    "forest_importances": [IMPORT, ("optuna.samplers.TPESampler(", "FantasiaSampler(")],
    "if_classifier": [CLIENT],
    "if_layers": [CLIENT],
    "if_optimizer": [CLIENT],
    "if_booster": [CLIENT],
    "if_pipeline": [CLIENT],
    "if_kernel": [CLIENT, ("create_study()", 'create_study(direction="minimize")')],
    "if_dispatch": [CLIENT, ("pruner=optuna.pruners.MedianPruner()", MEDIAN)],
    "if_features": [CLIENT],
    "if_asked": [CLIENT],
    "if_sampler": [IMPORT, ("optuna.samplers.TPESampler(multivariate=True, group=True, seed=1)", SAMPLER)],
}


def moved(name: str) -> tuple[str, str]:
    """Return a script as it is and after its edits."""
    original = (SCRIPTS / f"{name}.py").read_text()
    text = original
    for old, new in EDITS[name]:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        text = text.replace(old, new)
    return original, text


def changed(name: str) -> int:
    """Return how many lines the edits change."""
    original, text = moved(name)
    lines = difflib.ndiff(original.splitlines(), text.splitlines())
    return sum(line.startswith("+ ") for line in lines)


def run(name: str, text: str) -> Any:
    """Run a script as the main module, and return its study."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Optuna about its experiments, and of models that are cut short
        exec(compile(text, f"{name}.py", "exec"), names)
    return names["study"]


def test_ten_have_conditions_and_twenty_have_none() -> None:
    assert {path.stem for path in SCRIPTS.glob("*.py")} == EDITS.keys()
    assert sum(name.startswith("if_") for name in EDITS) == 10
    assert len(EDITS) == 30


@pytest.mark.parametrize("name", EDITS)
def test_script_moves_by_two_lines(
    name: str, storage: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 <= changed(name) <= 2
    monkeypatch.chdir(storage)
    original, text = moved(name)
    theirs = run(name, original)
    assert capsys.readouterr().out
    ours = run(name, text)
    assert capsys.readouterr().out
    stops = name in ("callbacks_and_jobs", "capped", "stalled")
    assert stops or len(ours.trials) == len(theirs.trials)
    study = ours if isinstance(ours, fantasia.Study) else ours.sampler.study
    ended = (TrialState.COMPLETED, TrialState.PRUNED, TrialState.FAILED)
    assert all(trial.state in ended for trial in study.trials)
    failures = [t.reason for t in study.trials if t.state is TrialState.FAILED]
    assert all("diverged" in reason or name == "capped" for reason in failures)
    asked = {parameter for trial in study.trials for parameter in trial.params}
    assert asked == study.space.keys()
    for trial in study.trials:  # what was learned says which parameters each trial has asked for
        if trial.state is not TrialState.FAILED:
            assert trial.params.keys() == {p for p in study.space if active(study.space, p, trial.params)}


def active(space: dict[str, fantasia.Parameter], name: str, point: dict[str, Any]) -> bool:
    """Whether a parameter's conditions hold at a point."""
    when = space[name].when or {}
    return all(parent in point and point[parent] in values for parent, values in when.items())


def test_page_says_how_many_lines_change() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d) \|$", PAGE.read_text(), re.M)
    assert {name: int(lines) for name, lines in rows} == {name: changed(name) for name in EDITS}
