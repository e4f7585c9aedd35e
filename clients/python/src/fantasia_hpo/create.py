"""Creating, loading and deleting studies."""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from . import _earlier, errors
from ._declarations import PLACEHOLDER
from ._limits import Limit, documents, limits_of
from ._objectives import Direction, Objective, aims, objectives_of, spec_of
from ._server import connect
from ._unheeded import unheeded
from ._values import duration_of
from .parameters import Float, Parameter, encode_point
from .study import Study

log: logging.Logger = logging.getLogger("fantasia_hpo")

_OPEN_BUDGET = 1000
_DEFAULT_RULE = "model"  # a study file that names no rule has it, too


@dataclass(frozen=True)
class Algorithm:
    """The name of the optimiser and its settings, as docs/internals/optimiser.md lists them.

    Examples:
        >>> algorithm = fantasia.Algorithm("hebo", {"initial": 10})
        >>> tuned = fantasia.create_study(
        ...     direction="minimize", parameters={"x": fantasia.Float(0, 1)}, algorithm=algorithm
        ... )
    """

    name: str = "hebo"
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EarlyStopping:
    """The name of the rule that stops trials early, and its settings; docs/tune/early-stopping.md has them.

    `metric` is the reported metric that is compared; by default the study's.

    Examples:
        >>> rule = fantasia.EarlyStopping("median", {"minCompleted": 3}, metric="error")
        >>> tuned = fantasia.create_study(
        ...     objectives={"error": "minimize", "seconds": "minimize"},
        ...     parameters={"x": fantasia.Float(0, 1)},
        ...     early_stopping=rule,
        ... )
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    metric: str | None = None


def create_study(
    *,
    direction: Direction | None = None,
    directions: Sequence[Direction] | None = None,
    objectives: Mapping[str, Objective | Direction] | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    metric: str = "value",
    name: str | None = None,
    storage: str | os.PathLike[str] | None = None,
    load_if_exists: bool = False,
    algorithm: str | Algorithm = "hebo",
    seed: int | None = None,
    early_stopping: str | EarlyStopping | bool | None = None,
    goal: float | None = None,
    take: Literal["last", "best"] | None = None,
    limits: Sequence[Limit | Mapping[str, Any]] = (),
    constraints: Sequence[str] = (),
    initial: Sequence[Mapping[str, Any]] = (),
    learn_from: Sequence[str | Study] = (),
    max_trials: int | None = None,
    max_duration: timedelta | None = None,
    max_failed_trials: int | None = None,
    cost: str | None = None,
    max_cost: float | None = None,
    stop_gain: float | None = None,
    stop_gain_per: Literal["trials", "hour", "cost"] = "trials",
    retries: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    note: str = "",
    token: str | None = None,
    ca: str | None = None,
    study_name: str | None = None,
    pruner: EarlyStopping | bool | None = None,
) -> Study:
    """Create a study whose trials this process, or others, evaluate.

    `storage` is the URL of a coordinator, or a directory on this machine, which a program beside
    this process serves; by default FANTASIA_SERVER, or `.fantasia` in the working directory. A
    study with the same `name` is an error, unless `load_if_exists`. Without `parameters`, the space is what
    the trials ask for with `suggest_…`; it is learned from them. `metric` is the name of what
    is optimised, `constraints` are expressions such as `"width * depth <= 512"`, `initial` are
    points to evaluate first. `take` says whether the last (the default) or the best report of a trial
    is its value. `goal` ends the study when a trial's value is as good or, of several objectives, when
    their front has this hypervolume. `labels` and `note` are for people; `labels` have the form of
    Kubernetes' labels.

    `algorithm` is an optimiser's name or an Algorithm, and `seed` is its seed, by default a random one.
    `early_stopping` is the name of a rule or an EarlyStopping, and True is the rule `model`; by default no
    trial is stopped early.
    `max_trials` bounds the study's trials; without it, `optimize` runs as many as it is asked for. The study
    also ends after `max_duration`, and fails after `max_failed_trials`. With `max_duration` alone the search
    plans with that time: it begins no trial that is not expected to end in it. `retries` is how many more
    attempts a trial gets, by why it ended: `{"lost": 2, "timeout": 0, "failed": 0}` by default.

    `cost` names a metric that says what the trial has cost so far, such as dollars, if that is not its
    time; the objective returns or reports it. With `max_cost`, no trial begins once what has been spent, and
    what is expected of the trials that run, has reached it.

    With `stop_gain`, the study also ends once 30 more trials gain no more than that in nine of ten cases, in
    the objective's unit, by the optimiser's model and by what the last trials have gained. It is for a single
    objective without limits, with `hebo` or `gp`. `stop_gain_per="hour"` counts the gain for an hour of
    trials, where two at once for an hour are two hours, and `"cost"` for a unit of `cost`.

    `token` and `ca` (a file) are for a server that needs them; by default FANTASIA_TOKEN and
    FANTASIA_CA. `study_name` and `pruner` are Optuna's words for `name` and `early_stopping`;
    `fantasia_hpo.pruners` has Optuna's pruners.

    `learn_from` lists studies that were made before, of similar parameters and the same metric: names of
    studies in the same storage, or a Study from any. They are read once. The optimiser begins where they
    were good, and trusts them as far as this study's own trials agree.

    In place of `direction`, `objectives` maps several metrics to their directions, or to an Objective;
    `directions` lists directions only, and the metrics are called values_0, values_1 and so on.

    `limits` bound metrics that the objective returns or reports, as in `[Limit("memory_mb", max=512)]`. Only
    trials within all limits can be the best. A limit may also be a mapping, as a study file has it.

    Raises:
        SpaceError: for an invalid option, and if the study exists with other parameters or objectives.
        StudyFileError: for a problem that the server finds; it is a SpaceError, too.
        AlreadyExistsError: if a study of this name exists, unless `load_if_exists`.

    Examples:
        >>> made = fantasia.create_study(
        ...     metric="error",
        ...     direction="minimize",
        ...     parameters={"x": fantasia.Float(-10, 10), "y": fantasia.Int(1, 8)},
        ...     constraints=["x + y <= 12"],
        ...     initial=[{"x": 0, "y": 2}],
        ...     seed=1,
        ... )
        >>> made.ask().params
        {'x': 0.0, 'y': 2}
    """
    name = _name_of(name, study_name)
    algorithm = Algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    stopping = _stopping_of(early_stopping, pruner)
    aimed = objectives_of(metric, direction, directions, objectives, take)
    limited = limits_of(limits)
    learns = parameters is None
    if parameters is None:
        parameters = {PLACEHOLDER: Float(0, 1)}
        for option, given in {"initial": initial, "constraints": constraints}.items():
            if given:
                raise errors.SpaceError(
                    f"{option}: expected none in a study without parameters, got {given!r}"
                )
    if not parameters:
        raise errors.SpaceError("parameters: expected at least one, or None, got none")
    for key, parameter in parameters.items():
        if not hasattr(parameter, "document"):
            kinds = "Float, Int, Categorical, Ordinal, Bool, Fixed or Fidelity"
            raise errors.SpaceError(f"parameters[{key!r}]: expected {kinds}, got {parameter!r}")
    open_budget = max_trials is None and max_duration is None and max_cost is None
    budget: dict[str, Any] = {}
    if open_budget or max_trials is not None:
        budget["maxTrials"] = _OPEN_BUDGET if max_trials is None else max_trials
    if max_failed_trials is not None:
        budget["maxFailedTrials"] = max_failed_trials
    if stop_gain is None and stop_gain_per != "trials":
        raise errors.SpaceError(f"stop_gain_per: expected stop_gain beside it, got only {stop_gain_per!r}")
    if max_duration is not None:
        budget["maxDuration"] = duration_of(max_duration)
    if max_cost is not None:
        budget["maxCost"] = max_cost
    if stop_gain is not None:
        budget["stopWhen"] = {"gain": stop_gain}
    if stop_gain_per != "trials":
        budget.setdefault("stopWhen", {})["per"] = stop_gain_per
    chosen: dict[str, Any] = {"name": algorithm.name, "settings": dict(algorithm.settings)}
    chosen["seed"] = secrets.randbits(31) if seed is None else seed
    spec: dict[str, Any] = {
        **spec_of(aimed, goal),
        "parameters": [p.document(key) for key, p in parameters.items()],
        "algorithm": chosen,
        "budget": budget,
    }
    if learns:
        spec["learnParameters"] = True
    if note:
        spec["note"] = note
    if stopping is not None and stopping.name:
        spec["earlyStopping"] = {"name": stopping.name, "settings": dict(stopping.settings)}
        if stopping.metric is not None:
            spec["earlyStopping"]["metric"] = stopping.metric
    if limited:
        spec["limits"] = documents(limited)
    if cost is not None:
        spec["cost"] = {"metric": cost}
    if constraints:
        spec["constraints"] = list(constraints)
    if initial:
        spec["initial"] = [encode_point(parameters, point) for point in initial]
    if learn_from:
        spec["learnFrom"] = _earlier.documents(learn_from)
    if retries is not None:
        spec["trial"] = {"retries": dict(retries)}
    document = {
        "apiVersion": "fantasia.dev/v1",
        "kind": "Study",
        "metadata": {"name": name or _new_name(), "labels": dict(labels or {})},
        "spec": spec,
    }
    transport = connect(storage, token, ca)
    try:
        # A repeated request would find its own study in the way, so it is only sent again if
        # the server has done nothing with it.
        answer = transport.call("StudyService/CreateStudy", {"studyFile": json.dumps(document)})
    except errors.StudyFileError as e:
        raise errors.StudyFileError(
            [_in_python(p, list(parameters), list(aimed)) for p in e.problems]
        ) from None
    except errors.AlreadyExistsError:
        if name is None or not load_if_exists:
            raise
        answer = transport.call("StudyService/GetStudy", {"name": f"studies/{name}"}, idempotent=True)
        study = Study(transport, answer["study"], open_budget=open_budget, declared=parameters)
        _check_same(study, document, aimed, limited)
        stored = json.loads(answer["study"]["studyFile"])["spec"]
        if open_budget:
            del budget["maxTrials"]
        if kept := unheeded(stored, spec):
            log.warning(
                "the study %r exists and keeps its own %s: change a budget with study.update, or give the "
                "study another name",
                name,
                ", ".join(kept),
            )
        return study
    study = Study(transport, answer["study"], open_budget=open_budget, declared=parameters)
    study._hinted = stopping is not None
    return study


def load_study(
    name: str | None = None,
    storage: str | os.PathLike[str] | None = None,
    *,
    token: str | None = None,
    ca: str | None = None,
    study_name: str | None = None,
) -> Study:
    """Return the study of that name. `storage`, `token`, `ca` and `study_name` are those of create_study.

    Raises:
        NotFoundError: if there is none.

    Examples:
        >>> fantasia.load_study(study.name).best_value
        0.25
    """
    name = _needed(_name_of(name, study_name))
    transport = connect(storage, token, ca)
    return Study(
        transport,
        transport.call("StudyService/GetStudy", {"name": f"studies/{name}"}, idempotent=True)["study"],
    )


def delete_study(
    name: str | None = None,
    storage: str | os.PathLike[str] | None = None,
    *,
    token: str | None = None,
    ca: str | None = None,
    study_name: str | None = None,
) -> None:
    """Delete a study and its trials, also if it is running.

    `storage`, `token`, `ca` and `study_name` are those of create_study.

    Raises:
        NotFoundError: if there is none.

    Examples:
        >>> fantasia.delete_study(study.name)
        >>> study.name in fantasia.study_names()
        False
    """
    name = _needed(_name_of(name, study_name))
    connect(storage, token, ca).call("StudyService/DeleteStudy", {"name": f"studies/{name}", "force": True})


def study_names(
    storage: str | os.PathLike[str] | None = None, *, token: str | None = None, ca: str | None = None
) -> list[str]:
    """Return the names of all studies. `storage`, `token` and `ca` are those of create_study.

    Examples:
        >>> study.name in fantasia.study_names()
        True
    """
    transport = connect(storage, token, ca)
    names: list[str] = []
    page = ""
    while True:
        request = {"pageSize": 1000, "pageToken": page}
        answer = transport.call("StudyService/ListStudies", request, idempotent=True)
        names += [study["name"].removeprefix("studies/") for study in answer.get("studies", [])]
        page = answer.get("nextPageToken", "")
        if not page:
            return names


def _name_of(name: str | None, study_name: str | None) -> str | None:
    """Return the name of a study, which may be given in Optuna's word.

    Capitals become small, and underscores, dots and spaces dashes.
    """
    if study_name is not None:
        if name is not None and name != study_name:
            raise errors.SpaceError(
                f"name and study_name: expected one of them, got {name!r} and {study_name!r}"
            )
        log.info("study_name is called name here; both work")
        name = study_name
    if name is None:
        return None
    plain = re.sub(r"[_. ]+", "-", name.lower())
    if plain != name:
        log.info("the study %r is called %r here", name, plain)
    return plain


def _stopping_of(
    rule: str | EarlyStopping | bool | None, pruner: EarlyStopping | bool | None
) -> EarlyStopping | None:
    """Return the rule of early stopping, which may be given in Optuna's word."""
    if rule is not None and pruner is not None:
        raise errors.SpaceError(
            f"early_stopping and pruner: expected one of them, got {rule!r} and {pruner!r}"
        )
    chosen = rule if pruner is None else pruner
    if isinstance(chosen, bool):
        return EarlyStopping(_DEFAULT_RULE) if chosen else None
    if chosen is None or isinstance(chosen, EarlyStopping):
        return chosen
    if pruner is None:
        return EarlyStopping(chosen)
    raise errors.SpaceError(
        f"pruner: expected one of fantasia_hpo.pruners, got {pruner!r}; "
        "pruners of Optuna work in a study of Optuna, with a FantasiaSampler"
    )


