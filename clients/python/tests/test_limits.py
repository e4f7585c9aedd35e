"""Limits on what a trial may cost or use."""

from __future__ import annotations

import asyncio
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Float, Limit, Trial, TrialState, aio

LIMITS = [Limit("memory", max=20), Limit("recall", min=0.5)]
# By x: the error, the memory and the recall. Within both limits are 0.3 and 0.4.
FOUND = {0.1: (1, 30, 0.9), 0.2: (4, 25, 0.4), 0.3: (9, 7, 0.5), 0.4: (6, 20, 0.7), 0.5: (2, 12, math.nan)}
MEMORY, RECALL = "memory <= 20", "recall >= 0.5"
EXCEEDED = {0.1: [MEMORY], 0.2: [MEMORY, RECALL], 0.3: [], 0.4: [], 0.5: [RECALL]}


def create(storage: Path, **options: Any) -> fantasia.Study:
    given: dict[str, Any] = {
        "storage": storage,
        "objectives": {"error": "minimize"},
        "limits": LIMITS,
        "parameters": {"x": Float(0, 1)},
        "initial": [{"x": x} for x in FOUND],
        "algorithm": "random",
        "seed": 1,
    }
    return fantasia.create_study(**{**given, **options})


def found(trial: Trial) -> dict[str, float]:
    return dict(zip(("error", "memory", "recall"), FOUND[trial.params["x"]], strict=True))


