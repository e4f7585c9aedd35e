"""Studies of several objectives."""

from __future__ import annotations

import asyncio
import itertools
import math
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Float, Objective, Trial, TrialState, aio
from fantasia_hpo._objectives import Direction, Reported, objectives_of

AIMS: dict[str, Any] = {"accuracy": "maximize", "seconds": "minimize"}


def create(storage: Path, **options: Any) -> fantasia.Study:
    given: dict[str, Any] = {
        "storage": storage,
        "objectives": AIMS,
        "parameters": {"x": Float(0, 1), "y": Float(0, 1)},
        "algorithm": "random",
        "seed": 1,
    }
    return fantasia.create_study(**{**given, **options})


def values(trial: Trial) -> tuple[float, float]:
    """Return an accuracy and a time. Those with y = 0 are the front."""
    x, y = trial.params["x"], trial.params["y"]
    return x - y, x + y


def front(trials: list[fantasia.FrozenTrial]) -> list[int]:
    """Return the numbers of the trials that no other one dominates, by the definition."""
    costs = {t.number: (-t.values[0], t.values[1]) for t in trials if t.values}
    return [
        n
        for n, mine in costs.items()
        if not any(all(a <= b for a, b in zip(o, mine, strict=True)) and o != mine for o in costs.values())
    ]


@pytest.mark.parametrize(
    "result",
    [values, lambda t: list(values(t)), lambda t: dict(zip(("accuracy", "seconds"), values(t), strict=True))],
)
def test_a_function_returns_several_values(storage: Path, result: Any) -> None:
    study = create(storage, initial=[{"x": x, "y": 0} for x in (0.2, 0.8)])
    seen: list[list[float] | None] = []
    study.optimize(result, n_trials=12, callbacks=[lambda _, trial: seen.append(trial.values)])
    trials = study.trials
    expected = [[t.params["x"] - t.params["y"], t.params["x"] + t.params["y"]] for t in trials]
    assert [t.values for t in trials] == seen == expected
    assert all(t.metrics == {} for t in trials)
    assert [t.number for t in study.best_trials] == front(trials)
    assert {1, 2} <= set(front(trials))
    assert study.directions == ["maximize", "minimize"]
    assert study.objectives == {"accuracy": Objective("maximize"), "seconds": Objective("minimize")}
    assert repr(study).endswith("maximize accuracy, minimize seconds)")
    frame = study.trials_dataframe()
    assert list(frame["values_accuracy"]) == [e[0] for e in expected]
    assert list(frame["values_seconds"]) == [e[1] for e in expected]
    assert not {"value", "metrics_accuracy"} & set(frame.columns)
    shown = study._repr_html_()
    assert shown is not None
    assert "maximize accuracy, minimize seconds" in shown
    assert all(f"trial {n}" in shown for n in front(trials))


def test_a_picture_of_one_objective(storage: Path) -> None:
    study = create(storage)
    results = iter([(0.25, 3.0), (0.75, 5.0)])
    study.optimize(lambda trial: next(results), n_trials=2)
    assert "the best is 0.75 in trial 2" in study.picture("history")
    assert "the best is 0.75 in trial 2" in study.picture("history", objective="accuracy")
    assert "the best is 3 in trial 1" in study.picture("history", objective="seconds")
    with pytest.raises(ValueError, match="objective: expected one of accuracy, seconds, got 'size'"):
        study.picture("history", objective="size")


def test_directions_without_names(storage: Path) -> None:
    study = create(storage, objectives=None, directions=["minimize", "maximize", "minimize"])
    study.optimize(lambda trial: (1.0, 2.0, trial.params["x"]), n_trials=3)
    assert study.directions == ["minimize", "maximize", "minimize"]
    assert list(study.objectives) == ["values_0", "values_1", "values_2"]
    assert list(study.trials_dataframe()["values_2"]) == [t.params["x"] for t in study.trials]
    (best,) = study.best_trials
    assert best.params["x"] == min(t.params["x"] for t in study.trials)
    loaded = fantasia.load_study(study.name, storage)
    assert loaded.directions == study.directions
    assert loaded.best_trials == study.best_trials


@pytest.mark.parametrize("given", [{"directions": ["maximize"]}, {"objectives": {"value": "maximize"}}])
def test_one_of_several_is_a_single_objective(storage: Path, given: Any) -> None:
    study = create(storage, **{"objectives": None, **given})
    study.optimize(lambda trial: [trial.params["x"]], n_trials=3)
    assert (study.metric, study.direction) == ("value", "maximize")
    assert study.best_value == max(t.value or 0 for t in study.trials)


