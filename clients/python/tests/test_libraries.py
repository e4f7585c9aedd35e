"""The client beside Optuna, scikit-learn, XGBoost, LightGBM and asyncio, each of them real."""

from __future__ import annotations

import asyncio
import math
import pickle
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Categorical, EarlyStopping, Float, TrialState, aio

pytestmark = pytest.mark.slow


def study(storage: Path, **options: Any) -> fantasia.Study:
    given: dict[str, Any] = {
        "storage": storage,
        "direction": "minimize",
        "parameters": {"x": Float(-10, 10), "y": Float(1e-4, 1e-1, scale="log")},
        "algorithm": "random",
        "seed": 1,
    }
    return fantasia.create_study(**{**given, **options})


def test_asyncio(storage: Path) -> None:
    async def main() -> tuple[int, int, float]:
        running = most = 0

        async def objective(trial: fantasia.Trial) -> float:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.05)
            running -= 1
            return abs(float(trial.params["x"]))

        made = await aio.create_study(
            storage=storage, direction="minimize", parameters={"x": Float(-1, 1)}, algorithm="random"
        )
        await made.optimize(objective, n_trials=8, n_jobs=4)
        best = await made.best_trial()
        assert best.value is not None
        return len(await made.trials()), most, best.value

    ended, most, best = asyncio.run(main())
    assert (ended, most) == (8, 4)
    assert 0 <= best < 1


def test_asyncio_has_all_of_a_study(storage: Path) -> None:
    def public(thing: Any) -> set[str]:
        return {name for name in dir(thing) if not name.startswith("_")}

    async def main() -> None:
        made = await aio.create_study(
            storage=storage, direction="minimize", parameters={"x": Float(-1, 1)}, algorithm="random"
        )
        assert public(made.study) <= public(made)
        await made.enqueue_trial({"x": 0.5})
        trial = await made.ask()
        await made.report(trial, 0.25, 1)
        await made.tell(trial, 0.25)
        assert (await made.best_value(), await made.best_params()) == (0.25, {"x": 0.5})
        assert [t.number for t in await made.best_trials()] == [1]
        assert await made.curve(1) == {1: 0.25}
        await made.update(note="over", labels={"a": "b"})
        assert (await made.note(), await made.labels()) == ("over", {"a": "b"})
        await made.end("enough")
        assert (await made.state(), await made.reason()) == ("STOPPED", "enough")

    asyncio.run(main())


