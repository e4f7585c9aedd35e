from __future__ import annotations

import contextlib
import datetime
import enum
import math
import pickle
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Float, Trial, TrialState, _earlier
from fantasia_hpo.create import _new_name

SPACE: dict[str, fantasia.Parameter] = {
    "lr": Float(1e-5, 1e-1, scale="log"),
    "width": fantasia.Int(16, 512),
    "solver": fantasia.Categorical(["adam", "sgd"]),
    "momentum": Float(0.0, 0.99, when={"solver": ["sgd"]}),
}


def create(storage: Path, **options: Any) -> fantasia.Study:
    given: dict[str, Any] = {
        "storage": storage,
        "metric": "error",
        "direction": "minimize",
        "parameters": {"x": Float(-10, 10)},
        "algorithm": "random",
        "seed": 1,
    }
    return fantasia.create_study(**{**given, **options})


def square(trial: Trial) -> float:
    return float((trial.params["x"] - 2) ** 2)


def test_optimize_finds_the_minimum(storage: Path) -> None:
    study = create(storage, algorithm="hebo")
    study.optimize(square, n_trials=20, n_jobs=2)
    trials = study.trials
    assert [t.number for t in trials] == list(range(1, 21))
    assert all(t.state is TrialState.COMPLETED and t.value == (t.params["x"] - 2) ** 2 for t in trials)
    best = min(trials, key=lambda t: t.value or 0)
    assert study.best_trial == best
    assert (study.best_value, study.best_params) == (best.value, best.params)
    # The best of 20 random points is within 0.04 with a probability of 4%.
    assert best.value is not None
    assert best.value < 0.04
    recommended = study.recommended
    assert abs(recommended.params["x"] - 2) < 0.3
    assert recommended.sd >= 0


def test_conditional_parameters_have_pythons_types(storage: Path) -> None:
    study = create(storage, parameters=SPACE)

    def objective(trial: Trial) -> dict[str, float]:
        assert type(trial.params["lr"]) is float
        assert type(trial.params["width"]) is int
        assert ("momentum" in trial.params) == (trial.params["solver"] == "sgd")
        return {"error": trial.suggest_float("lr", 1e-5, 1e-1, log=True), "width": trial.suggest_int("width")}

    study.optimize(objective, n_trials=10)
    assert {t.params["solver"] for t in study.trials} == {"adam", "sgd"}
    assert all(t.metrics["width"] == t.params["width"] for t in study.trials)


def test_suggest_refuses_what_is_not_declared(storage: Path) -> None:
    trial = create(storage, parameters=SPACE, initial=[{"solver": "adam", "lr": 1e-3, "width": 32}]).ask()
    assert trial.suggest_categorical("solver", ["adam", "sgd"]) == "adam"
    with pytest.raises(
        fantasia.SpaceError, match=r"'depth' is not declared.*declared are lr, width, solver, momentum"
    ):
        trial.suggest_int("depth", 1, 3)
    with pytest.raises(fantasia.SpaceError, match="'lr' is declared as Float"):
        trial.suggest_int("lr", 1, 3)
    with pytest.raises(fantasia.SpaceError, match=r"'momentum' is not active in trial 1: its condition is"):
        trial.suggest_float("momentum")


@pytest.mark.parametrize(
    ("suggest", "message"),
    [
        (
            lambda t: t.suggest_float("lr", 0, 1),
            r"'lr' is declared as Float\(low=1e-05.*, got low=0, high=1$",
        ),
        (lambda t: t.suggest_float("lr", 1e-5, 1e-1, log=False), "scale='log'.* got low=.*, log=False$"),
        (lambda t: t.suggest_float("lr", step=0.1), "'lr' is declared as Float.* got step=0.1$"),
        (lambda t: t.suggest_int("width", 16, 1024), "'width' is declared as Int.* got low=16, high=1024$"),
        (lambda t: t.suggest_int("width", step=2), "'width' is declared as Int.* got step=2$"),
        (lambda t: t.suggest_int("epochs", 1, 3), "'epochs' is declared as Fidelity.* got low=1, high=3$"),
        (
            lambda t: t.suggest_categorical("solver", ["sgd"]),
            r"'solver' is declared as .* got choices=\['sgd'\]$",
        ),
        (
            lambda t: t.suggest_categorical("flag", [0, 1]),
            r"'flag' is declared as Bool.* got choices=\[0, 1\]$",
        ),
    ],
)
def test_suggest_refuses_another_declaration(storage: Path, suggest: Any, message: str) -> None:
    space = {
        **SPACE,
        "flag": fantasia.Bool(),
        "epochs": fantasia.Fidelity(1, 9),
        "none": fantasia.Fixed(None),
    }
    study = create(storage, parameters=space)
    trial = study.ask()
    with pytest.raises(fantasia.SpaceError, match=message):
        suggest(trial)
    assert trial.suggest_float("lr", 1e-5, 1e-1, log=True) == trial.params["lr"]
    assert trial.suggest_int("width", 16, 512, step=1) == trial.params["width"]
    assert trial.suggest_int("epochs", 1, 9) == trial.params["epochs"]
    assert trial.suggest_categorical("solver", ["sgd", "adam"]) == trial.params["solver"]
    assert trial.suggest_categorical("flag", [True, False]) is trial.params["flag"]
    assert trial.suggest_categorical("none", [None]) is None
    study.release(trial)


def test_choices_of_a_loaded_study_are_the_objects(storage: Path) -> None:
    create(storage, name="choices", parameters={"c": fantasia.Categorical([None, len])})
    trial = fantasia.load_study("choices", storage).ask()
    assert trial.params["c"] in ("None", "<built-in function len>")
    assert trial.suggest_categorical("c", [None, len]) in (None, len)
    trial.study.release(trial)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_finite_space_ends_optimize_with_a_log_line(
    storage: Path, caplog: pytest.LogCaptureFixture, n_jobs: int
) -> None:
    study = create(storage, parameters={"x": fantasia.Int(1, 4)})
    with caplog.at_level("INFO", "fantasia_hpo"):
        study.optimize(square, n_trials=5, n_jobs=n_jobs)
    assert sorted(t.params["x"] for t in study.trials) == [1, 2, 3, 4]
    assert "the search space is exhausted" in caplog.text


