"""Optuna beside Fantasia: a sampler that asks Fantasia, and studies in Optuna's form."""

from __future__ import annotations

import logging
import math
import os
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers._base import _process_constraints_after_trial as process_constraints_after_trial
from optuna.trial import TrialState as OptunaState

from ._constraints import bound, constraints_in, constraints_of, with_constraints
from ._declarations import Evidence, with_declarations
from ._fork import renew_after_fork
from ._learning_trial import LearningTrial
from ._limits import Limit
from ._values import plain_name
from .create import Algorithm, create_study
from .errors import FantasiaError, SpaceError, StudyEndedError
from .parameters import Bool, Categorical, Fidelity, Fixed, Float, Int, Parameter, encode_point, fits, key
from .record import FrozenTrial, TrialState
from .study import Study
from .trial import Trial

log: logging.Logger = logging.getLogger("fantasia_hpo")

_WAIT = 1.0  # seconds that the sampler waits before it looks whether there are points left


def parameter_name(name: str) -> str:
    """Return the name of Fantasia for a parameter of Optuna, which `fantasia import optuna` makes too.

    It is the same name if a study can have it. Otherwise it is made of the name's letters and digits
    and of a checksum.

    Examples:
        >>> from fantasia_hpo.optuna import parameter_name
        >>> parameter_name("lr")
        'lr'
        >>> parameter_name("a=b")
        'a_b_...
    """
    valid = (
        name != ""
        and (name[0] in "_0123456789" or name[0].isalpha())
        and name.isprintable()
        and not name.endswith(" ")
        and not re.search(r"[={}$`]", name)
        and len(name.encode()) <= 64
        and name not in ("args", "overrides", "file")
    )
    return name if valid else plain_name(name)


