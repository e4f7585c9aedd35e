"""The searcher in a real Ray Tune."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Categorical, Float, Int, TrialState

pytestmark = [pytest.mark.slow, pytest.mark.integrations]


@pytest.fixture(scope="module")
def tune() -> Iterator[Any]:
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AIR_NEW_OUTPUT": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    }
    import ray
    from ray import tune

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield tune
    ray.shutdown()


def fit(tune: Any, search: Any, tmp_path: Path, trials: int) -> Any:
    space = {
        "x": tune.uniform(-5, 5),
        "kind": tune.choice(["good", "bad"]),
        "net": {"layers": tune.randint(1, 4)},
        "constant": 0.5,
    }

    def objective(config: dict[str, Any]) -> dict[str, float]:  # pickled by value, since it is inside
        if config["kind"] == "bad":
            raise ValueError("it does not work")
        return {"loss": (config["x"] - 1) ** 2 + config["net"]["layers"] + config["constant"]}

    return tune.Tuner(
        objective,
        param_space=space,
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", search_alg=search, num_samples=trials, max_concurrent_trials=2
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    ).fit()


def test_searcher_of_ray(tune: Any, storage: Path, tmp_path: Path) -> None:
    from fantasia_hpo.ray import FantasiaSearch

    first = {"x": 1.0, "kind": "good", "net": {"layers": 1}}
    search = FantasiaSearch(
        name="ray", storage=storage, algorithm="random", seed=1, points_to_evaluate=[first]
    )
    results = fit(tune, search, tmp_path, 6)
    study = fantasia.load_study("ray", storage)
    assert study.space == {
        "x": Float(-5.0, 5.0),
        "kind": Categorical(["good", "bad"]),
        "net/layers": Int(1, 3),
    }
    trials = study.trials
    assert len(trials) == 6
    assert trials[0].value == 1.5
    for trial in trials:
        assert (trial.state is TrialState.FAILED) == (trial.params["kind"] == "bad")
        if trial.state is TrialState.COMPLETED:
            assert trial.value == (trial.params["x"] - 1) ** 2 + trial.params["net/layers"] + 0.5
    assert results.get_best_result().metrics["loss"] == study.best_value
    assert study.curve(1) == {1: 1.5}


def test_a_searcher_is_saved_and_restored(storage: Path, tmp_path: Path) -> None:
    from fantasia_hpo.ray import FantasiaSearch

    search = FantasiaSearch(
        {"x": Float(0, 1)}, "loss", "max", name="saved", storage=storage, algorithm="random"
    )
    search.suggest("a")
    search.suggest("b")
    search.on_trial_complete("a", {"loss": 2.0, "training_iteration": 1})
    search.save(str(tmp_path / "searcher"))
    again = FantasiaSearch({"x": Float(0, 1)})
    again.restore(str(tmp_path / "searcher"))
    again.on_trial_complete("b", {"loss": 3.0, "training_iteration": 1})
    again.on_trial_complete("b", {"loss": 4.0, "training_iteration": 2})  # twice: it is ignored
    assert [t.value for t in fantasia.load_study("saved", storage).trials] == [2.0, 3.0]


def test_domains_of_ray(tune: Any) -> None:
    from fantasia_hpo.ray import parameters_of

    got = parameters_of(
        {
            "a": tune.loguniform(1e-4, 1e-1),
            "b": tune.quniform(0.0, 1.0, 0.25),
            "c": tune.lograndint(1, 65),
            "d": tune.qrandint(2, 10, 2),
            "e": {"f": tune.choice([1, None])},
        }
    )
    assert got == {
        "a": Float(1e-4, 1e-1, scale="log"),
        "b": Float(0.0, 1.0, step=0.25),
        "c": Int(1, 64, scale="log"),
        "d": Int(2, 10, step=2),
        "e/f": Categorical([1, None]),
    }
    for space in ({"x": tune.randn(0, 1)}, {"x": tune.sample_from(lambda _: 1)}):
        with pytest.raises(fantasia.SpaceError, match="x: expected uniform"):
            parameters_of(space)
    with pytest.raises(fantasia.SpaceError, match="choice in place of grid_search, got x"):
        parameters_of({"x": tune.grid_search([1, 2])})


def test_what_a_searcher_needs(storage: Path) -> None:
    from fantasia_hpo.ray import FantasiaSearch

    with pytest.raises(fantasia.SpaceError, match="expected a space, a metric, and the mode"):
        FantasiaSearch({"x": Float(0, 1)}, storage=storage).suggest("a")