def test_undeclared_parameter_ends_optimize_at_once(storage: Path) -> None:
    for jobs in (1, 2):
        study = create(storage)
        with pytest.raises(fantasia.DeclarationError, match="'y' is not declared"):
            study.optimize(lambda trial: trial.suggest_float("y", 0, 1), n_trials=5, n_jobs=jobs)
        assert study.get_trials([TrialState.FAILED, TrialState.RUNNING, TrialState.CLAIMED]) == []
        assert study.state == "RUNNING"


@pytest.mark.parametrize("jobs", [1, 2])
def test_exception_that_is_not_caught_fails_its_trial_and_ends_optimize(storage: Path, jobs: int) -> None:
    study = create(storage)

    def objective(trial: Trial) -> float:
        if trial.number == 2:
            raise ArithmeticError("caught")
        if trial.number == 4:
            raise LookupError("not caught")
        return 1.0

    with pytest.raises(LookupError, match="not caught"):
        study.optimize(objective, n_trials=20, n_jobs=jobs, catch=(ArithmeticError,))
    states = [t.state for t in study.trials]
    assert states[:4] == [TrialState.COMPLETED, TrialState.FAILED, TrialState.COMPLETED, TrialState.FAILED]
    assert "not caught" in study.get_trial(4).reason
    assert study._heartbeat.open() == []


def test_best_trials_are_all_with_the_best_value(storage: Path) -> None:
    study = create(storage, direction="maximize")
    assert study.best_trials == []
    study.optimize(lambda trial: float(min(trial.number, 3)), n_trials=5)
    assert [t.number for t in study.best_trials] == [3, 4, 5]


def test_user_attributes_are_stored(storage: Path) -> None:
    study = create(storage)
    noted = {"model": "small", "sizes": [1, 2], "nested": {"ok": True}, "score": 0.5, "flag": False}

    def objective(trial: Trial) -> float:
        for name, value in noted.items():
            trial.set_user_attr(name, value)
        if trial.number == 2:
            raise ValueError
        return 1.0

    study.optimize(objective, n_trials=2)
    assert [t.user_attrs for t in study.trials] == [noted, noted]
    assert list(study.trials_dataframe()["user_attrs_model"]) == ["small", "small"]
    copy = pickle.loads(pickle.dumps(study.ask()))
    copy.set_user_attr("from", "a copy")
    assert study.get_trial(3).user_attrs == {"from": "a copy"}
    with pytest.raises(
        fantasia.SpaceError, match=r"user attribute 'f': expected a number, .* got a builtins"
    ):
        copy.set_user_attr("f", len)
    study.release(copy)
    large = study.ask()
    large.set_user_attr("text", "x" * 20_000)
    assert study.tell(large, 1.0).value == 1.0
    assert "text" not in study.get_trial(large.number).user_attrs


def test_part_of_a_point_is_enqueued(storage: Path) -> None:
    study = create(storage, parameters=SPACE, constraints=["width <= 100"])
    given: list[dict[str, Any]] = [{"solver": "sgd"}, {"lr": 1e-3}, {"width": 64, "solver": "adam"}]
    for point in given:
        study.enqueue_trial(point, user_attrs={"by": "hand"})
    again = study.enqueue_trial(given[2], skip_if_exists=True)
    assert again.number == 3
    for point in given:
        trial = study.ask()
        assert point.items() <= trial.params.items()
        assert ("momentum" in trial.params) == (trial.params["solver"] == "sgd")
        assert trial.params["width"] <= 100
        assert study.tell(trial, 1.0).user_attrs == {"by": "hand"}
    with pytest.raises(fantasia.ServerError, match="constraint"):
        study.enqueue_trial({"width": 101})


def test_name_in_optunas_word(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "fantasia_hpo"):
        create(storage, study_name="optunas")
    assert "study_name is called name here" in caplog.text
    assert fantasia.load_study(study_name="optunas", storage=storage).name == "optunas"
    with pytest.raises(fantasia.SpaceError, match="name and study_name: expected one of them"):
        create(storage, study_name="a", name="b")
    fantasia.delete_study(study_name="optunas", storage=storage)
    assert "optunas" not in fantasia.study_names(storage)


def test_choices_are_objects_in_their_place(storage: Path) -> None:
    choices: list[Any] = [None, (64, 32), (64, 32, 16), len, {"a": 1}]
    study = create(storage, parameters={"c": fantasia.Categorical(choices)})
    study.optimize(lambda trial: float(choices.index(trial.params["c"])), n_trials=5)
    assert study.best_params == {"c": None}
    assert sorted(choices.index(t.params["c"]) for t in study.trials) == [0, 1, 2, 3, 4]


def test_repr_of_a_trial_is_three_lines(storage: Path) -> None:
    study = create(storage)
    study.optimize(lambda trial: 1.0, n_trials=1)
    first, second, third = repr(study.best_trial).splitlines()
    assert first == "FrozenTrial(number=1, state=COMPLETED, value=1.0,"
    assert second.strip() == f"params={study.best_params!r},"
    assert "source='random'" in third


class Strange:
    """A number of a library that raises errors of its own."""

    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements")


RESULTS: list[tuple[Any, str]] = [
    ({"": 1.0, "error": 1.0}, "expected a metric's name of 1 to 256 bytes, got ''"),
    ({3: 1.0, "error": 1.0}, "expected a metric's name of 1 to 256 bytes, got 3"),
    ({"é" * 129: 1.0, "error": 1.0}, "expected a metric's name of 1 to 256 bytes"),
    ({**{str(i): 1.0 for i in range(1000)}, "error": 1.0}, "expected at most 1000 metrics, got 1001"),
    ({"error": 1.0, "other": None}, "metric 'other': expected a number, got None"),
    ("1.5", "metric 'error': expected a number, got '1.5' of type str"),
    (10**400, "metric 'error': expected a number"),
    (np.array([1.0, 2.0]), "metric 'error': expected a number"),
    (Strange(), "metric 'error': expected a number"),
]