def _renamed(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what belongs to the names of Optuna by the names of Fantasia."""
    return {parameter_name(name): value for name, value in params.items()}


def to_optuna(study: Study) -> optuna.Study:
    """Return an Optuna study in memory with the trials that ended, for its plots and importances.

    Trials whose point is not in the study's space as it is now are left out. A Float with a logit
    scale becomes a linear one, since Optuna has none. Limits become constraints, whose values are by how
    much a trial is outside of them.

    Examples:
        >>> from fantasia_hpo.optuna import to_optuna
        >>> to_optuna(study).best_params
        {'x': 0.5, 'kind': 'a'}
    """
    copy = optuna.create_study(study_name=study.name, directions=study.directions)
    if len(study.directions) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            copy.set_metric_names(list(study.objectives))
    for name, value in study.user_attrs.items():
        copy.set_user_attr(name, value)
    distributions = {name: distribution_of(p) for name, p in study.parameters.items()}
    limits = study.limits
    for trial in study.trials:
        counts = trial.state.ended and trial.state is not TrialState.CANCELLED
        if counts and fits(study.parameters, trial.params):
            copy.add_trial(_optuna_trial(study, trial, distributions, limits))
    return copy


def _optuna_trial(
    study: Study, trial: FrozenTrial, distributions: Mapping[str, BaseDistribution], limits: Sequence[Limit]
) -> optuna.trial.FrozenTrial:
    states = {TrialState.COMPLETED: OptunaState.COMPLETE, TrialState.PRUNED: OptunaState.PRUNED}
    state = states.get(trial.state, OptunaState.FAIL)
    made = optuna.create_trial(
        state=state,
        values=trial.values if state is OptunaState.COMPLETE else None,
        params=dict(trial.params),
        distributions={name: distributions[name] for name in trial.params},
        intermediate_values=study.curve(trial) if len(study.objectives) == 1 else None,
        user_attrs={
            **trial.metrics,
            **trial.user_attrs,
            **({"reason": trial.reason} if trial.reason else {}),
        },
        system_attrs=constraints_of(study, trial, limits) if state is OptunaState.COMPLETE and limits else {},
    )
    if trial.datetime_start is not None and trial.datetime_complete is not None:
        made.datetime_start = trial.datetime_start.astimezone().replace(tzinfo=None)
        made.datetime_complete = trial.datetime_complete.astimezone().replace(tzinfo=None)
    return made


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """Return the distribution of Optuna that is most like a parameter.

    Examples:
        >>> from fantasia_hpo.optuna import distribution_of
        >>> distribution_of(fantasia.Int(1, 9))
        IntDistribution(high=9, log=False, low=1, step=1)
    """
    if isinstance(parameter, Float):
        logarithmic = parameter.scale == "log"
        step = None if logarithmic else parameter.step
        return FloatDistribution(parameter.low, parameter.high, log=logarithmic, step=step)
    if isinstance(parameter, Int):
        logarithmic = parameter.scale == "log"
        step = 1 if logarithmic else parameter.step or 1
        return IntDistribution(parameter.low, parameter.high, log=logarithmic, step=step)
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(parameter.values)
    if isinstance(parameter, Fidelity):
        return CategoricalDistribution(parameter.levels)
    return CategoricalDistribution((False, True) if isinstance(parameter, Bool) else (parameter.value,))


def parameter_of(distribution: BaseDistribution) -> Parameter:
    """Return the parameter of Fantasia that has the values of a distribution of Optuna.

    Raises:
        SpaceError: for another distribution than Optuna's own.

    Examples:
        >>> import optuna
        >>> from fantasia_hpo.optuna import parameter_of
        >>> parameter_of(optuna.distributions.FloatDistribution(1e-5, 1, log=True)).scale
        'log'
    """
    if isinstance(distribution, CategoricalDistribution):
        choices = list({key(choice): choice for choice in distribution.choices}.values())
        return Categorical(choices) if len(choices) > 1 else Fixed(choices[0])
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise SpaceError(f"expected a distribution of Optuna, got {distribution!r}")
    low, high, scale = distribution.low, distribution.high, "log" if distribution.log else "linear"
    if distribution.single():
        return Fixed(low)
    if isinstance(distribution, FloatDistribution):
        return Float(low, high, scale, distribution.step)  # type: ignore[arg-type]
    step = None if distribution.step == 1 else distribution.step
    return Int(int(low), int(high), scale, step)  # type: ignore[arg-type]


class FantasiaSampler(optuna.samplers.BaseSampler):
    """A sampler that asks a study of Fantasia, which knows every running and finished trial.

    The space is what the trials suggest, with its conditions; it is learned as in a study that is
    created without parameters. `space` may hold distributions by name, so that the first trials
    are suggested, too. Samplers in several processes share what they learn if they have the
    same `name`. `storage`, `algorithm` and `seed` are those of fantasia_hpo.create_study. A sampler can be
    pickled: its copy asks the same study, and ends the trials that it asks for itself.

    Constraints of trials, by `trial.set_constraint` or by `constraints_func` as in Optuna's own samplers,
    become limits of the study of Fantasia. A completed trial without a constraint that others have counts as
    one that does not meet it.

    Examples:
        >>> import optuna
        >>> from fantasia_hpo.optuna import FantasiaSampler
        >>> sampler = FantasiaSampler()
        >>> moved = optuna.create_study(sampler=sampler)
        >>> moved.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=3)
        >>> len(sampler.study.trials)
        3
    """

    def __init__(
        self,
        space: Mapping[str, BaseDistribution] | None = None,
        *,
        name: str | None = None,
        storage: str | os.PathLike[str] | None = None,
        algorithm: str | Algorithm = "hebo",
        seed: int | None = None,
        constraints_func: Callable[[optuna.trial.FrozenTrial], Sequence[float]] | None = None,
    ):
        self._constraints_func = constraints_func
        self._space = dict(space) if space is not None else None
        self._name, self._storage, self._algorithm, self._seed = name, storage, algorithm, seed
        self._independent = optuna.samplers.RandomSampler(seed=seed)
        self._study: Study | None = None
        self._ended = False  # whether the study of Fantasia has told that it gives out no more trials
        self._renew()
        renew_after_fork(self)

    def _renew(self) -> None:
        """Start without open trials: those of another process are that process's to end."""
        self._lock = threading.Lock()
        self._open: dict[int, LearningTrial] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_open")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._renew()
        self.reseed_rng()
        renew_after_fork(self)

    def reseed_rng(self) -> None:
        """Draw other numbers than the process or the thread that this sampler was copied from."""
        self._independent.reseed_rng()

    @property
    def study(self) -> Study | None:
        """The study of Fantasia, once there is one."""
        return self._study

    def infer_relative_search_space(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return none: the trial says what it needs when it needs it."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Ask Fantasia for a point."""
        asked = self._ask(self._fantasia(study))
        if asked is not None:
            with self._lock:
                self._open[trial._trial_id] = asked
        return {}

    def _ask(self, fantasia: Study) -> LearningTrial | None:
        """Return a trial, or None if every point of a finite space is given out."""
        client = fantasia._new_client()
        while not self._ended:
            try:
                for asked in fantasia._suggest(client, _WAIT):
                    assert isinstance(asked, LearningTrial)
                    return asked
            except StudyEndedError as e:
                log.warning("%s: further points are drawn at random", e)
                self._ended = True
            if fantasia.parameters and len(fantasia.trials) >= _points(fantasia.parameters):
                break
        return None

    def sample_independent(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value that Fantasia suggests, or a random one if it suggests none."""
        with self._lock:
            asked = self._open.get(trial._trial_id)
        if asked is not None:
            try:
                return asked._declare(parameter_name(param_name), parameter_of(param_distribution))
            except SpaceError as e:
                log.warning("a value is drawn at random: %s", e)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        state: OptunaState,
        values: Sequence[float] | None,
    ) -> None:
        """Tell Fantasia how a trial ended."""
        with self._lock:
            asked = self._open.pop(trial._trial_id, None)
        try:
            constraints = self._constraints(study, trial, state)
        except BaseException:  # of the function, or of a study whose algorithm takes no limits
            if asked is not None:
                self._drop(asked)
            raise
        if asked is None or self._study is None:
            return
        if state is OptunaState.PRUNED and trial.intermediate_values:  # only with a single objective
            values = self._pruned_values(study, trial.intermediate_values[max(trial.intermediate_values)])
        try:
            # Not all of it was asked for here: enqueued values, and those of another kind than before.
            asked.declared = _renamed({n: parameter_of(d) for n, d in trial.distributions.items()})
            asked.params = _renamed(trial.params)
            if values is not None:
                self._study.tell(asked, with_constraints(self._study, values, constraints))
            else:
                self._study.tell(asked, state=TrialState.FAILED, reason=f"Optuna's trial ended {state.name}")
        except FantasiaError as e:
            log.warning("Fantasia was not told of trial %d: %s", trial.number, e)
            self._drop(asked)

    def _constraints(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, state: OptunaState
    ) -> dict[str, float]:
        """Return the constraints of a trial that has ended, which Fantasia's study limits from now on."""
        attrs = trial.system_attrs
        if self._constraints_func is not None:
            process_constraints_after_trial(self._constraints_func, study, trial, state)
            attrs = study._storage.get_trial_system_attrs(trial._trial_id)
        constraints = constraints_in(attrs)
        if constraints and self._study is not None:
            bound(self._study, list(constraints))
        return constraints

    def _drop(self, asked: Trial) -> None:
        """End a trial whose result cannot be told."""
        assert self._study is not None
        try:
            self._study.cancel_trial(asked, "Optuna's result was refused")
        except FantasiaError as e:
            log.warning("trial %d stays open until its lease ends: %s", asked.number, e)
        finally:
            self._study._forget(asked)

    def _pruned_values(self, study: optuna.Study, reached: float) -> list[float] | None:
        """Return what a pruned trial had reached, no worse than the worst completed trial."""
        if math.isnan(reached):
            return None
        completed = [t.value for t in study.get_trials(deepcopy=False, states=(OptunaState.COMPLETE,))]
        known = [v for v in completed if v is not None]
        if not known:
            return [reached]
        if study.direction is optuna.study.StudyDirection.MINIMIZE:
            return [min(reached, max(known))]
        return [max(reached, min(known))]

    def _fantasia(self, study: optuna.Study) -> Study:
        """Return the study of Fantasia, made at first, with what Optuna's study knows already."""
        with self._lock:
            if self._study is not None:
                return self._study
            maximize = optuna.study.StudyDirection.MAXIMIZE
            made = create_study(
                name=self._name,
                storage=self._storage,
                load_if_exists=True,
                directions=["maximize" if d is maximize else "minimize" for d in study.directions],
                algorithm=self._algorithm,
                seed=self._seed,
            )
            if self._space:
                made._learned.learn(_renamed({n: parameter_of(d) for n, d in self._space.items()}))
            if not made.trials:
                _add_known(made, study)
            self._study = made
            return made


def _add_known(made: Study, study: optuna.Study) -> None:
    """Add the trials that a study of Optuna knows already."""
    known = [
        t
        for t in study.get_trials(deepcopy=False, states=(OptunaState.COMPLETE,))
        if t.values is not None and all(map(math.isfinite, t.values))
    ]
    points: list[tuple[list[float], dict[str, Any], dict[str, float]]] = []
    declared: dict[str, Parameter] = {}
    for trial in known:
        try:
            new = _renamed({n: parameter_of(d) for n, d in trial.distributions.items()})
            declared = with_declarations(declared, new)
            points.append((trial.values, _renamed(trial.params), constraints_in(trial.system_attrs)))
        except SpaceError as e:
            log.warning("Optuna's trial %d is left out: %s", trial.number, e)
    if declared:
        space = with_declarations(made.parameters, declared)
        seen = [Evidence(encode_point(space, point), whole=True) for _, point, _ in points]
        made._learned.learn(declared, seen)
    if metrics := {metric: None for *_, constraints in points for metric in constraints}:
        bound(made, list(metrics))
    for values, point, constraints in points:
        try:
            made.add_trial(point, with_constraints(made, values, constraints))
        except (FantasiaError, StudyEndedError) as e:
            log.warning("a trial of Optuna is left out: %s", e)


def _points(space: Mapping[str, Parameter]) -> float:
    """Return how many points a space of the sampler has."""
    return math.prod(_size(p) for p in space.values())


def _size(parameter: Parameter) -> float:
    if isinstance(parameter, Categorical):
        return len(parameter.values)
    if isinstance(parameter, Int) or (isinstance(parameter, Float) and parameter.step is not None):
        return math.floor((parameter.high - parameter.low) / (parameter.step or 1) + 1e-9) + 1
    return math.inf if isinstance(parameter, Float) else 1