def test_search_of_scikit_learn(storage: Path) -> None:
    from sklearn.base import clone
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    from fantasia_hpo.sklearn import FantasiaSearchCV

    x, y = load_iris(return_X_y=True)
    search = FantasiaSearchCV(
        SVC(),
        {"C": Float(1e-3, 1e3, scale="log"), "kernel": ["rbf", "linear"], "cache_size": [100]},
        n_iter=8,
        seed=1,
        storage=storage,
        cv=3,
    )
    clone(search).get_params()
    search.fit(x, y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_params_["cache_size"] == 100
    own = cross_val_score(SVC(**search.best_params_), x, y, cv=3).mean()
    assert math.isclose(search.best_score_, own)
    assert [t.value for t in search.study_.trials] == pytest.approx(search.cv_results_["mean_test_score"])
    assert search.score(x, y) > 0.9


def test_search_of_scikit_learn_names_what_is_accepted(storage: Path) -> None:
    from sklearn.datasets import load_iris
    from sklearn.svm import SVC

    from fantasia_hpo.sklearn import FantasiaSearchCV

    x, y = load_iris(return_X_y=True)
    with pytest.raises(fantasia.SpaceError, match=r"parameters\['C'\]: expected a parameter .* got 3"):
        FantasiaSearchCV(SVC(), {"C": 3}, storage=storage).fit(x, y)


def test_sampler_of_optuna(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -10, 10)
        kind = trial.suggest_categorical("kind", [None, "a", 3])
        n = trial.suggest_int("n", 1, 64, log=True)
        if trial.number == 3:
            raise optuna.TrialPruned
        return (x - 2) ** 2 + (kind is not None) + abs(n - 8) / 8

    sampler = FantasiaSampler(storage=storage, seed=1)
    moved = optuna.create_study(sampler=sampler)
    moved.enqueue_trial({"x": 1.0, "kind": "a", "n": 4})
    moved.optimize(objective, n_trials=30)
    values = [t.value for t in moved.get_trials(states=(optuna.trial.TrialState.COMPLETE,))]
    assert len(values) == 29
    assert sampler.study is not None
    told = [t.value for t in sampler.study.get_trials([TrialState.COMPLETED])]
    assert sorted(told) == pytest.approx(sorted(values))  # type: ignore[type-var]
    # Random search has a median of about 1.5 after 30 trials here, 0.33 in the best twentieth.
    assert moved.best_value < 0.33


def test_sampler_of_optuna_searches_conditional_parameters(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["linear", "tree"])
        if kind == "linear":
            return 1 + abs(trial.suggest_float("penalty", 1e-4, 1, log=True) - 0.1)
        depth = trial.suggest_int("depth", 1, 3)
        return sum(abs(trial.suggest_float(f"rate_{i}", 0, 1) - 0.3) for i in range(depth)) / depth

    earlier = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    earlier.optimize(objective, n_trials=8)
    sampler = FantasiaSampler(storage=storage, seed=1)
    moved = optuna.create_study(sampler=sampler)
    moved.add_trials(earlier.trials)
    moved.optimize(objective, n_trials=30)
    assert sampler.study is not None
    assert {n: p.when for n, p in sampler.study.space.items()} == {
        "kind": None,
        "penalty": {"kind": ["linear"]},
        "depth": {"kind": ["tree"]},
        "rate_0": {"kind": ["tree"]},
        "rate_1": {"depth": [2, 3]},
        "rate_2": {"depth": [3]},
    }
    trials = sampler.study.trials
    assert [t.params for t in trials] == [t.params for t in moved.trials]
    assert [t.value for t in trials] == pytest.approx([t.value for t in moved.trials])
    assert {"model"} <= {t.source for t in trials[20:]}
    # The best of 38 random points is below 0.01 with a probability of 12% (10,000 draws).
    assert moved.best_value < 0.01


def test_sampler_of_optuna_searches_several_objectives(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler, to_optuna

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if trial.number == 9:
            raise optuna.TrialPruned
        return x - y, x + y  # the front has y = 0

    ways: list[Literal["minimize", "maximize"]] = ["maximize", "minimize"]
    earlier = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), directions=ways)
    earlier.optimize(objective, n_trials=6)
    sampler = FantasiaSampler(storage=storage, seed=1)
    moved = optuna.create_study(sampler=sampler, directions=ways)
    moved.add_trials(earlier.trials)
    moved.optimize(objective, n_trials=24)
    told = sampler.study
    assert told is not None
    assert told.directions == ways
    assert [t.values for t in told.trials] == [t.values for t in moved.trials]
    assert told.get_trial(10).state is TrialState.FAILED
    assert [t.number for t in told.best_trials] == [t.number + 1 for t in moved.best_trials]
    # A random point is within 0.2 of the front with a probability of 20%.
    assert sum(t.params["y"] < 0.2 for t in moved.trials[10:]) > 8
    copy = to_optuna(told)
    assert [t.values for t in copy.best_trials] == [t.values for t in moved.best_trials]
    assert copy.metric_names == ["values_0", "values_1"]
    refused = FantasiaSampler(storage=storage, algorithm="cmaes")
    with pytest.raises(fantasia.SpaceError, match="cmaes takes one objective: for several use hebo, gp"):
        optuna.create_study(sampler=refused, directions=ways).optimize(objective, n_trials=1)