def test_what_there_is_only_of_a_single_objective(storage: Path) -> None:
    study = create(storage)
    study.optimize(values, n_trials=2)
    for name in ("best_trial", "best_value", "best_params", "direction", "metric"):
        with pytest.raises(RuntimeError, match=r"several objectives \(accuracy, seconds\): use "):
            getattr(study, name)
    with pytest.raises(RuntimeError, match="trial 1 has 2 values: use values"):
        study.get_trial(1).value  # noqa: B018
    assert "values=[" in repr(study.get_trial(1))


def test_the_recommended_front(storage: Path) -> None:
    study = create(storage, algorithm="tpe")  # which has no model: its front is that of the values
    with pytest.raises(ValueError, match="use best_trials"):
        study.recommended  # noqa: B018
    study.optimize(values, n_trials=12)
    found = study.recommended
    assert {e.number: e.means for e in found.front} == {t.number: t.values for t in study.best_trials}
    assert all(e.sds == [0, 0] for e in found.front)
    chosen = next((e for e in found.front if e.knee), found.front[0])
    assert (found.number, found.mean, found.sd) == (chosen.number, chosen.means[0], 0)
    assert found.params == study.get_trial(found.number).params


def test_a_hypervolume_ends_the_study(storage: Path) -> None:
    study = create(storage, objectives={"a": Objective("minimize", 4), "b": Objective("maximize", 0)}, goal=6)
    found = iter([(2, 2), (1, 2), (0, 9), (0, 12)])
    study.optimize(lambda trial: next(found), n_trials=4)
    assert len(study.trials) == 2  # they dominate 2 * 2 and 3 * 2
    study.update(goal=40.0)
    study.optimize(lambda trial: next(found), n_trials=2)
    assert len(study.trials) == 4  # 4 * 9 is not enough


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (0.5, "expected 2 values (accuracy, seconds) or a mapping of metrics, got 0.5"),
        ((1, 2, 3), "expected 2 values (accuracy, seconds) or a mapping of metrics, got (1, 2, 3)"),
        ((1, "much"), "metric 'seconds': expected a number, got 'much' of type str"),
        ({"accuracy": 1}, "returned ['accuracy'], without the metric 'seconds'"),
        ({}, "returned [], without the metric 'accuracy' and 'seconds'"),
        (None, "returned None and did not report 'accuracy' and 'seconds'"),
    ],
)
def test_missing_values_fail_a_trial(storage: Path, result: Any, reason: str) -> None:
    study = create(storage)
    study.optimize(lambda trial: result if trial.number == 2 else (1, 2), n_trials=2)
    trial = study.get_trial(2)
    assert (trial.state, trial.values, trial.value) == (TrialState.FAILED, None, None)
    assert reason in trial.reason


def test_a_value_that_is_not_finite_is_infeasible(storage: Path) -> None:
    study = create(storage)
    study.optimize(lambda trial: (1.0, math.nan if trial.number == 1 else 2.0), n_trials=2)
    assert [t.state for t in study.trials] == [TrialState.INFEASIBLE, TrialState.COMPLETED]


def test_ask_tell_and_add(storage: Path) -> None:
    study = create(storage)
    assert study.tell(study.ask(), (0.5, 3)).values == [0.5, 3.0]
    told = study.tell(study.ask(), {"seconds": 4, "accuracy": 0.6, "size": 7})
    assert (told.values, told.metrics) == ([0.6, 4.0], {"size": 7.0})
    assert study.add_trial({"x": 0.5, "y": 0}, [0.7, 2]).values == [0.7, 2.0]
    assert [t.number for t in study.best_trials] == [3]
    with pytest.raises(fantasia.SpaceError, match="expected the metric 'seconds', got"):
        study.add_trial({"x": 0.5, "y": 0}, {"accuracy": 0.7})
    trial = study.ask()
    with pytest.raises(fantasia.FantasiaError, match="return the metric 'accuracy' and 'seconds', or report"):
        study.tell(trial)
    trial.report({"accuracy": 0.3})
    trial.report((0.4, 5))
    assert study.tell(trial).values == [0.4, 5.0]


