"""The search of scikit-learn and the sampler of Optuna, with the values that their users write."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fantasia_hpo as fantasia
from fantasia_hpo import Categorical, Float, TrialState

pytestmark = pytest.mark.slow


def iris() -> tuple[Any, Any]:
    from sklearn.datasets import load_iris

    x, y = load_iris(return_X_y=True)
    return x, y


def search(storage: Path, estimator: Any, parameters: Any, **options: Any) -> Any:
    from fantasia_hpo.sklearn import FantasiaSearchCV

    return FantasiaSearchCV(estimator, parameters, storage=storage, seed=1, cv=3, **options)


def sample(storage: Path, objective: Any, n_trials: int, n_jobs: int = 1) -> tuple[Any, Any]:
    import optuna

    from fantasia_hpo.optuna import FantasiaSampler

    sampler = FantasiaSampler(storage=storage, seed=1)
    made = optuna.create_study(sampler=sampler)
    made.optimize(objective, n_trials=n_trials, n_jobs=n_jobs)
    return made, sampler


@pytest.mark.parametrize("n_jobs", [1, 5])
def test_search_of_a_finite_space_ends_when_all_is_evaluated(storage: Path, n_jobs: int) -> None:
    from sklearn.svm import SVC

    found = search(storage, SVC(), {"kernel": ["rbf", "linear", "sigmoid"]}, n_jobs=n_jobs).fit(*iris())
    assert sorted(p["kernel"] for p in found.cv_results_["params"]) == ["linear", "rbf", "sigmoid"]
    assert found.study_.state == "COMPLETED"
    again = search(storage, SVC(), {"kernel": ["rbf", "linear", "sigmoid"]}, name=found.study_.name)
    with pytest.raises(fantasia.StudyEndedError, match="search space is exhausted"):
        again.fit(*iris())


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_sampler_repeats_points_of_a_finite_space(storage: Path, n_jobs: int) -> None:
    made, sampler = sample(storage, lambda trial: trial.suggest_int("x", 1, 4) ** 2, 20, n_jobs)
    assert len(made.trials) == 20
    assert {t.params["x"] for t in made.trials} == {1, 2, 3, 4}
    assert {t.params["x"] for t in sampler.study.trials} == {1, 2, 3, 4}


def test_search_goes_on_where_no_fit_succeeds(storage: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    space = {"solver": ["newton-cg", "lbfgs", "liblinear"], "l1_ratio": [0, 1]}
    found = search(storage, LogisticRegression(), space).fit(*iris())
    states = [t.state for t in found.study_.trials]
    assert len(states) == 6
    assert set(states) == {TrialState.COMPLETED, TrialState.INFEASIBLE}
    with pytest.raises(ValueError, match=r"All the 3 fits failed(.|\n)*error_score='raise'"):
        search(storage, LogisticRegression(), {"solver": ["a", "b", "c", "d"]}).fit(*iris())


def test_interrupted_search_hands_its_trial_back(storage: Path) -> None:
    from sklearn.svm import SVC

    def stop(*_: Any) -> float:
        raise KeyboardInterrupt

    interrupted = search(storage, SVC(), {"C": Float(1, 2)}, scoring=stop)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(*iris())
    assert [t.state for t in interrupted.study_.trials] == [TrialState.PENDING]


def test_estimator_checks_of_scikit_learn(storage: Path) -> None:
    from sklearn.naive_bayes import GaussianNB
    from sklearn.utils.estimator_checks import check_estimator

    options: dict[str, Any] = {"algorithm": "random", "n_iter": 2}
    check_estimator(search(storage, GaussianNB(), {"var_smoothing": [1e-9, 1e-6]}, **options))


def test_fitted_search_is_pickled_and_uses_several_processes(storage: Path) -> None:
    import joblib
    from sklearn.svm import SVC

    x, y = iris()
    for backend in ("loky", "threading", "multiprocessing"):
        with joblib.parallel_config(backend):
            found = search(storage, SVC(), {"C": Float(1e-2, 1e2, scale="log")}, n_iter=4, n_jobs=2).fit(x, y)
        moved = pickle.loads(pickle.dumps(found))
        assert (moved.predict(x) == found.predict(x)).all()
        assert moved.best_params_ == found.best_params_
        assert [t.params for t in moved.study_.trials] == moved.cv_results_["params"]


def test_search_takes_a_list_of_mappings(storage: Path) -> None:
    """The eight candidates are those of GridSearchCV, with the same scores."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    grids = [{"kernel": ["linear"], "C": [1, 10]}, {"kernel": ["rbf"], "C": [1, 10, 100], "gamma": [0.1, 1]}]
    theirs = GridSearchCV(SVC(), grids, cv=3).fit(*iris())
    found = search(storage, SVC(), grids, n_iter=20, algorithm="random").fit(*iris())

    def scores(fitted: Any) -> list[Any]:
        rows = zip(fitted.cv_results_["params"], fitted.cv_results_["mean_test_score"], strict=True)
        return sorted((sorted(params.items()), score) for params, score in rows)

    assert [p for p, _ in scores(found)] == [p for p, _ in scores(theirs)]
    assert scores(found) == scores(theirs)
    assert found.best_score_ == theirs.best_score_
    single = search(storage, SVC(), grids[:1], n_iter=20).fit(*iris())
    assert len(single.study_.trials) == 2
    with pytest.raises(fantasia.SpaceError, match="expected a mapping, or a list of them"):
        search(storage, SVC(), []).fit(*iris())