def _needed(name: str | None) -> str:
    if name is None:
        raise errors.SpaceError("name: expected the name of a study, got None")
    return name


def _check_same(
    study: Study,
    document: Mapping[str, Any],
    objectives: Mapping[str, Objective],
    limits: Sequence[Limit],
) -> None:
    """Raise SpaceError if an existing study has other parameters, objectives or limits."""
    spec = document["spec"]
    old = {name: p.document(name) for name, p in study.parameters.items()}
    new = {p["name"]: p for p in spec["parameters"]}
    if spec.get("learnParameters"):
        new = old
    different = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    if different:
        raise errors.SpaceError(
            f"the study {study.name!r} exists with other parameters ({', '.join(different)}): "
            "give this one another name, or delete_study first"
        )
    if aims(study.objectives) != aims(objectives):
        raise errors.SpaceError(
            f"the study {study.name!r} exists and is to {aims(study.objectives)}: give this one another name"
        )
    if limits and list(limits) != study._limits:
        raise errors.SpaceError(
            f"limits: the study {study.name!r} exists with {', '.join(map(str, study._limits)) or 'none'}: "
            "leave them out, or change them with study.update(limits=…)"
        )


_OPTIONS = {
    "metadata.name": "name",
    "spec.objective.": "",
    "spec.algorithm.name": "algorithm",
    "spec.algorithm.": "",
    "spec.earlyStopping.": "early_stopping.",
    "spec.learnFrom": "learn_from",
    "spec.budget.maxTrials": "max_trials",
    "spec.budget.maxFailedTrials": "max_failed_trials",
    "spec.budget.maxDuration": "max_duration",
    "spec.budget.maxCost": "max_cost",
    "spec.budget.stopWhen.gain": "stop_gain",
    "spec.budget.stopWhen.per": "stop_gain_per",
    "spec.budget.stopWhen": "stop_gain",
    "spec.cost.metric": "cost",
    "spec.trial.": "",
    "spec.": "",
}


def _in_python(problem: str, names: Sequence[str], metrics: Sequence[str]) -> str:
    """Return a problem of a study file with the names that create_study has for its fields."""
    problem = re.sub(r"^\d+:\d+: ", "", problem)
    for field_name, listed in {"parameters": names, "objectives": metrics}.items():
        match = re.match(rf"spec\.{field_name}\[(\d+)\]", problem)
        if match:
            return f"{field_name}[{listed[int(match[1])]!r}]" + problem[match.end() :]
    for field_name, option in _OPTIONS.items():
        if problem.startswith(field_name):
            return option + problem.removeprefix(field_name)
    return problem


def _new_name() -> str:
    return f"study-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(5)}"