def test_early_stopping_compares_its_metric(storage: Path) -> None:
    study = create(
        storage,
        early_stopping=fantasia.EarlyStopping("median", metric="seconds"),
        initial=[{"x": x, "y": 0} for x in (0.1, 0.2, 0.3, 0.9)],
    )
    reached = []

    def objective(trial: Trial) -> tuple[float, float]:
        trial.report({"size": 2.0}, 0)
        for step in range(1, 11):
            trial.report(trial.params["x"] + 1 / step, step)  # a number is the compared metric
            if trial.should_prune():
                reached.append(step)
                raise fantasia.TrialPruned
        return 1.0, trial.params["x"] + 0.1

    study.optimize(objective, n_trials=4)
    assert [t.state.value for t in study.trials] == ["COMPLETED"] * 3 + ["PRUNED"]
    pruned = study.get_trial(4)
    assert pruned.values is None  # its accuracy was not reported
    assert pruned.metrics == {"size": 2.0, "seconds": pytest.approx(0.9 + 1 / reached[0])}
    assert list(study.curve(4, "seconds")) == list(range(1, reached[0] + 1))


@pytest.mark.parametrize("option", ["early_stopping", "pruner"])
@pytest.mark.parametrize("value", [True, False])
def test_default_rule_of_early_stopping(storage: Path, option: str, value: bool) -> None:
    study = create(storage, objectives=None, direction="minimize", **{option: value})
    pruned = 0

    def objective(trial: Trial) -> float:
        nonlocal pruned
        for step in range(1, 31):
            trial.report(trial.params["x"] + 1 / step, step)
            if trial.should_prune():
                pruned += 1
                raise fantasia.TrialPruned
        return float(trial.params["x"])

    study.optimize(objective, n_trials=15)
    assert (pruned > 0) is value


def test_without_early_stopping_nothing_is_pruned(storage: Path) -> None:
    study = create(storage)

    def objective(trial: Trial) -> None:
        trial.report((0.1, 1))
        assert not trial.should_prune()
        with pytest.raises(fantasia.SpaceError, match="expected 2 values"):
            trial.report(0.5)
        if trial.number == 2:
            raise fantasia.TrialPruned

    study.optimize(objective, n_trials=2)
    assert [t.values for t in study.trials] == [[0.1, 1.0], None]
    assert study.get_trial(2).reason == "raised TrialPruned, but should_prune was not True"


def test_references_and_take_reach_the_server(storage: Path) -> None:
    aims = {"accuracy": Objective("maximize", take="best"), "seconds": Objective("minimize", reference=9)}
    study = create(storage, objectives=aims, name="referred")

    def objective(trial: Trial) -> None:
        for accuracy, seconds in ((0.1, 1), (0.9, 2), (0.5, 3)):
            trial.report((accuracy, seconds))

    study.optimize(objective, n_trials=1)
    assert study.get_trial(1).values == [0.9, 2.0]
    assert fantasia.load_study("referred", storage).objectives == aims
    study.update(references={"accuracy": 0.2, "seconds": None})
    assert fantasia.load_study("referred", storage).objectives == {
        "accuracy": Objective("maximize", 0.2, "best"),
        "seconds": Objective("minimize"),
    }
    with pytest.raises(fantasia.SpaceError, match="references: expected one of accuracy, seconds, got 'x'"):
        study.update(references={"x": 1})
    with pytest.raises(fantasia.SpaceError, match="maximize accuracy, minimize seconds: give this one"):
        create(storage, objectives={"seconds": "minimize"}, name="referred", load_if_exists=True)
    assert create(storage, name="referred", load_if_exists=True).objectives["accuracy"].take == "best"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": None}, "expected one of direction, directions and objectives, got none"),
        ({"direction": "minimize"}, r"got \['direction', 'objectives'\]"),
        ({"objectives": {}}, "objectives: expected at least one, got none"),
        ({"objectives": {"a": "up"}}, r"objectives\['a'\]: expected 'minimize' or 'maximize', got 'up'"),
        ({"objectives": None, "directions": ["minimize", "up"]}, r"directions\[1\]: expected .* got 'up'"),
        ({"objectives": None, "directions": "minimize"}, "got 'minimize': use direction"),
        ({"take": "best"}, "take: expected none with several objectives"),
        (
            {"goal": 1, "objectives": {"a": Objective("minimize", 1), "b": "minimize"}},
            r"goal: needs a reference of each objective, .*: objectives\[1\] without one",
        ),
        ({"objectives": {"a": Objective("minimize", 1)}}, r"objectives\['a'\].reference: expected none"),
        ({"algorithm": "cmaes"}, r"algorithm: cmaes takes one objective: for several use .*nsga2"),
        ({"early_stopping": "median"}, r"early_stopping.metric"),
        ({"objectives": None, "directions": ["minimize"] * 9}, "objectives: has 9: list 2 to 8"),
        ({"objectives": {"a": "minimize", "": "minimize"}}, r"objectives\[''\].metric: is missing"),
    ],
)
def test_problems(storage: Path, options: Any, message: str) -> None:
    with pytest.raises(fantasia.SpaceError, match=message):
        create(storage, **options)


