"""Optuna's pruners by their names prune the same trials at the same steps as Optuna's own."""

from __future__ import annotations

import json
import logging
import math
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import fantasia_hpo as fantasia
from fantasia_hpo import SpaceError, pruners

optuna = pytest.importorskip("optuna")
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)

Curve = list[float]


def falling(random: random.Random) -> Curve:
    """Return a loss that falls to its own end at its own pace, with noise."""
    end, height, pace = random.random(), 0.5 + random.random(), 2 + 10 * random.random()
    return [end + height * math.exp(-s / pace) + random.gauss(0, 0.03) for s in range(30)]


def crossing(random: random.Random) -> Curve:
    """Return a loss that falls late if its end is good."""
    end = random.random()
    return [end + (1.5 - end) * math.exp(-s / (4 + 12 * (1 - end))) for s in range(30)]


def rising(random: random.Random) -> Curve:
    """Return a loss that falls, and rises again from some step on."""
    turn, end = random.randrange(5, 30), random.random()
    return [end + 0.05 * abs(s - turn) + random.gauss(0, 0.02) for s in range(30)]


def uneven(random: random.Random) -> Curve:
    """Return a falling loss of one of several lengths, as programs have that stop by themselves."""
    return falling(random)[: random.choice([20, 25, 30])]


def recorded(name: str) -> list[Curve]:
    """Return curves of trainings, which the tests of the rules have too."""
    text = (ROOT / "coordinator/pruner/testdata/oracle.json").read_text()
    return list(json.loads(text)["curves"][name][:16])


def family(make: Callable[[random.Random], Curve], seed: int = 1) -> list[Curve]:
    drawn = random.Random(seed)
    return [make(drawn) for _ in range(16)]


FAMILIES = {
    "falling": family(falling),
    "crossing": family(crossing),
    "rising": family(rising),
    "uneven": family(uneven),
    "losses": recorded("losses"),
    "folds": recorded("folds"),
}

SIGNS: dict[str, tuple[int, Any]] = {title: (1, "minimize") for title in ("falling", "uneven", "losses")}
SIGNS |= {title: (-1, "maximize") for title in FAMILIES.keys() - SIGNS.keys()}

# How each pruner is made, in Optuna and here; the module is the argument.
PRUNERS: dict[str, Callable[[Any], Any]] = {
    "median": lambda m: m.MedianPruner(),
    "median warm": lambda m: m.MedianPruner(3, 5, 4, n_min_trials=4),
    "percentile": lambda m: m.PercentilePruner(25.0, 2, interval_steps=3),
    "halving": lambda m: m.SuccessiveHalvingPruner(),
    "halving from 2": lambda m: m.SuccessiveHalvingPruner(2, 3, 1, 2),
    "hyperband": lambda m: m.HyperbandPruner(),
    "hyperband to 27": lambda m: m.HyperbandPruner(1, 27, bootstrap_count=1),
    "patient": lambda m: m.PatientPruner(None, 3),
    "patient median": lambda m: m.PatientPruner(m.MedianPruner(), 2, 0.01),
    "threshold": lambda m: m.ThresholdPruner(upper=1.0, n_warmup_steps=4, interval_steps=3),
    "wilcoxon": lambda m: m.WilcoxonPruner(p_threshold=0.05, n_startup_steps=4),
    "nop": lambda m: m.NopPruner(),
}


def bracket(count: int, reduction: int, number: int) -> int:
    """Return the group of a trial here: the multiples of the golden ratio, spread by the groups' sizes."""
    sizes = [math.ceil(count * reduction**more / (more + 1)) for more in reversed(range(count))]
    left = int((number * (math.sqrt(5) - 1) / 2) % 1 * sum(sizes))
    for index, size in enumerate(sizes):
        left -= size
        if left < 0:
            return index
    raise AssertionError("the sizes are too small")


def ends(study: Any, curves: list[Curve], sign: int, first: int, pruned: Any) -> list[int | None]:
    """Play trials one after the other; return after which report each was pruned, None if it was not."""
    ended: list[int | None] = []
    for curve in curves:
        trial = study.ask()
        at = None
        for step, loss in enumerate(curve, first):
            trial.report(sign * loss, step)
            if trial.should_prune():
                at = step
                break
        if at is None:
            study.tell(trial, sign * (sum(curve) / len(curve)))
        else:
            study.tell(trial, state=pruned)
        ended.append(at)
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("name", PRUNERS)
def test_the_same_trials_are_pruned(name: str, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(  # which group a trial is in is drawn by the study's name in Optuna
        optuna.pruners.HyperbandPruner,
        "_get_bracket_id",
        lambda self, _, trial: bracket(self._n_brackets or 1, self._reduction_factor, trial.number + 1),
    )
    same = total = stopped = 0
    for title, curves in FAMILIES.items():
        first = 0 if title in ("falling", "folds") else 1
        sign, direction = SIGNS[title]
        theirs = optuna.create_study(direction=direction, pruner=PRUNERS[name](optuna.pruners))
        ours = fantasia.create_study(
            direction=direction,
            storage=storage,
            algorithm="random",
            parameters={"x": fantasia.Float(0, 1)},
            pruner=PRUNERS[name](pruners),
        )
        expected = ends(theirs, curves, sign, first, optuna.trial.TrialState.PRUNED)
        got = ends(ours, curves, sign, first, fantasia.TrialState.PRUNED)
        same += sum(a == b for a, b in zip(got, expected, strict=True))
        stopped += sum(at is not None for at in expected)
        total += len(curves)
    assert same >= 0.95 * total
    assert stopped > 0 or name == "nop"


def test_a_pruner_that_cannot_be_is_refused() -> None:
    with pytest.raises(SpaceError, match=r"n_startup_trials: expected a number from 0, got -1"):
        pruners.MedianPruner(-1)
    with pytest.raises(SpaceError, match=r"percentile: expected a number from 0 to 100, got 101"):
        pruners.PercentilePruner(101)
    with pytest.raises(SpaceError, match=r"min_resource: expected a number beside bootstrap_count"):
        pruners.SuccessiveHalvingPruner(bootstrap_count=1)
    with pytest.raises(SpaceError, match="wrapped_pruner: expected None or a pruner of"):
        pruners.PatientPruner(optuna.pruners.MedianPruner(), 1)
    with pytest.raises(SpaceError, match=r"pruner: expected one of fantasia_hpo.pruners.*FantasiaSampler"):
        fantasia.create_study(direction="minimize", pruner=optuna.pruners.MedianPruner())
    with pytest.raises(SpaceError, match="early_stopping and pruner: expected one of them"):
        fantasia.create_study(direction="minimize", early_stopping="median", pruner=pruners.MedianPruner())


@pytest.mark.parametrize("pruner", [None, pruners.NopPruner(), pruners.MedianPruner()])
def test_how_to_prune_is_said_once(
    pruner: fantasia.EarlyStopping | None, storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = fantasia.create_study(direction="minimize", storage=storage, pruner=pruner)
    with caplog.at_level(logging.INFO, "fantasia_hpo"):
        for _ in range(2):
            trial = study.ask()
            for step in (1, 2):
                trial.report(step, step)
                assert not trial.should_prune()
            study.tell(trial)
    said = [r.message for r in caplog.records if "pruners.MedianPruner()" in r.message]
    assert len(said) == (pruner is None)