@pytest.mark.parametrize(("result", "reason"), RESULTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_refused_result_is_a_failed_trial(storage: Path, result: Any, reason: str, n_jobs: int) -> None:
    study = create(storage, max_failed_trials=10)

    def objective(trial: Trial) -> Any:
        if trial.number == 3:
            trial.report(result)
        return result if trial.number == 2 else np.float32(1.0)

    study.optimize(objective, n_trials=5, n_jobs=n_jobs)
    assert [t.state.value for t in study.trials] == [
        "COMPLETED",
        "FAILED",
        "FAILED",
        "COMPLETED",
        "COMPLETED",
    ]
    assert reason in study.get_trial(2).reason + study.get_trial(2).details
    assert reason in study.get_trial(3).details


def test_result_that_only_the_server_refuses_is_a_failed_trial(storage: Path) -> None:
    study = create(storage)

    def objective(trial: Trial) -> None:
        if trial.number == 2:  # each report has few enough, all of them together do not
            trial.report({f"a{i}": 1.0 for i in range(900)})
            trial.report({f"b{i}": 1.0 for i in range(900)})
        if trial.number == 3:
            raise ValueError("a name of a file that is not UTF-8: \udc80")
        trial.report(1.0)

    study.optimize(objective, n_trials=4)
    assert [t.state.value for t in study.trials] == ["COMPLETED", "FAILED", "FAILED", "COMPLETED"]
    assert "the result was refused" in study.get_trial(2).reason


@pytest.mark.parametrize("step", [-1, 2**63, "1", 1.5])
def test_report_names_a_step_that_is_none(storage: Path, step: Any) -> None:
    study = create(storage)
    trial = study.ask()
    with pytest.raises(fantasia.SpaceError, match="step: expected a whole number"):
        trial.report(1.0, step)
    trial.report(np.float64(1.0), np.int64(0))
    trial.report(float("nan"), 1)
    assert study.tell(trial, 2.0).value == 2.0
    assert study.curve(trial) == {0: 1.0}


def test_exception_is_a_failed_trial_with_its_last_line(storage: Path) -> None:
    study = create(storage)

    def objective(trial: Trial) -> float:
        if trial.number == 2:
            raise ValueError("the batch is empty\nwith a second line")
        if trial.number == 3:
            raise fantasia.TrialInfeasible("out of memory")
        return float("nan") if trial.number == 4 else 1.0

    study.optimize(objective, n_trials=5)
    trials = study.trials
    assert [t.state.value for t in trials] == ["COMPLETED", "FAILED", "INFEASIBLE", "INFEASIBLE", "COMPLETED"]
    assert trials[1].reason == "ValueError: the batch is empty"
    assert "with a second line" in trials[1].details
    assert "in objective" in trials[1].details
    assert "out of memory" in trials[2].reason + trials[2].details


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, "returned None and did not report 'error'"),
        ({"loss": 1.0}, r"returned ['loss'], without the metric 'error'"),
        ("much", "metric 'error': expected a number, got 'much' of type str"),
    ],
)
def test_result_without_a_value_is_a_failure(storage: Path, result: Any, reason: str) -> None:
    study = create(storage)
    study.optimize(lambda trial: result if trial.number == 2 else 1.0, n_trials=2)
    assert study.get_trial(2).state is TrialState.FAILED
    assert reason in study.get_trial(2).reason


def test_study_fails_after_three_failures_with_the_cause(storage: Path) -> None:
    study = create(storage)

    def broken(trial: Trial) -> float:
        raise RuntimeError("no such file")

    with pytest.raises(fantasia.StudyFailedError, match="first 3 trials") as caught:
        study.optimize(broken, n_trials=10)
    reason, *_, last = str(caught.value).splitlines()
    assert "first 3 trials" in reason
    assert last.startswith("RuntimeError: ")
    assert caught.value.__cause__ is None
    assert study.state == "FAILED"
    with pytest.raises(fantasia.StudyFailedError):
        study.ask()