@pytest.mark.parametrize("way", ["set_constraint", "constraints_func"])
def test_sampler_of_optuna_meets_constraints(storage: Path, way: str) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler, to_optuna

    def constraints(params: dict[str, Any]) -> tuple[float, float]:
        return 0.75 - params["x"], params["y"] - 0.5  # within both is an eighth of the space

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if way == "set_constraint":
            for name, value in zip(("least x", "size"), constraints(trial.params), strict=True):
                trial.set_constraint(name, value)
        return x - y

    options: dict[str, Any] = {}
    names = ["constraints_least_x_b05cb0df", "constraints_size"]
    if way == "constraints_func":
        options = {"constraints_func": lambda trial: constraints(trial.params)}
        names = ["constraints_0", "constraints_1"]
    earlier = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    earlier.optimize(objective, n_trials=4)
    sampler = FantasiaSampler(storage=storage, seed=1, **options)
    moved = optuna.create_study(sampler=sampler)
    moved.add_trials(earlier.trials)
    moved.optimize(objective, n_trials=26)
    told = sampler.study
    assert told is not None
    assert told.limits == [fantasia.Limit(name, max=0) for name in names]
    for mine, theirs in zip(told.trials, moved.trials, strict=True):
        known = list(theirs.constraints.values()) or [math.nan] * 2  # the function came with the sampler
        np.testing.assert_equal([mine.metrics.get(name, math.nan) for name in names], known)
        assert len(mine.exceeded) == sum(not c <= 0 for c in known)
    within = [t for t in moved.trials[4:] if max(t.constraints.values()) <= 0]
    assert told.best_value == min(t.value for t in within if t.value is not None)
    # Random points are within both 2.75 times of 22, and at least 8 times with a probability of 0.4%.
    assert sum(t.number >= 8 for t in within) >= 8
    assert told.best_value < 0.3  # the least value within both is 0.25
    copy = to_optuna(told)
    assert (copy.best_value, copy.best_params) == (told.best_value, told.best_params)
    assert list(copy.trials[4].constraints.values()) == list(moved.trials[4].constraints.values())
    if way == "constraints_func":
        assert [t.constraints for t in copy.trials[4:]] == [t.constraints for t in moved.trials[4:]]
        assert copy.trials[0].constraints == {"0": math.inf, "1": math.inf}


