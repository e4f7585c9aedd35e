"""Studies without declared parameters: the space is learned from what trials ask for."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Bool, Categorical, Fixed, Float, Int, Trial, TrialState, _server
from fantasia_hpo._declarations import Evidence, condition, merged, with_conditions

SAMPLERS = ["hebo", "gp", "tpe", "forest", "turbo", "cmaes", "random", "sobol", "bohb"]


def create(storage: Path, **options: Any) -> fantasia.Study:
    given: dict[str, Any] = {"algorithm": "random", "seed": 1, "direction": "minimize"}
    return fantasia.create_study(storage=storage, **{**given, **options})


def network(trial: Trial) -> float:
    """Suggest what the usual example of Optuna does: layers, and the options of a solver."""
    layers = trial.suggest_int("n_layers", 1, 3)
    units = [trial.suggest_int(f"units_{i}", 4, 128, log=True) for i in range(layers)]
    solver = trial.suggest_categorical("solver", ["adam", "sgd"])
    momentum = trial.suggest_float("momentum", 0, 0.99) if solver == "sgd" else 0.9
    return sum(abs(u - 32) / 32 for u in units) / layers + abs(momentum - 0.9) + abs(layers - 2)


def test_space_and_conditions_are_learned(storage: Path) -> None:
    study = create(storage)
    assert study.parameters == {}
    study.optimize(network, n_trials=30)
    assert dict(study.space) == {
        "n_layers": Int(1, 3),
        "units_0": Int(4, 128, "log"),
        "units_1": Int(4, 128, "log", when={"n_layers": [2, 3]}),
        "units_2": Int(4, 128, "log", when={"n_layers": [3]}),
        "solver": Categorical(("adam", "sgd")),
        "momentum": Float(0, 0.99, when={"solver": ["sgd"]}),
    }
    for trial in study.trials:
        assert trial.state is TrialState.COMPLETED
        assert ("momentum" in trial.params) == (trial.params["solver"] == "sgd")
        assert sum(name.startswith("units_") for name in trial.params) == trial.params["n_layers"]
    frozen = fantasia.create_study(
        storage=storage, direction="minimize", parameters=eval(repr(study.space), {"fantasia": fantasia})
    )
    assert frozen.parameters == dict(study.space)
    assert fantasia.load_study(study.name, storage).space == study.space


def test_learned_space_is_searched(storage: Path) -> None:
    study = create(storage, algorithm="tpe")
    study.optimize(network, n_trials=80)
    later = study.trials[40:]
    assert {t.source for t in later} <= {
        "model",
        "random",
        "design",
        "fallback",
    }
    # The median of 40 random points is 1.69, and above 1.39 with a probability of 99% (100,000 draws).
    assert sorted(t.value or 0 for t in later)[20] < 1.2


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("algorithm", SAMPLERS)
def test_same_seed_same_trials(storage: Path, algorithm: str, declared: bool) -> None:
    """Also where the call was interrupted, and where another object of the study goes on."""
    space: dict[str, Any] = {"x": Float(-3, 3), "n": Int(1, 9), "k": Categorical(("a", "b", "c"))}

    def objective(trial: Trial) -> float:
        kind = trial.suggest_categorical("k", ["a", "b", "c"])
        value: float = trial.suggest_float("x", -3, 3) ** 2 + trial.suggest_int("n", 1, 9)
        return value + float(kind == "c")

    def interrupted(trial: Trial) -> float:
        value = objective(trial)
        if trial.number == 9:
            raise KeyboardInterrupt
        return value

    options: dict[str, Any] = {"algorithm": algorithm, "seed": 7, "parameters": space if declared else None}
    found = []
    for stops in (False, False, True):
        study = create(storage, **options)
        if stops:
            with pytest.raises(KeyboardInterrupt):
                study.optimize(interrupted, n_trials=14)
            study = create(storage, **options, name=study.name, load_if_exists=True)
            study.optimize(objective, n_trials=6)
        else:
            study.optimize(objective, n_trials=14)
        found.append([trial.params for trial in study.trials])
    assert found[0] == found[1]
    assert found[0] == found[2]


def test_trial_asks_as_optunas_does(storage: Path) -> None:
    study = create(storage)
    trial = study.ask()
    assert trial.params == {}
    x = trial.suggest_float("x", -1, 1)
    assert trial.suggest_float("x", -1, 1) == x == trial.suggest_float("x")
    assert trial.suggest_categorical("only", [None]) is None
    assert trial.suggest_int("same", 3, 3) == 3
    objects = [None, (1, 2), len]
    assert trial.suggest_categorical("object", objects) in objects
    with pytest.raises(fantasia.DeclarationError, match="declared twice in trial 1"):
        trial.suggest_float("x", -2, 1)
    with pytest.raises(fantasia.DeclarationError, match="'y': expected its range or its choices, got none"):
        trial.suggest_float("y")
    record = study.tell(trial, x)
    assert record.params == trial.params
    with pytest.raises(fantasia.DeclarationError, match=r"'x' was declared as Float.* before, .* as Int"):
        study.ask().suggest_int("x", 0, 1)


def test_trials_are_added_before_the_first(storage: Path) -> None:
    """What is known of a fresh study is what its trials will ask for: nothing ends early or is lost."""

    def objective(trial: Trial) -> float:
        solver = trial.suggest_categorical("solver", ["adam", "sgd"])
        momentum = trial.suggest_float("momentum", 0, 0.9) if solver == "sgd" else 0.0
        return trial.suggest_float("rate", 1e-4, 1, log=True) + momentum

    study = create(storage, algorithm=fantasia.Algorithm("hebo", {"noise": "no"}))
    with pytest.raises(
        fantasia.SpaceError, match=r"'rate': no trial .* parameters=\{'rate': fantasia.Float\("
    ):
        study.add_trial({"rate": 0.1}, 0.1)
    assert study.trials == []
    parameters: dict[str, fantasia.Parameter] = {
        "solver": Categorical(("adam", "sgd")),
        "rate": Float(1e-3, 1e-1, scale="log"),
        "momentum": Float(0, 0.9),
    }
    study.add_trial({"solver": "adam", "rate": 0.1}, 0.1, parameters=parameters)
    study.add_trial({"solver": "sgd", "rate": 0.01, "momentum": 0.5}, 0.51, parameters=parameters)
    again = fantasia.load_study(study.name, storage)  # another process knows as much
    again.add_trial({"solver": "sgd", "rate": 0.001, "momentum": 0.0}, 0.001)
    with pytest.raises(fantasia.SpaceError, match=r"'rate': expected a number from 0\.001 to 0\.1"):
        again.add_trial({"solver": "adam", "rate": 0.5}, 0.5)
    study.optimize(objective, n_trials=20)
    assert dict(study.space) == {
        "solver": Categorical(("adam", "sgd")),
        "rate": Float(1e-4, 1, scale="log"),
        "momentum": Float(0, 0.9, when={"solver": ["sgd"]}),
    }
    assert [t.source for t in study.trials[:3]] == ["added"] * 3
    assert len(study.trials) == 23
    assert len({tuple(t.params.items()) for t in study.trials}) == 23
    assert study.best_value <= 0.001


def test_added_trial_without_a_parameter_of_others_is_a_condition(storage: Path) -> None:
    study = create(storage)
    study.add_trial({"kind": "a"}, 1.0, parameters={"kind": Categorical(("a", "b"))})
    study.add_trial({"kind": "b", "depth": 3}, 2.0, parameters={"depth": Int(1, 9)})
    assert study.space["depth"] == Int(1, 9, when={"kind": ["b"]})
    with pytest.raises(fantasia.DeclarationError, match="'depth' was declared as Int"):
        study.add_trial({"kind": "b", "depth": 3}, 2.0, parameters={"depth": Categorical((1, 3))})
    with pytest.raises(fantasia.DeclarationError, match="'args'"):
        study.add_trial({"kind": "a", "args": 1}, 1.0, parameters={"args": Int(1, 9)})
    declared = create(storage, parameters={"x": Float(0, 1)})
    with pytest.raises(fantasia.SpaceError, match="parameters: expected none"):
        declared.add_trial({"x": 0.5}, 1.0, parameters={"x": Float(0, 1)})


@pytest.mark.parametrize("name", ["args", 65 * "x", "", "a=b", "-x", "a "])
def test_names_of_parameters_are_refused_by_name(storage: Path, name: str) -> None:
    refusal = f"^parameters?.{re.escape(repr(name))}"
    with pytest.raises(fantasia.DeclarationError, match=refusal):
        create(storage).ask().suggest_float(name, 0, 1)
    with pytest.raises(fantasia.StudyFileError, match=refusal):
        create(storage, parameters={name: Float(0, 1)})


def test_names_of_studies_of_optuna(storage: Path) -> None:
    study = create(storage, study_name="Churn_model.v2 final")
    assert study.name == "churn-model-v2-final"
    assert fantasia.load_study(study_name="Churn_model.v2 final", storage=storage).name == study.name
    study.optimize(lambda trial: 1.0, n_trials=1)
    assert [t.number for t in study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])] == [1]
    assert study.trials[0].state == TrialState.COMPLETE == TrialState("COMPLETE")
    assert TrialState["FAIL"] is TrialState.FAILED
    assert TrialState.COMPLETE.is_finished()
    fantasia.delete_study("Churn_model.v2 final", storage)


def test_ranges_widen(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = create(storage)
    for low, high, choices in ((0, 1, ["a"]), (0, 5, ["a", "b"]), (-1, 1, ["c"])):
        trial = study.ask()
        value = trial.suggest_float("x", low, high)
        assert low <= value <= high
        assert trial.suggest_categorical("c", choices) in choices
        study.tell(trial, value)
    assert dict(study.space) == {"x": Float(-1, 5), "c": Categorical(("a", "b", "c"))}
    assert "parameter 'x' was declared as Float(low=0.0, high=1.0" in caplog.text
    assert all(t.state is TrialState.COMPLETED for t in study.trials)


def test_contradiction_mends_a_condition(storage: Path) -> None:
    study = create(storage)

    def run(**chosen: Any) -> None:
        study.enqueue_trial(chosen)
        trial = study.ask()
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        if kind == "a" or (kind == "c" and trial.suggest_categorical("deep", [False, True])):
            trial.suggest_float("rate", 0, 1)
        study.tell(trial, 1.0)

    run(kind="b")
    run(kind="a")
    assert study.space["rate"] == Float(0, 1, when={"kind": ["a"]})
    run(kind="c", deep=False)
    assert study.space["rate"] == Float(0, 1, when={"kind": ["a"]})
    run(kind="c", deep=True)
    assert study.space["rate"].when == {"kind": ["a", "c"]}  # no condition fits all: this fits most
    assert [t.params["kind"] for t in study.trials] == ["b", "a", "c", "c"]
    assert study.trials[3].params["deep"] is True


def test_enqueued_points_of_unknown_parameters_come_first(storage: Path) -> None:
    study = create(storage)
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 0.75, "c": "b"})

    def objective(trial: Trial) -> float:
        trial.suggest_categorical("c", ["a", "b"])
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=3)
    assert [t.value for t in study.trials[:2]] == [0.25, 0.75]
    assert study.trials[1].params["c"] == "b"
    study.enqueue_trial({"x": 0.5})
    study.optimize(objective, n_trials=1)
    assert study.trials[-1].value == 0.5


def test_failed_trials_are_no_evidence_of_what_is_absent(storage: Path) -> None:
    study = create(storage, max_failed_trials=50)

    def objective(trial: Trial) -> float:
        trial.suggest_categorical("c", ["a", "b"])
        if trial.number % 3 == 2:
            raise ValueError
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=12)
    assert study.space == {"c": Categorical(("a", "b")), "x": Float(0, 1)}
    assert len(study.get_trials([TrialState.FAILED])) == 4


def test_client_says_once_how_trials_are_pruned(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Trial) -> float:
        trial.report(1.0, 1)
        assert not trial.should_prune()
        return trial.suggest_float("x", 0, 1)

    create(storage).optimize(objective, n_trials=4)
    assert caplog.text.count("create_study(pruner=") == 1
    caplog.clear()
    create(storage, early_stopping="median").optimize(objective, n_trials=1)
    assert "pruner=" not in caplog.text


def test_branch_that_only_failed_is_not_the_end(storage: Path) -> None:
    for noise in ("auto", "no"):
        study = create(storage, algorithm=fantasia.Algorithm("hebo", {"noise": noise}))
        cuda = 0

        def objective(trial: Trial) -> float:
            nonlocal cuda
            if trial.suggest_categorical("device", ["cpu", "cuda"]) == "cpu":
                return 1.0
            cuda += 1
            if cuda < 3:
                raise RuntimeError("out of memory")
            return trial.suggest_float("lr", 0, 1)

        study.optimize(objective, n_trials=25)
        assert len(study.trials) == 25
        assert dict(study.space) == {
            "device": Categorical(("cpu", "cuda")),
            "lr": Float(0, 1, when={"device": ["cuda"]}),
        }
        assert study.best_params["device"] == "cuda"


def test_used_up_space_is_evaluated_again(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: Trial) -> float:
        return trial.suggest_int("n", 1, 3) + trial.number / 100

    for algorithm in SAMPLERS:
        study = create(storage, algorithm=algorithm)
        study.optimize(objective, n_trials=10, n_jobs=2)
        completed = study.get_trials([TrialState.COMPLETED])
        assert len(completed) == 10, algorithm
        assert {t.params["n"] for t in completed} == {1, 2, 3}
    caplog.clear()
    study = create(storage, algorithm=fantasia.Algorithm("hebo", {"noise": "no"}))
    study.optimize(objective, n_trials=10)
    assert len(study.trials) == 3
    assert "the search space is exhausted: every point has been evaluated" in caplog.text
    assert caplog.records[-1].levelname == "WARNING"


SCRIPT = """
import sys
import fantasia_hpo as fantasia