@pytest.mark.parametrize("scoring", [["accuracy", "f1_macro"], {"accuracy": "accuracy", "f1": "f1_macro"}])
def test_search_without_refit_optimises_the_first_of_several_metrics(storage: Path, scoring: Any) -> None:
    from sklearn.svm import SVC

    found = search(storage, SVC(), {"C": Float(1, 9)}, n_iter=3, scoring=scoring, refit=False).fit(*iris())
    assert found.study_.metric == "accuracy"
    assert [t.value for t in found.study_.trials] == list(found.cv_results_["mean_test_accuracy"])


def test_search_is_seeded_by_random_state(storage: Path) -> None:
    from sklearn.svm import SVC

    from fantasia_hpo.sklearn import FantasiaSearchCV

    def points(state: Any) -> list[Any]:
        options: dict[str, Any] = {"storage": storage, "cv": 3, "n_iter": 3, "random_state": state}
        found = FantasiaSearchCV(SVC(), {"C": Float(1, 9)}, **options).fit(*iris())
        return list(found.cv_results_["params"])

    assert points(1) == points(np.int64(1)) != points(2)
    assert points(np.random.RandomState(1)) == points(np.random.RandomState(1))


def half(x: Any) -> Any:
    return x / 2


def test_search_takes_the_arguments_of_optunas_search(storage: Path) -> None:
    import optuna
    from sklearn.svm import SVC

    space = {
        "C": optuna.distributions.FloatDistribution(1e-3, 1e3, log=True),
        "degree": optuna.distributions.IntDistribution(1, 5),
        "kernel": optuna.distributions.CategoricalDistribution(["poly", "rbf"]),
    }
    found = search(storage, SVC(), space, n_trials=6, timeout=600).fit(*iris())
    assert len(found.study_.trials) == 6
    assert found.best_params_.keys() == space.keys()
    assert 1e-3 <= found.best_params_["C"] <= 1e3
    assert found.best_params_["degree"] in range(1, 6)


def test_search_ends_after_its_timeout_with_a_result(storage: Path) -> None:
    from sklearn.svm import SVC

    found = search(storage, SVC(), {"C": Float(1e-3, 1e3, scale="log")}, n_iter=1000, timeout=0).fit(*iris())
    assert [t.state for t in found.study_.trials] == [TrialState.COMPLETED]
    assert found.best_score_ > 0


def test_search_takes_values_of_any_type(storage: Path) -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

    scalers = [StandardScaler(), MinMaxScaler(), None, "passthrough"]
    given: dict[str, Any] = {
        "scale": scalers,
        "half__func": [None, half, np.sqrt],
        "forest__max_depth": [None, 3, 5],
        "forest__max_features": [1, 1.0, "sqrt", None],
        "forest__bootstrap": np.array([True, False]),
        "forest__ccp_alpha": np.logspace(-4, -2, 3),
        "forest__n_estimators": range(2, 5),
        "half__kw_args": [None],
    }
    pipe = Pipeline(
        [
            ("scale", StandardScaler()),
            ("half", FunctionTransformer()),
            ("forest", RandomForestClassifier(random_state=0)),
        ]
    )
    found = search(storage, pipe, given, n_iter=12).fit(*iris())
    for name, values in given.items():
        got = [p[name] for p in found.cv_results_["params"]]
        assert all(any(g is v or (type(g) is type(v) and g == v) for v in values) for g in got), name
        assert list(found.cv_results_[f"param_{name}"]) == got
    assert {id(p["scale"]) for p in found.cv_results_["params"]} <= {id(s) for s in scalers}
    assert found.best_params_ in found.cv_results_["params"]