def test_constraints_of_optuna_that_some_trials_lack(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        if trial.number != 1:
            trial.set_constraint("size", {0: -math.inf, 2: math.inf}.get(trial.number, -1.0))
        if trial.number == 3:
            raise ValueError
        return x, -x

    sampler = FantasiaSampler(storage=storage, algorithm="random", seed=1)
    moved = optuna.create_study(sampler=sampler, directions=["minimize", "minimize"])
    moved.optimize(objective, n_trials=5, catch=ValueError)
    assert sampler.study is not None
    trials = sampler.study.trials
    assert [bool(t.exceeded) for t in trials] == [False, True, True, False, False]
    assert [t.state.value for t in trials] == [*["COMPLETED"] * 3, "FAILED", "COMPLETED"]
    assert [t.number for t in sampler.study.best_trials] == [1, 5]


def test_constraints_of_optuna_that_cannot_be_told(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler

    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("size", 1)
        return trial.suggest_float("x", 0, 1)

    def fails(trial: optuna.trial.FrozenTrial) -> list[float]:
        raise KeyError("size")

    for options, error, message in (
        ({"algorithm": "cmaes"}, fantasia.StudyFileError, "cmaes takes no limits: use hebo, gp"),
        ({"constraints_func": fails}, KeyError, "size"),
        ({"constraints_func": lambda trial: [math.nan]}, ValueError, "cannot be NaN"),
    ):
        sampler = FantasiaSampler(storage=storage, **options)
        with pytest.raises(error, match=message):
            optuna.create_study(sampler=sampler).optimize(objective, n_trials=2)
        assert sampler.study is not None
        assert [t.state for t in sampler.study.trials] == [TrialState.CANCELLED]


def test_limits_as_constraints_of_optuna(storage: Path) -> None:
    from fantasia_hpo.optuna import to_optuna

    made = study(
        storage, limits=[fantasia.Limit("memory", max=20), {"metric": "recall", "min": 0.5}], metric="error"
    )
    for error, memory, recall in ((1, 30, 0.75), (2, 20, math.nan), (3, 5, 0.5)):
        made.tell(made.ask(), {"error": error, "memory": memory, "recall": recall})
    copy = to_optuna(made)
    assert [t.constraints for t in copy.trials] == [
        {"memory <= 20": 10, "recall >= 0.5": -0.25},
        {"memory <= 20": 0, "recall >= 0.5": math.inf},
        {"memory <= 20": -15, "recall >= 0.5": 0},
    ]
    assert copy.best_value == made.best_value == 3


def test_attributes_are_copied_to_optuna(storage: Path) -> None:
    from fantasia_hpo.optuna import to_optuna

    made = study(storage)
    made.set_user_attr("data", {"set": "digits", "rows": 600})
    trial = made.ask()
    trial.set_user_attr("sizes", [64, 32])
    made.tell(trial, 1.0)
    copy = to_optuna(made)
    assert copy.user_attrs == {"data": {"set": "digits", "rows": 600}}
    assert copy.trials[0].user_attrs["sizes"] == [64, 32]


def test_sampler_of_optuna_is_pickled(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", -1, 1) ** 2

    sampler = FantasiaSampler(name="pickled-sampler", storage=storage, seed=1)
    unused = pickle.loads(pickle.dumps(sampler))  # before there is a study, as joblib does
    optuna.create_study(sampler=sampler).optimize(objective, n_trials=4)
    for copy in (unused, pickle.loads(pickle.dumps(sampler))):
        optuna.create_study(sampler=copy).optimize(objective, n_trials=4)
    assert sampler.study is not None
    assert len(sampler.study.get_trials([TrialState.COMPLETED])) == 3 * 4


def test_sampler_of_optuna_keeps_names_and_single_values(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler, to_optuna

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_categorical("data set", ["digits"])
        trial.suggest_int("seed", 7, 7)
        trial.suggest_float("args", 0, 1)
        return trial.suggest_float("model/C", 0, 1) + trial.suggest_int("model/c", 1, 4)

    sampler = FantasiaSampler(storage=storage, seed=1)
    moved = optuna.create_study(sampler=sampler)
    moved.optimize(objective, n_trials=6)
    names = ["data set", "seed", "args", "model/C", "model/c"]
    assert all(list(t.params) == names and t.params["seed"] == 7 for t in moved.trials)
    assert sampler.study is not None
    told = sampler.study.get_trials([TrialState.COMPLETED])
    assert len(told) == 6
    assert set(sampler.study.parameters) == {*names[:2], "args_090772cf", *names[3:]}
    assert [t.value for t in to_optuna(sampler.study).trials] == [t.value for t in told]


def test_trials_as_a_study_of_optuna(storage: Path) -> None:
    import optuna

    from fantasia_hpo.optuna import to_optuna

    made = study(storage, early_stopping=EarlyStopping("threshold", {"upper": 5, "minSteps": 1}))

    def objective(trial: fantasia.Trial) -> float:
        for step in (1, 2):
            trial.report(abs(trial.params["x"]), step)
            if trial.should_prune():
                raise fantasia.TrialPruned
        return abs(float(trial.params["x"]))

    made.optimize(objective, n_trials=12)
    copy = to_optuna(made)
    assert [t.params for t in copy.trials] == [t.params for t in made.trials]
    assert copy.best_value == made.best_value
    assert copy.trials[0].intermediate_values == made.curve(1)
    states = [t.state is optuna.trial.TrialState.PRUNED for t in copy.trials]
    assert states == [t.state is TrialState.PRUNED for t in made.trials]
    assert set(optuna.importance.get_param_importances(copy)) == {"x", "y"}
    # Each plot that needs no further library shows something.
    for plot in (
        "contour",
        "edf",
        "intermediate_values",
        "optimization_history",
        "parallel_coordinate",
        "param_importances",
        "rank",
        "slice",
        "timeline",
    ):
        figure = getattr(optuna.visualization, f"plot_{plot}")(copy)
        assert figure.data, plot


def test_states_are_equal_to_those_of_optuna(storage: Path) -> None:
    import optuna

    theirs = {
        "COMPLETED": "COMPLETE",
        "FAILED": "FAIL",
        "PRUNED": "PRUNED",
        "RUNNING": "RUNNING",
        "PENDING": "WAITING",
    }
    for state in TrialState:
        equal = {other.name for other in optuna.trial.TrialState if state == other and other == state}
        assert equal == ({theirs[state.value]} if state.value in theirs else set()), state
        other_than = {other.name for other in optuna.trial.TrialState if state != other and other != state}
        assert other_than == {other.name for other in optuna.trial.TrialState} - equal, state
        assert state != optuna.study.StudyDirection.MINIMIZE
        assert state == state.value
        assert hash(state) == hash(state.value)
    assert TrialState.COMPLETED == "COMPLETE" != TrialState.PRUNED
    assert not TrialState.COMPLETED != "COMPLETE"  # noqa: SIM202
    made = study(storage)
    made.optimize(lambda trial: 1 / (trial.number - 2), n_trials=3)
    theirs_too: Any = [optuna.trial.TrialState.COMPLETE]
    found = made.get_trials(states=theirs_too)
    assert [t.number for t in found] == [1, 3]
    none: Any = [optuna.study.StudyDirection.MINIMIZE]
    with pytest.raises(ValueError, match="MINIMIZE"):
        made.get_trials(states=none)


def test_trials_outside_an_edited_space_are_not_of_the_study_of_optuna(storage: Path) -> None:
    from fantasia_hpo.optuna import to_optuna

    solver = Categorical(["adam", "sgd", "lamb"])
    made = study(storage, parameters={"x": Float(-10, 10), "solver": solver})
    made.optimize(lambda trial: abs(float(trial.params["x"])), n_trials=12)
    made.edit_space({"x": Float(0, 10), "solver": Categorical(["adam", "sgd"])})
    found = [t.params for t in made.trials]
    inside = [p for p in found if float(p["x"]) >= 0 and p["solver"] != "lamb"]
    assert 0 < len(inside) < 12
    assert [t.params for t in to_optuna(made).trials] == inside


def table() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 4))
    y = (x[:, 0] + 0.5 * x[:, 1] > 0).astype(int)
    return x[:200], y[:200], x[200:], y[200:]


def test_callback_of_xgboost(storage: Path) -> None:
    import xgboost

    from fantasia_hpo.xgboost import PruningCallback

    train_x, train_y, test_x, test_y = table()
    train, test = xgboost.DMatrix(train_x, train_y), xgboost.DMatrix(test_x, test_y)
    made = study(storage, early_stopping=EarlyStopping("threshold", {"upper": 0.5, "minSteps": 3}))

    def objective(trial: fantasia.Trial) -> float:
        rounds: dict[str, Any] = {}
        xgboost.train(
            {"eta": trial.params["y"] * 10, "objective": "binary:logistic", "nthread": 1},
            train,
            num_boost_round=6,
            evals=[(test, "validation")],
            evals_result=rounds,
            verbose_eval=False,
            callbacks=[PruningCallback(trial, "validation-logloss")],
        )
        return float(rounds["validation"]["logloss"][-1])

    made.optimize(objective, n_trials=8)
    states = {t.state for t in made.trials}
    assert states == {TrialState.COMPLETED, TrialState.PRUNED}
    for t in made.trials:
        curve = made.curve(t)
        assert len(curve) == (6 if t.state is TrialState.COMPLETED else max(curve))
        assert (max(curve) < 6) == (t.state is TrialState.PRUNED)

    trial = made.ask()
    with pytest.raises(fantasia.SpaceError, match=r"expected one of \['validation-logloss'\], got 'auc'"):
        xgboost.train(
            {"objective": "binary:logistic"},
            train,
            num_boost_round=1,
            evals=[(test, "validation")],
            verbose_eval=False,
            callbacks=[PruningCallback(trial, "auc")],
        )
    made.release(trial)


def test_callback_of_lightgbm(storage: Path) -> None:
    import lightgbm

    from fantasia_hpo.lightgbm import PruningCallback

    train_x, train_y, test_x, test_y = table()
    made = study(storage, early_stopping=EarlyStopping("threshold", {"upper": 0.6, "minSteps": 3}))

    def objective(trial: fantasia.Trial) -> float:
        train = lightgbm.Dataset(train_x, train_y)
        booster = lightgbm.train(
            {
                "learning_rate": trial.params["y"],
                "objective": "binary",
                "metric": "binary_logloss",
                "num_threads": 1,
                "verbose": -1,
            },
            train,
            num_boost_round=6,
            valid_sets=[lightgbm.Dataset(test_x, test_y, reference=train)],
            callbacks=[PruningCallback(trial, "binary_logloss")],
        )
        return float(booster.best_score["valid_0"]["binary_logloss"])

    made.optimize(objective, n_trials=8)
    assert {t.state for t in made.trials} == {TrialState.COMPLETED, TrialState.PRUNED}