def test_only_trials_within_all_limits_are_the_best(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = create(storage)
    seen = []
    with caplog.at_level("INFO", "fantasia_hpo"):
        study.optimize(found, n_trials=5, callbacks=[lambda _, trial: seen.append(trial.exceeded)])
    assert study.limits == LIMITS
    assert seen == list(EXCEEDED.values()) == [t.exceeded for t in study.trials]
    assert study.get_trial(2).exceeded == [MEMORY, RECALL]
    assert (study.best_trial.number, study.best_value) == (4, 6)
    assert [t.number for t in study.best_trials] == [4]
    lines = [r.getMessage() for r in caplog.records]
    assert "trial 2 completed with 4.0, outside of memory <= 20, recall >= 0.5, " in lines[1]
    assert "best" not in lines[1]
    assert [line.rpartition("; ")[2] for line in lines[2:]] == ["best 9.0", "best 6.0", "best 6.0"]
    assert list(study.trials_dataframe()["exceeded"]) == [", ".join(e) for e in EXCEEDED.values()]
    assert "exceeded=['memory <= 20', 'recall >= 0.5']" in repr(study.get_trial(2))
    assert "exceeded" not in repr(study.get_trial(3))
    assert "memory &lt;= 20, recall &gt;= 0.5" in study.get_trial(2)._repr_html_()
    assert "2 of 5" in (study._repr_html_() or "")


def test_limits_change_while_a_study_runs(storage: Path) -> None:
    study = create(storage, name="changed-limits")
    other = fantasia.load_study("changed-limits", storage)
    study.optimize(found, n_trials=5)
    other.update(limits=[{"metric": "memory", "max": 5}])
    assert study.limits == [Limit("memory", max=5)]
    assert [t.exceeded for t in study.trials] == [["memory <= 5"]] * 5
    unmet = "no best trial: no trial is within all limits: 0 of 5 meet memory <= 5, and the nearest has 7"
    with pytest.raises(ValueError, match=unmet):
        study.best_trial  # noqa: B018
    study.update(limits=[])
    assert other.limits == []
    assert other.best_value == 1
    assert other.trials[0].exceeded == []
    assert "exceeded" not in other.trials_dataframe()


def test_an_existing_study_keeps_its_limits(storage: Path) -> None:
    create(storage, name="kept-limits")
    for limits in (LIMITS, []):
        same = create(storage, name="kept-limits", load_if_exists=True, limits=limits)
        assert same.limits == LIMITS
    message = "limits: the study 'kept-limits' exists with memory <= 20, recall >= 0.5: leave them out, or"
    with pytest.raises(fantasia.SpaceError, match=message):
        create(storage, name="kept-limits", load_if_exists=True, limits=[Limit("memory", max=3)])


def test_metrics_of_limits_are_returned_or_reported(storage: Path) -> None:
    study = create(storage)

    def objective(trial: Trial) -> float | dict[str, float]:
        if trial.number == 1:
            trial.report({"memory": 30, "recall": 1})
            trial.report({"memory": 10, "rows": 5})
            return {"error": 1}
        return 2.0

    study.optimize(objective, n_trials=2)
    first, second = study.trials
    assert first.metrics == {"memory": 10, "recall": 1}
    assert first.exceeded == []
    assert second.state is TrialState.FAILED
    assert second.reason == (
        'the result was refused: metrics has no "memory", which a limit of the study bounds'
    )
    assert second.exceeded == []
    copy = pickle.loads(pickle.dumps(study))
    told = copy.tell(copy.ask(), {"error": 3, "memory": 21, "recall": 1})
    assert told.exceeded == [MEMORY]
    assert study.add_trial({"x": 0.9}, {"error": 3, "memory": 1, "recall": 0.4}).exceeded == [RECALL]


def test_limits_beside_several_objectives(storage: Path) -> None:
    study = create(
        storage,
        objectives={"error": "minimize", "recall": "maximize"},
        limits=[*LIMITS, Limit("memory", min=10)],
    )
    study.optimize(lambda t: {**found(t), "recall": 0.5 if t.number == 5 else found(t)["recall"]}, n_trials=5)
    outside = [[MEMORY], [MEMORY, RECALL], ["memory >= 10"], [], []]
    assert [t.exceeded for t in study.trials] == outside
    assert [t.number for t in study.best_trials] == [4, 5]  # of (6, 0.7) and (2, 0.5), none dominates


def test_coroutines(storage: Path) -> None:
    async def search() -> tuple[list[Limit], list[list[str]]]:
        study = await aio.create_study(
            objectives={"error": "minimize"},
            limits=LIMITS,
            parameters={"x": Float(0, 1)},
            storage=storage,
            algorithm="random",
        )
        await study.tell(await study.ask(), {"error": 1, "memory": 21, "recall": 1})
        return await study.limits(), [t.exceeded for t in await study.trials()]

    assert asyncio.run(search()) == (LIMITS, [[MEMORY]])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([{"metric": "m"}], r"limits\[0\]: expected one of max and min, got \{'metric': 'm'\}; for both"),
        ([LIMITS[0], Limit("m", max=1, min=0)], r"limits\[1\]: expected one of max and min"),
        ([{"metric": "m", "most": 1}], r"limits\[0\]: expected a Limit, or a mapping with metric and one of"),
        (["m <= 1"], r"limits\[0\]: expected a Limit, or .*, got 'm <= 1'"),
        ([Limit("m", max=math.nan)], r"limits\[0\]: expected a finite bound, got nan"),
        ({"m": 1}, "limits: expected a list of limits, got {'m': 1}"),
        ([Limit("a b", max=1)], r'limits\[0\].metric: "a b": a metric\'s name has no spaces'),
        ([Limit("m", max=1)] * 2, r"limits\[1\]: limits\[0\] has the same bound"),
    ],
)
def test_problems(storage: Path, limits: Any, message: str) -> None:
    with pytest.raises(fantasia.SpaceError, match=message):
        create(storage, limits=limits)


def test_algorithms_that_take_no_limits(storage: Path) -> None:
    with pytest.raises(fantasia.SpaceError, match="algorithm: forest takes no limits: use hebo, gp, tpe"):
        create(storage, algorithm="forest")


def test_what_is_known_early_is_kept_of_failed_trials(storage: Path) -> None:
    limit = Limit("memory", max=20, early=True)
    study = create(
        storage,
        objectives={"error": "minimize", "size": fantasia.Objective("minimize", early=True)},
        limits=[limit, Limit("recall", min=0.5)],
    )
    assert study.limits == [limit, Limit("recall", min=0.5)]
    assert [o.early for o in study.objectives.values()] == [False, True]
    trial = study.ask()
    trial.report({"memory": 30, "recall": 0.9})
    trial.report({"size": 3})
    study.tell(trial, state=TrialState.FAILED)
    assert study.trials[0].metrics == {"memory": 30, "size": 3}
    study.update(limits=[Limit("memory", max=20)])
    assert study.limits == [Limit("memory", max=20)]
    with pytest.raises(fantasia.SpaceError, match=r"objectives\['error'\].early: expected False"):
        create(
            storage, name="one", objectives={"error": fantasia.Objective("minimize", early=True)}, limits=[]
        )