def test_search_takes_distributions_of_scipy(storage: Path) -> None:
    from scipy import stats
    from sklearn.neural_network import MLPClassifier

    given: dict[str, Any] = {
        "alpha": stats.loguniform(1e-5, 1e-1),
        "momentum": stats.uniform(0.5, 0.4),
        "max_iter": stats.randint(2, 5),
        "beta_1": stats.truncnorm(-2, 2, loc=0.5, scale=0.2),
        "learning_rate_init": stats.lognorm(0.5, scale=1e-2),
        "power_t": stats.norm(0.5, 0.1),
        "n_iter_no_change": stats.randint(7, 8),
    }
    found = search(storage, MLPClassifier((2,), random_state=0), given, n_iter=8).fit(*iris())
    assert all(given[n].cdf(v - 1e-9) < 1 and given[n].cdf(v) > 0 for n, v in found.best_params_.items())
    assert {type(v) for v in found.best_params_.values()} == {float, int}
    space = found.study_.parameters
    assert space["alpha"] == Float(1e-5, 1e-1, scale="log")
    assert space["max_iter"] == fantasia.Int(2, 4)
    assert space["n_iter_no_change"] == fantasia.Fixed(7)
    for name, distribution in (("power_t", stats.norm(0.5, 0.1)), ("beta_1", given["beta_1"])):
        prior = space[name].prior
        assert prior.mean == pytest.approx(distribution.mean())
    assert space["power_t"].prior.sd == pytest.approx(given["power_t"].std())
    # Its logarithm to the base of ten is normal.
    logs = np.log10(given["learning_rate_init"].rvs(10_000, random_state=1))
    prior = space["learning_rate_init"].prior
    assert (math.log10(prior.mean), prior.sd) == pytest.approx((logs.mean(), logs.std()), rel=0.02)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"C": [1]}, 3], r"parameters: expected a mapping, or a list of them, got \["),
        (
            [{"C": Float(0, 1, when={"kernel": ["rbf"]})}, {}],
            r"parameters\[0\]\['C'\]: expected no condition",
        ),
        ({"C": 3}, r"parameters\['C'\]: expected a parameter of fantasia_hpo, a list or .* got 3"),
        ({"C": "abc"}, r"parameters\['C'\]: expected .* got 'abc'"),
        ({"C": {1, 2}}, r"parameters\['C'\]: expected .* got {1, 2}"),
        ({"C": []}, r"parameters\['C'\]: expected at least one value, got none"),
        ({"C": np.ones((2, 2))}, r"parameters\['C'\]: expected .* of one dimension"),
        ({"C": "expon"}, r"expected one of the distributions uniform, loguniform.*, got expon"),
        ({"C": "shifted"}, r"expected a distribution with loc=0, .* got loc=1.0"),
    ],
)
def test_search_names_what_is_accepted(storage: Path, given: Any, message: str) -> None:
    from scipy import stats
    from sklearn.svm import SVC

    special = {"expon": stats.expon(), "shifted": stats.loguniform(1, 2, loc=1)}
    if isinstance(given, dict) and isinstance(given["C"], str):
        given = {"C": special.get(given["C"], given["C"])}
    with pytest.raises(fantasia.SpaceError, match=message):
        search(storage, SVC(), given).fit(*iris())


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_sampler_takes_choices_of_any_type(storage: Path) -> None:
    choices = [None, "None", (1, 2), half, math.nan, True, 1, np.str_("a")]

    def objective(trial: Any) -> float:
        return float(trial.suggest_float("x", 0, 1) + (trial.suggest_categorical("c", choices) is not half))

    made, sampler = sample(storage, objective, 24)
    got = [t.params["c"] for t in made.trials]
    assert all(any(g is c for c in choices) for g in got)
    assert len({id(g) for g in got}) > 4
    told = sampler.study.get_trials([TrialState.COMPLETED])
    assert sorted(t.value for t in told) == pytest.approx(sorted(t.value for t in made.trials))
    assert made.best_params["c"] is half


def test_categorical_keeps_objects_by_position(storage: Path) -> None:
    values = [None, half, 3, np.int64(4), (5, 6), [7], math.inf]
    made = fantasia.create_study(
        storage=storage,
        name="objects",
        direction="minimize",
        parameters={
            "c": Categorical(values),
            "x": Float(0, 1, when={"c": [None, half]}),
            "f": fantasia.Fixed(half),
        },
        algorithm="random",
    )
    made.enqueue_trial({"c": [7], "f": half})
    made.optimize(lambda trial: 0.0 if trial.params["c"] is half else 1.0, n_trials=30)
    assert all(any(t.params["c"] is v for v in values) for t in made.trials)
    assert made.trials[0].params == {"c": [7], "f": half}
    assert {id(t.params["c"]) for t in made.trials if "x" in t.params} == {id(None), id(half)}
    assert made.best_params["c"] is half
    loaded = fantasia.load_study("objects", storage)
    assert loaded.parameters["c"].values == ("None", "<function half>", 3, 4, "(5, 6)", "[7]", "inf")  # type: ignore[union-attr]
    made.edit_space({"x": Float(0, 2, when={"c": [None, half]})})
    assert made.parameters["c"].values == tuple(values)  # type: ignore[union-attr]