study = fantasia.create_study(
    name="together", storage=sys.argv[1], direction="minimize", load_if_exists=True, algorithm="random"
)

def objective(trial):
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    value = trial.suggest_float(f"of_{kind}", 0, 1)
    if trial.suggest_categorical("more", [False, True]):
        value += trial.suggest_int("extra", 1, 9)
    return value

study.optimize(objective, n_trials=25, n_jobs=2)
"""


def test_processes_converge_on_one_space(storage: Path) -> None:
    create(storage, name="together")
    command = [sys.executable, "-c", SCRIPT, str(storage)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        assert process.wait(120) == 0, process.communicate()[1][-2000:]
    study = fantasia.load_study("together", storage)
    assert {n: p.when for n, p in study.space.items()} == {
        "kind": None,
        "more": None,
        "of_a": {"kind": ["a"]},
        "of_b": {"kind": ["b"]},
        "of_c": {"kind": ["c"]},
        "extra": {"more": [True]},
    }
    trials = study.trials
    assert len(trials) == 75
    assert all(t.state is TrialState.COMPLETED for t in trials)
    assert all(set(t.params) >= {"kind", "more", f"of_{t.params['kind']}"} for t in trials)


def test_replay_repeats_the_suggestions(storage: Path, tmp_path: Path, program: str) -> None:
    study = create(tmp_path, name="replayed", algorithm="tpe")
    study.optimize(network, n_trials=15)
    _server.close_servers()
    command = [program, "replay", "replayed", "--state", str(tmp_path / "_server")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("known", "declared", "both"),
    [
        (Float(0, 1), Float(0.5, 2), Float(0, 2)),
        (Int(1, 3), Fixed(7), Int(1, 7)),
        (Fixed(0.5), Float(1, 2), Float(0.5, 2)),
        (Fixed("a"), Fixed("b"), Categorical(("a", "b"))),
        (Fixed("z"), Categorical(("a", "b")), Categorical(("z", "a", "b"))),
        (Categorical(("a", "b")), Fixed("c"), Categorical(("a", "b", "c"))),
        (Float(0, 1, when={"c": ["a"]}), Float(0, 3), Float(0, 3, when={"c": ["a"]})),
        (Float(0, 1), Int(0, 1), None),
        (Float(1, 2), Float(1, 2, "log"), None),
        (Float(0, 1), Float(0, 1, step=0.5), None),
        (Float(0, 1), Categorical(("a", "b")), None),
    ],
)
def test_declarations_of_one_parameter(known: Any, declared: Any, both: Any) -> None:
    if both is None:
        with pytest.raises(fantasia.DeclarationError, match="before, and is declared as"):
            merged("p", known, declared)
    else:
        assert merged("p", known, declared) == both


def evidence(*points: dict[str, Any]) -> list[Evidence]:
    return [Evidence(point, whole=True) for point in points]


def test_conditions_of_two_parameters() -> None:
    space: dict[str, fantasia.Parameter] = {"a": Bool(), "b": Categorical(("x", "y", "z"))}
    seen = evidence(
        {"a": True, "b": "x", "p": 1},
        {"a": False, "b": "x"},
        {"a": True, "b": "y"},
        {"a": True, "b": "z", "p": 1},
    )
    assert condition("p", space, seen) == {"a": [True], "b": ["x", "z"]}
    assert condition("p", space, seen[:1]) is None


def test_learned_conditions_are_those_of_a_random_program() -> None:
    rng = random.Random(7)
    for _ in range(30):
        layers, kinds = rng.randint(2, 5), ["a", "b", "c", "d"]
        chosen = set(rng.sample(kinds, rng.randint(1, 3)))
        points = []
        for _ in range(400):
            point: dict[str, Any] = {
                "n": rng.randint(1, layers),
                "kind": rng.choice(kinds),
                "flag": rng.random() < 0.5,
            }
            point |= {f"u{i}": rng.random() for i in range(point["n"])}
            if point["kind"] in chosen and point["flag"]:
                point["deep"] = rng.random()
            points.append(point)
        space: dict[str, fantasia.Parameter] = {
            "n": Int(1, layers),
            "kind": Categorical(kinds),
            "flag": Bool(),
        }
        space |= {f"u{i}": Float(0, 1) for i in range(layers)} | {"deep": Float(0, 1)}
        learned = with_conditions(space, evidence(*points))
        assert learned["u0"].when is None
        for i in range(1, layers):
            assert learned[f"u{i}"].when == {"n": list(range(i + 1, layers + 1))}
        assert learned["deep"].when == {"flag": [True], "kind": [k for k in kinds if k in chosen]}