@pytest.mark.parametrize("algorithm", ["hebo", "gp"])
def test_algorithms_search_the_front(storage: Path, algorithm: str) -> None:
    study = create(storage, algorithm=algorithm)
    study.optimize(values, n_trials=24, n_jobs=2)
    # A random point is within 0.2 of the front with a probability of 20%.
    near = sum(t.params["y"] < 0.2 for t in study.trials)
    assert near > 8


def test_a_learned_space(storage: Path) -> None:
    study = create(storage, parameters=None)
    study.optimize(lambda t: (t.suggest_float("x", 0, 1), t.suggest_int("n", 1, 9)), n_trials=6)
    assert [t.values for t in study.trials] == [[t.params["x"], t.params["n"]] for t in study.trials]


def test_coroutines(storage: Path) -> None:
    async def search() -> tuple[list[int], list[int]]:
        study = await aio.create_study(
            objectives=AIMS,
            parameters={"x": Float(0, 1), "y": Float(0, 1)},
            storage=storage,
            algorithm="random",
        )

        async def objective(trial: Trial) -> tuple[float, float]:
            await study.report(trial, {"seconds": 1})
            return values(trial)

        await study.optimize(objective, n_trials=6, n_jobs=2)
        await study.tell(await study.ask(), (0.0, 1.0))
        assert study.directions == ["maximize", "minimize"]
        assert study.objectives == study.study.objectives
        with pytest.raises(RuntimeError, match="several objectives"):
            await study.best_trial()
        return [t.number for t in await study.best_trials()], front(await study.trials())

    found, expected = asyncio.run(search())
    assert found == expected


def test_copies_of_a_study_and_a_trial(storage: Path) -> None:
    study = pickle.loads(pickle.dumps(create(storage)))
    trial = pickle.loads(pickle.dumps(study.ask()))
    trial.report((0.5, 2))
    assert study.tell(trial).values == [0.5, 2.0]


def test_lines_and_progress_count_the_front(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = create(storage)
    results = iter([(0.5, 2.0), (0.6, 3.0), (0.7, 1.0)])
    with caplog.at_level("INFO", "fantasia_hpo"):
        study.optimize(lambda trial: next(results), n_trials=3)
    lines = [r.getMessage() for r in caplog.records]
    assert [line.rpartition("; ")[2] for line in lines] == [
        "1 on the front",
        "2 on the front",
        "1 on the front",
    ]
    assert "completed with 0.5, 2.0" in lines[0]


def test_which_report_counts() -> None:
    """Compare with the definition: the report in which the one objective is best counts for all."""
    rng = random.Random(1)
    names = ["a", "b", "c"]
    ways: tuple[Direction, ...] = ("minimize", "maximize")
    for way, _ in itertools.product(ways, range(200)):
        aims = objectives_of(
            "",
            None,
            None,
            {"a": Objective(way, take="best"), "b": "minimize", "c": "minimize"},
            None,
        )
        reported, reports = Reported(aims), []
        for step in range(rng.randint(1, 6)):
            reports.append({n: rng.randint(0, 4) for n in names if rng.random() < 0.7})
            reported.add(step, reports[-1])
        tried = [(step, r["a"]) for step, r in enumerate(reports) if "a" in r]
        if not tried:
            assert "a" not in reported.metrics()
            continue
        pick = min if way == "minimize" else max
        chosen = next(step for step, v in tried if v == pick(v for _, v in tried))
        expected = {"a": reports[chosen]["a"]}
        for name in ("b", "c"):
            before = [r[name] for r in reports[: chosen + 1] if name in r]
            after = [r[name] for r in reports[chosen:] if name in r]
            if before or after:
                expected[name] = before[-1] if before else after[0]
        assert reported.metrics() == expected