def test_fixed_script_goes_on_with_the_failed_study(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    for limit in (None, 2):
        study = create(storage, name=f"fixed-{limit or 3}", max_failed_trials=limit)

        def broken(trial: Trial) -> float:
            raise NameError("accuracy_scor")

        with pytest.raises(fantasia.StudyFailedError, match="call optimize again") as caught:
            study.optimize(broken, n_trials=10)
        assert f"fantasia study resume fixed-{limit or 3}" in str(caught.value)
        failed = len(study.trials)
        again = create(storage, name=f"fixed-{limit or 3}", max_failed_trials=limit, load_if_exists=True)
        again.optimize(lambda trial: trial.params["x"], n_trials=4)
        assert again.state == "RUNNING"
        assert [t.state for t in again.trials[failed:]] == 4 * [TrialState.COMPLETED]
        assert f"the study 'fixed-{limit or 3}' had failed" in caplog.text
        with contextlib.suppress(fantasia.StudyFailedError):  # failures count anew
            again.optimize(broken, n_trials=2)
        assert again.state == ("RUNNING" if limit is None else "FAILED")


def test_study_that_fails_again_fails(storage: Path) -> None:
    study = create(storage)

    def broken(trial: Trial) -> float:
        raise RuntimeError("no such file")

    for failed in (3, 6):
        with pytest.raises(fantasia.StudyFailedError, match="first 3 trials"):
            study.optimize(broken, n_trials=10)
        assert len(study.trials) == failed
    study.resume()
    assert study.ask().number == 7


@pytest.mark.parametrize("directions", [["minimize"], ["minimize", "maximize"]])
def test_best_in_the_log_is_the_studys(
    storage: Path, directions: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    study = create(storage, direction=None, directions=directions)
    several = len(directions) > 1
    study.optimize(lambda trial: (0.0, 1.0) if several else 0.0, n_trials=1)
    study = fantasia.load_study(study.name, storage)
    caplog.clear()
    with caplog.at_level("INFO", "fantasia_hpo"):
        study.optimize(lambda trial: (5.0, 0.5) if several else 5.0, n_trials=1)
    assert caplog.messages[-1].endswith("; 1 on the front" if several else "; best 0.0")


def test_user_attributes_never_cost_the_value(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Kind(enum.Enum):
        TREE = "tree"

    given: dict[str, Any] = {
        "float32": np.float32(0.5),
        "int64": np.int64(3),
        "bool": np.bool_(True),
        "nan": float("nan"),
        "decimal": Decimal("0.25"),
        "date": datetime.date(2026, 1, 2),
        "took": datetime.timedelta(seconds=90),
        "enum": Kind.TREE,
        "path": Path("a/b"),
        "set": {2, 1},
        "array": np.array([[1, 2], [3, 4]]),
        "nested": {"k": (np.float32(1.5), None), 7: "seven"},
        "stamp": np.datetime64("2026-01-02T03:04:05"),
    }
    study = create(storage)

    def objective(trial: Trial) -> float:
        for key, value in given.items():
            trial.set_user_attr(key, value)
        trial.set_user_attr("long", "x" * (17 << 10))
        with pytest.raises(fantasia.SpaceError, match=r"user attribute 'model': .* got a builtins.object"):
            trial.set_user_attr("model", object())
        return 1.0

    study.optimize(objective, n_trials=1)
    trial = study.trials[0]
    assert trial.value == 1.0
    assert trial.user_attrs == {
        "float32": 0.5,
        "int64": 3,
        "bool": True,
        "nan": "NaN",
        "decimal": 0.25,
        "date": "2026-01-02",
        "took": 90.0,
        "enum": "tree",
        "path": "a/b",
        "set": [1, 2],
        "array": [[1, 2], [3, 4]],
        "nested": {"k": [1.5, None], "7": "seven"},
        "stamp": "2026-01-02T03:04:05",
    }
    assert "user attribute 'long' is left out" in caplog.text
    study.set_user_attr("score", np.float32(0.5))
    assert study.user_attrs["score"] == 0.5


def test_reports_on_another_scale_change_nothing(storage: Path) -> None:
    found = []
    for shift in (0.0, 1.0):

        def objective(trial: Trial, shift: float = shift) -> float:
            value = -((trial.params["x"] - 2) ** 2)
            for step in range(1, 6):
                trial.report(value - 1 / step + shift, step)
                if trial.should_prune():
                    raise fantasia.TrialPruned
            return float(value)

        study = create(storage, direction="maximize", algorithm="tpe", early_stopping="median", seed=3)
        study.optimize(objective, n_trials=40)
        found.append([(trial.params, trial.state) for trial in study.trials])
    assert found[0] == found[1]
    assert TrialState.PRUNED in {state for _, state in found[0]}


def test_reports_prune_trials(storage: Path) -> None:
    study = create(
        storage,
        early_stopping="median",
        initial=[{"x": 0.1}, {"x": 0.2}, {"x": 0.3}, {"x": 9.0}],
    )
    steps = []

    def objective(trial: Trial) -> None:
        for step in range(1, 11):
            trial.report({"error": trial.params["x"] + 1 / step, "double": 2 * step}, step)
            if trial.should_prune():
                steps.append(step)
                raise fantasia.TrialPruned

    study.optimize(objective, n_trials=4)
    trials = study.trials
    assert [t.state.value for t in trials] == ["COMPLETED"] * 3 + ["PRUNED"]
    assert trials[0].value == pytest.approx(0.2)  # the last report
    assert trials[3].value == pytest.approx(9 + 1 / steps[0])
    assert trials[3].reason
    assert study.curve(trials[0]) == {s: pytest.approx(0.1 + 1 / s) for s in range(1, 11)}
    assert list(study.curve(3, "double").values()) == list(range(2, 21, 2))
    assert list(study.curve(trials[3])) == list(range(1, steps[0] + 1))


def test_a_stopped_trial_is_finished_after_the_end(storage: Path) -> None:
    study = create(storage, max_trials=3, early_stopping=fantasia.EarlyStopping("threshold", {"upper": 5}))
    begun: list[float] = []

    def objective(trial: Trial) -> float:
        begun.append(trial.params["x"])
        trial.report(9.0 if len(begun) == 2 else 1.0, step=1)
        if trial.should_prune():
            raise fantasia.TrialPruned
        return float(trial.params["x"])

    study.optimize(objective)
    assert [t.state.value for t in study.trials] == ["COMPLETED", "PRUNED", "COMPLETED"]
    with pytest.raises(fantasia.PreconditionError, match="the study has ended"):
        study.enqueue_trial({"x": 1.0})
    with pytest.raises(fantasia.NotFoundError, match="no trial 0; the first one is 1"):
        study.continue_trial(0)
    assert study.continue_trial(study.get_trial(2)).number == 4
    with pytest.raises(fantasia.PreconditionError, match="trial 4 continues trial 2 already"):
        study.continue_trial(2)
    study.optimize(objective)
    assert [t.state.value for t in study.trials] == ["COMPLETED", "PRUNED", "COMPLETED", "COMPLETED"]
    assert len(begun) == 4
    assert begun[3] == begun[1]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_trial_that_diverges_is_pruned(storage: Path, value: float) -> None:
    study = create(storage, early_stopping=fantasia.EarlyStopping("threshold", {"upper": 100}))

    def objective(trial: Trial) -> float:
        trial.report(1, step=1)
        assert not trial.should_prune()
        trial.report(value, step=2)
        assert trial.should_prune()
        raise fantasia.TrialPruned

    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    assert (trial.state.value, trial.value) == ("PRUNED", None)
    assert trial.reason == "its value at step 2 is NaN or infinite"
    assert study.curve(trial) == {1: 1}


def test_pictures_are_those_of_the_server(storage: Path) -> None:
    study = create(storage)
    study.optimize(lambda trial: (trial.params["x"] - 2) ** 2, n_trials=25, n_jobs=4)
    picture = study.picture("history", width=400)
    svg = ElementTree.fromstring(picture)
    assert svg.get("width") == "400"
    drawn = {
        int(e.get("data-trial", 0)): float(e.get("data-y", "nan")) for e in svg.iter() if e.get("data-trial")
    }
    assert drawn == {t.number: t.value for t in study.trials}
    assert picture._repr_svg_() == picture
    shown = study._repr_html_()
    assert shown is not None
    page = f"{study._transport.url}/ui/{study._id}"
    assert shown.startswith("<table>")
    assert f'href="{page}"' in shown
    assert shown.rstrip().endswith("</svg>")
    assert f'href="{page}/trials/1"' in study.get_trial(1)._repr_html_()
    for link in (study.link, study.get_trial(1).link):
        with urllib.request.urlopen(link) as answer:
            assert study.name in answer.read().decode()
    assert "share of evaluations" in study.picture("edf")
    assert "x" in study.picture("slice", "x")
    assert "expected by the model" in study.picture("dependence", "x")
    for arguments, problem in {
        ("histogram",): "picture: expected one of history, edf, front, .*, got 'histogram'",
        ("slice",): "picture 'slice': expected 1 names of parameters, got 0",
        ("slice", "y"): "parameter: expected one of x, got 'y'",
    }.items():
        with pytest.raises(ValueError, match=problem):
            study.picture(*arguments)
    with pytest.raises(
        fantasia.ServerError, match='width is "10"; want a whole number of pixels from 280 to 2000'
    ):
        study.picture(width=10)


def test_take_best_counts_the_best_report(storage: Path) -> None:
    study = create(storage, take="best")

    def objective(trial: Trial) -> None:
        for value in (3.0, 1.0, 2.0):
            trial.report(value)

    study.optimize(objective, n_trials=1)
    assert study.best_value == 1.0


def test_own_pruning_without_a_rule_is_a_failure(storage: Path) -> None:
    study = create(storage)

    def objective(trial: Trial) -> float:
        if trial.number == 2:
            raise fantasia.TrialPruned
        return 1.0

    study.optimize(objective, n_trials=2)
    assert study.get_trial(2).reason == "raised TrialPruned, but should_prune was not True"


def test_goal_ends_the_study(storage: Path) -> None:
    study = create(storage, goal=1.0)
    study.optimize(lambda trial: 3.0 - trial.number, n_trials=10)
    assert len(study.trials) == 2
    assert study.state == "COMPLETED"
    with pytest.raises(fantasia.StudyEndedError, match="completed"):
        study.ask()


def test_budget_is_kept_if_it_was_given(storage: Path) -> None:
    study = create(storage, max_trials=3)
    study.optimize(square, n_trials=10)
    assert len(study.trials) == 3
    assert study.state == "COMPLETED"
    study.update(max_trials=4)
    study.optimize(square)
    assert len(study.trials) == 4


def test_options_of_a_study_that_exists_are_not_ignored_without_a_word(
    storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("march", "april"):
        create(storage, name=name).optimize(square, n_trials=5)
    first: dict[str, Any] = {
        "name": "again",
        "algorithm": fantasia.Algorithm("gp", {"cost": "cooled"}),
        "cost": "dollars",
        "max_cost": 10,
        "max_duration": datetime.timedelta(minutes=90),
        "max_trials": 20,
        "max_failed_trials": 3,
        "stop_gain": 0.1,
        "early_stopping": "median",
        "learn_from": ["march"],
        "constraints": ["x > -9"],
    }
    create(storage, **first)
    create(storage, **first, load_if_exists=True)
    create(storage, name="again", load_if_exists=True, algorithm="hebo", seed=3)
    assert "again" not in caplog.text
    changed: dict[str, Any] = {
        "algorithm": "tpe",
        "cost": "euros",
        "max_cost": 20,
        "max_duration": datetime.timedelta(minutes=91),
        "max_trials": 30,
        "max_failed_trials": 4,
        "stop_gain": 0.2,
        "early_stopping": fantasia.EarlyStopping("median", {"minSteps": 2}),
        "learn_from": ["march", "april"],
        "constraints": ["x > -8"],
    }
    for option, value in changed.items():
        caplog.clear()
        needed = {"cost": "dollars"} if option == "max_cost" else {}
        options = {"algorithm": "hebo", **needed, option: value, "name": "again", "load_if_exists": True}
        create(storage, **options)
        assert f"the study 'again' exists and keeps its own {option}: " in caplog.text


def test_the_other_budgets_are_changed(storage: Path) -> None:
    study = create(storage, cost="dollars", max_cost=10, algorithm="gp")

    def objective(trial: Trial) -> dict[str, float]:
        return {"error": trial.params["x"] ** 2, "dollars": 5.0}

    study.optimize(objective)
    assert study.reason == "10 of 10 dollars are spent (maxCost)"
    study.update(max_cost=20, max_duration=datetime.timedelta(minutes=5))
    study.optimize(objective)
    assert study.reason == "20 of 20 dollars are spent (maxCost)"
    study.update(max_cost=1000, stop_gain=1e9)
    study.optimize(objective)
    assert "(stopWhen.gain)" in study.reason
    assert len(study.trials) < 40
    study.update(stop_gain=0)
    assert study.state == "RUNNING"
    study.update(stop_gain=1e9, stop_gain_per="cost")
    assert study.state == "COMPLETED"
    with pytest.raises(fantasia.SpaceError, match="max_duration: expected a timedelta"):
        study.update(max_duration=600)  # type: ignore[arg-type]
    study.update(stop_gain=0)
    with pytest.raises(
        fantasia.SpaceError, match="stop_gain_per: expected stop_gain beside it, got only 'hour'"
    ):
        study.update(stop_gain_per="hour")


def test_a_budget_of_time_alone(storage: Path) -> None:
    study = create(storage, max_trials=None, max_duration=datetime.timedelta(seconds=2))
    ended: list[int] = []

    def objective(trial: fantasia.Trial) -> float:
        time.sleep(0.2)
        ended.append(trial.number)
        return float(trial.params["x"])

    study.optimize(objective)
    assert study.state == "COMPLETED"
    assert "maxDuration" in study.reason
    assert 1 <= len(ended) <= 10  # 2 s hold no more


def test_a_budget_of_cost(storage: Path) -> None:
    study = create(storage, cost="dollars", max_cost=10)

    def objective(trial: fantasia.Trial) -> dict[str, float]:
        trial.report({"error": 2.0, "dollars": 1.0})
        if trial.number == 2:
            raise fantasia.TrialPruned
        return {"error": 1.0, "dollars": 4.0}

    study.optimize(objective, n_trials=10)
    assert study.state == "COMPLETED"
    assert study.reason == "13 of 10 dollars are spent (maxCost)"
    assert {t.number: t.cost for t in study.trials if t.state.ended} == {1: 4, 2: 1, 3: 4, 4: 4}
    with pytest.raises(fantasia.SpaceError, match="stop_gain: -1 is not accepted"):
        create(storage, stop_gain=-1)
    with pytest.raises(fantasia.SpaceError, match='stop_gain_per: "day" is not accepted; want trials'):
        create(storage, stop_gain=0.1, stop_gain_per="day")
    with pytest.raises(
        fantasia.SpaceError, match="stop_gain_per: expected stop_gain beside it, got only 'hour'"
    ):
        create(storage, stop_gain_per="hour")
    with pytest.raises(fantasia.SpaceError, match=r"max_duration: expected a timedelta, .*got 600"):
        create(storage, max_duration=600)


def test_stops_when_more_trials_are_not_worth_their_time(storage: Path) -> None:
    study = create(storage, algorithm="gp", max_trials=60, stop_gain=1e9, stop_gain_per="hour")
    study.optimize(lambda trial: math.sin(trial.params["x"]))
    assert study.state == "COMPLETED"
    assert "an hour, which is not more than 1e+09 (stopWhen.gain)" in study.reason
    assert len(study.trials) < 30
    with pytest.raises(fantasia.SpaceError, match=r"max_cost: needs spec\.cost"):
        create(storage, max_cost=10)
    with pytest.raises(fantasia.SpaceError, match="max_cost: -1 is not accepted"):
        create(storage, cost="dollars", max_cost=-1)


def test_the_space_is_edited(storage: Path) -> None:
    study = create(
        storage,
        parameters={"x": Float(0, 10), "solver": fantasia.Categorical(["adam", "sgd"])},
        initial=[{"x": 9, "solver": "sgd"}, {"x": 2, "solver": "adam"}],
        max_trials=20,
    )
    study.optimize(lambda trial: 9 - trial.params["x"], n_trials=2)
    assert study.best_trial.number == 1
    late = study.ask()
    study.edit_space({"x": Float(0, 11), "solver": fantasia.Categorical(["adam", "lion"])})
    assert study.get_trial(1).params == {"x": 9.0, "solver": "sgd"}
    assert study.best_trial.number == 2
    study.tell(late, 0.5)
    study.optimize(lambda trial: 1.0, n_trials=5)
    assert all(t.params["solver"] in ("adam", "lion") for t in study.trials[3:])
    assert len(study.trials) == 8
    with pytest.raises(fantasia.SpaceError, match="expected one of x, solver, got 'y'"):
        study.edit_space({"y": Float(0, 5)})
    with pytest.raises(
        fantasia.PreconditionError, match=r"spec.parameters.x.scale was \"linear\" and is \"log\""
    ):
        study.edit_space({"x": Float(1, 5, scale="log")})


def test_labels_and_notes(storage: Path) -> None:
    study = create(storage, labels={"team": "vision", "try": "1"}, note="first")
    assert (study.labels, study.note) == ({"team": "vision", "try": "1"}, "first")
    study.update(labels={"try": "2", "team": None}, note="second")
    assert (study.labels, study.note) == ({"try": "2"}, "second")
    added = study.add_trial({"x": 1.0}, 1.0, labels={"from": "paper"}, note="table 2")
    assert (added.labels, added.note) == ({"from": "paper"}, "table 2")
    edited = study.edit_trial(added, labels={"from": None, "checked": "yes"}, note="")
    assert (edited.labels, edited.note) == ({"checked": "yes"}, "")
    assert study.enqueue_trial({"x": 2.0}, labels={"by": "hand"}).labels == {"by": "hand"}
    with pytest.raises(fantasia.FantasiaError, match='labels: "a b" is not a label'):
        study.edit_trial(1, labels={"a b": "c"})


def test_open_budget_grows(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fantasia_hpo.create._OPEN_BUDGET", 2)
    study = create(storage)
    study.optimize(square, n_trials=5)
    assert len(study.trials) == 5


def test_stop_and_timeout_and_callbacks(storage: Path) -> None:
    study = create(storage)
    seen = []

    def callback(study: fantasia.Study, trial: fantasia.FrozenTrial) -> None:
        seen.append(trial.number)
        if trial.number == 3:
            study.stop()

    study.optimize(square, callbacks=[callback])
    assert seen == [1, 2, 3]
    study.optimize(square, timeout=0)
    assert len(study.trials) == 3
    study.optimize(square, n_trials=0)
    assert len(study.trials) == 3


def test_callbacks_exception_ends_optimize(storage: Path) -> None:
    def callback(study: fantasia.Study, trial: fantasia.FrozenTrial) -> None:
        raise ZeroDivisionError

    for n_jobs in (1, 2):
        study = create(storage)
        with pytest.raises(ZeroDivisionError):
            study.optimize(square, n_trials=10, n_jobs=n_jobs, callbacks=[callback])


def test_ask_and_tell(storage: Path) -> None:
    study = create(storage)
    first, second = study.ask(), study.ask()
    assert first.number != second.number
    assert study.tell(second, 2.0).value == 2.0
    assert study.tell(second, 2.0).value == 2.0
    assert study.tell(first, {"error": 1.0, "accuracy": 0.5}).metrics == {"accuracy": 0.5}
    third = study.ask()
    assert study.tell(third, state="FAILED", reason="why").reason == "why"
    with pytest.raises(fantasia.FantasiaError, match="has no value"):
        study.tell(study.ask())
    with pytest.raises(fantasia.PreconditionError):
        study.tell(first, 5.0)


def test_released_trial_is_given_out_again(storage: Path) -> None:
    study = create(storage)
    trial = study.ask()
    study.release(trial, checkpoint="epoch 3")
    again = study.ask()
    assert (again.number, again.params, again.checkpoint) == (trial.number, trial.params, "epoch 3")


def test_interrupt_hands_trials_back(storage: Path) -> None:
    study = create(storage)

    def objective(trial: Trial) -> float:
        if trial.number == 2:
            raise KeyboardInterrupt
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, n_trials=5)
    study.optimize(lambda trial: 1.0, n_trials=1)
    assert [t.state.value for t in study.trials] == ["COMPLETED", "COMPLETED"]


@pytest.mark.parametrize("learns", [False, True])
def test_threads_call_optimize_at_once(storage: Path, learns: bool) -> None:
    study = create(storage, parameters=None) if learns else create(storage)
    seen: list[int] = []
    at_once = threading.Barrier(3, timeout=30)

    def objective(trial: Trial) -> float:
        if trial.number <= 3:
            at_once.wait()
        seen.append(trial.number)
        return trial.suggest_float("x", -10, 10) ** 2

    with ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(study.optimize, objective, n_trials=5) for _ in range(3)]
        for call in calls:
            call.result()
    assert sorted(seen) == list(range(1, 16))
    assert {t.state for t in study.trials} == {TrialState.COMPLETED}
    assert len(study.trials) == 15


def test_stop_ends_the_calls_of_all_threads(storage: Path) -> None:
    study = create(storage)
    enough = fantasia.MaxTrialsCallback(6)
    with ThreadPoolExecutor(2) as threads:
        for call in [threads.submit(study.optimize, square, callbacks=[enough]) for _ in range(2)]:
            call.result(timeout=60)
    assert 6 <= len(study.trials) <= 8


@pytest.mark.parametrize("jobs", [1, 2])
def test_optimize_in_an_objective_is_refused(storage: Path, jobs: int) -> None:
    study, other = create(storage), create(storage)

    def objective(trial: Trial) -> float:
        other.optimize(square, n_trials=1)
        with pytest.raises(fantasia.FantasiaError, match="another thread"):
            study.optimize(square, n_trials=1)
        return 1.0

    study.optimize(objective, n_trials=2, n_jobs=jobs)
    assert [t.state for t in study.trials] == [TrialState.COMPLETED] * 2
    assert len(other.trials) == 2


@pytest.mark.parametrize("states", [(TrialState.COMPLETE,), None])
def test_max_trials_callback_counts_as_optunas_does(storage: Path, states: Any) -> None:
    study = create(storage)

    def objective(trial: Trial) -> float:
        if trial.number == 2:
            raise ZeroDivisionError
        return square(trial)

    study.optimize(objective, n_trials=20, callbacks=[fantasia.MaxTrialsCallback(4, states=states)])
    assert len(study.trials) == (4 if states is None else 5)


def test_enqueue_and_add(storage: Path) -> None:
    study = create(storage)
    study.add_trial({"x": 2}, 0.0)
    study.enqueue_trial({"x": 5})
    study.optimize(square, n_trials=1)
    trials = study.trials
    assert [(t.params["x"], t.value, t.source) for t in trials] == [
        (2.0, 0.0, "added"),
        (5.0, 9.0, "requested"),
    ]
    with pytest.raises(fantasia.SpaceError, match="'x': expected a number from -10"):
        study.enqueue_trial({"x": 50})
    with pytest.raises(fantasia.SpaceError, match="expected the metric 'error'"):
        study.add_trial({"x": 2}, {"loss": 1.0})


def test_fidelity_promotes_the_best(storage: Path) -> None:
    space = {"x": Float(0, 10), "epochs": fantasia.Fidelity(1, 9)}
    study = create(storage, parameters=space, algorithm="random", max_trials=13)
    while len(study.trials) < 13:
        trial = study.ask()
        assert trial.checkpoint == (f"x = {trial.params['x']}" if trial.predecessor else "")
        value = trial.params["x"] + 1 / trial.params["epochs"]
        study.tell(trial, value, checkpoint=f"x = {trial.params['x']}")
    trials = {t.number: t for t in study.trials}
    promoted = [t for t in trials.values() if t.predecessor]
    assert promoted
    assert all(t.source == "promoted" for t in promoted)
    for t in promoted:
        before = trials[t.predecessor]
        assert (t.params["x"], t.rung) == (before.params["x"], before.rung + 1)
        assert t.params["epochs"] == 3 * before.params["epochs"]
    assert study.best_trial.rung == max(t.rung for t in trials.values())


def test_cancelled_trial_sees_it(storage: Path) -> None:
    study = create(storage)
    trial = study.ask()
    study.cancel_trial(trial, "not needed")
    trial.report(1.0)
    assert trial.should_prune()
    assert study.get_trial(trial.number).state is TrialState.CANCELLED


def test_constraints_and_problems(storage: Path) -> None:
    space = {"a": fantasia.Int(1, 100), "b": fantasia.Int(1, 100)}
    study = create(storage, parameters=space, constraints=["a * b <= 100"])
    study.optimize(lambda trial: float(trial.params["a"]), n_trials=10)
    assert all(t.params["a"] * t.params["b"] <= 100 for t in study.trials)
    with pytest.raises(fantasia.StudyFileError) as caught:
        create(storage, parameters={"lr=rate": Float(0, 1)}, algorithm="best", max_trials=0)
    text = str(caught.value)
    assert "parameters['lr=rate']" in text
    assert "algorithm: " in text
    assert "max_trials: " in text
    assert "spec" not in text


def test_resume_by_name(storage: Path) -> None:
    create(storage, name="kept").optimize(square, n_trials=3)
    with pytest.raises(fantasia.AlreadyExistsError, match="kept"):
        create(storage, name="kept")
    resumed = create(storage, name="kept", load_if_exists=True)
    resumed.optimize(square, n_trials=2)
    assert len(fantasia.load_study("kept", storage).trials) == 5
    with pytest.raises(fantasia.SpaceError, match=r"'kept' exists with other parameters \(x, y\)"):
        create(storage, name="kept", load_if_exists=True, parameters={"y": Float(0, 1)})
    assert "kept" in fantasia.study_names(storage)
    fantasia.delete_study("kept", storage)
    with pytest.raises(fantasia.NotFoundError):
        fantasia.load_study("kept", storage)


def test_jobs_run_at_once(storage: Path) -> None:
    barrier = threading.Barrier(3, timeout=30)

    def objective(trial: Trial) -> float:
        barrier.wait()
        return 1.0

    create(storage).optimize(objective, n_trials=6, n_jobs=3)


def test_dataframe(storage: Path) -> None:
    study = create(storage)
    study.optimize(square, n_trials=3)
    frame = study.trials_dataframe()
    assert list(frame["value"]) == [t.value for t in study.trials]
    assert list(frame["params_x"]) == [t.params["x"] for t in study.trials]


def test_attributes_of_a_study(storage: Path) -> None:
    study = fantasia.create_study(
        direction="minimize", parameters={"x": fantasia.Float(0, 1)}, storage=storage, max_trials=1
    )
    assert study.user_attrs == {}
    with ThreadPoolExecutor(8) as pool:  # none is lost, whoever is first
        list(pool.map(lambda i: study.set_user_attr(f"by {i}", [i, "é", None]), range(8)))
    study.optimize(lambda trial: 1.0, n_trials=1)
    study.update(note="seen")
    study.set_user_attr("by 0", None)
    again = fantasia.load_study(study.name, storage)
    assert again.user_attrs == {f"by {i}": [i, "é", None] for i in range(1, 8)}
    assert again.note == "seen"
    assert again.state == "COMPLETED"
    for key, value in [("", 1), ("x", object()), ("x", {(1, 2): 3})]:
        with pytest.raises(fantasia.SpaceError, match=r"key: expected a text|expected a number"):
            study.set_user_attr(key, value)
    with pytest.raises(fantasia.FantasiaError, match="at most 16384"):
        study.set_user_attr("large", "x" * 16384)
    assert "large" not in study.user_attrs


class TestLearnFrom:
    @staticmethod
    def bowl(trial: Trial) -> float:
        return (trial.suggest_float("x", -10, 10) - 3) ** 2

    def test_earlier_studies_are_where_the_search_begins(self, tmp_path: Path) -> None:
        march = create(tmp_path / "a", name="march", seed=2, direction="maximize")
        march.optimize(lambda t: -((t.suggest_float("x", -10, 10) - 3) ** 2), n_trials=12)
        april = create(tmp_path / "b", name="april", algorithm="hebo")
        april.optimize(self.bowl, n_trials=12)
        # `march` lies in another storage, and maximises; `april` is in the same one.
        learns = create(tmp_path / "b", name="may", algorithm="hebo", learn_from=["april", march])
        first = learns.ask()
        assert abs(first.params["x"] - 3) < 3
        (sent,) = _earlier.documents([march])
        assert [t["seconds"] for t in sent["trials"]] == [t.duration for t in march.trials]
        assert not any("cost" in t for t in sent["trials"])

    def test_names_the_option(self, tmp_path: Path) -> None:
        with pytest.raises(fantasia.StudyFileError, match=r"learn_from\[0\].study: .*no such study"):
            create(tmp_path, algorithm="hebo", learn_from=["march"])
        empty = create(tmp_path, name="empty")
        with pytest.raises(fantasia.SpaceError, match=r"learn_from\[1\].*no completed trial"):
            create(tmp_path, algorithm="hebo", learn_from=["empty", empty])
        with pytest.raises(fantasia.SpaceError, match=r"learn_from\[0\]: expected the name"):
            create(tmp_path, learn_from=[3])
        with pytest.raises(fantasia.StudyFileError, match="random does not learn"):
            create(tmp_path, learn_from=["empty"])
        with pytest.raises(fantasia.SpaceError, match=r"learn_from\[0\]: .*got the file 'march.csv'"):
            create(tmp_path, algorithm="hebo", learn_from=["march.csv"])
        short = create(tmp_path, name="short")
        short.optimize(self.bowl, n_trials=3)
        with pytest.raises(fantasia.StudyFileError, match=r"learn_from\[0\]: .*from 3 of its trials"):
            create(tmp_path, algorithm="hebo", learn_from=[short])

    def test_choices_may_be_any_objects(self, tmp_path: Path) -> None:
        space: dict[str, fantasia.parameters.Parameter] = {
            "x": Float(-10, 10),
            "by": fantasia.Categorical([None, len, (1, 2)]),
        }
        march = fantasia.create_study(
            name="march", storage=str(tmp_path), direction="minimize", parameters=space, seed=1
        )
        march.optimize(lambda t: (t.params["x"] - 3) ** 2 + (t.params["by"] is not len), n_trials=12)
        (sent,) = _earlier.documents([march])
        assert {t["parameters"]["by"] for t in sent["trials"]} <= {"None", str(len), "(1, 2)"}
        april = fantasia.create_study(
            storage=str(tmp_path), direction="minimize", parameters=space, seed=1, learn_from=[march]
        )
        assert abs(april.ask().params["x"] - 3) < 3


def test_made_names_do_not_meet() -> None:
    names = {_new_name() for _ in range(2000)}  # 16 random bits would meet 30 times
    assert len(names) == 2000
