"""A study: finding the best parameters of a function."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from . import errors
from ._ask import Asking
from ._elsewhere import Executor
from ._limits import Limit, documents, limits_of
from ._optimize import Run
from ._optimize import inside as _inside
from ._values import REASON_BYTES, Value, attribute, cut, duration_of
from .parameters import Parameter, fits, space_of
from .record import FrozenTrial, TrialState
from .transport import Message
from .trial import Trial

Function = Callable[[Trial], "Value | None"]
Callback = Callable[["Study", FrozenTrial], None]


class MaxTrialsCallback:
    """A callback of `optimize` that stops the study once it has n_trials trials in one of the states.

    All trials of the study count, as in Optuna, also those of earlier calls and of other processes. None
    as `states` counts every trial. `create_study(max_trials=…)` bounds a study without a callback.

    Examples:
        >>> enough = fantasia.MaxTrialsCallback(4)
        >>> study.optimize(lambda trial: trial.params["x"] ** 2, n_trials=100, callbacks=[enough])
        >>> len(study.trials)
        4
    """

    def __init__(self, n_trials: int, states: Sequence[TrialState] | None = (TrialState.COMPLETED,)):
        self._n_trials = n_trials
        self._states = states

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stop the study if it has enough trials."""
        if len(study.get_trials(self._states)) >= self._n_trials:
            study.stop()


class Study(Asking):
    """A study on a server. `create_study` and `load_study` make one.

    `name`, `objectives` and `parameters` are those of `create_study`; `objectives` maps each metric to an
    Objective. Threads may share a study, and so may processes: it can be pickled, and each process that gets
    it, also by a fork, evaluates trials of its own. A token is not pickled: another process reads
    FANTASIA_TOKEN.

    Examples:
        >>> study.objectives
        {'value': Objective(direction='minimize', reference=None, take='last', early=False)}
    """

    def _renew(self) -> None:
        super()._renew()
        self._runs: list[Run] = []  # the calls of `optimize` that are running

    @contextlib.contextmanager
    def _running(self, run: Run) -> Iterator[None]:
        """Note a call of `optimize` while it runs; refuse one inside another, which would use its trials."""
        if any(outer in self._runs for outer in _inside.get()):
            raise errors.FantasiaError(
                "optimize is called by an objective or a callback of the same study: use n_jobs, or call it "
                "from another thread, to evaluate several trials at once"
            )
        self._runs.append(run)
        token = _inside.set((*_inside.get(), run))
        try:
            yield
        finally:
            _inside.reset(token)
            self._runs.remove(run)

    # Evaluating trials.

    def optimize(
        self,
        objective: Function,
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        callbacks: Sequence[Callback] = (),
        *,
        catch: type[Exception] | tuple[type[Exception], ...] = Exception,
        show_progress_bar: bool | None = None,
        executor: Executor | None = None,
        gc_after_trial: bool = False,
    ) -> None:
        """Evaluate trials with a function, n_jobs at once, in threads or where `executor` runs its calls.

        The `objective` gets a Trial and returns the study's metric or a mapping of metrics; with several
        objectives a value for each, in their order, or a mapping. If it raises an exception, the trial
        fails, and the study goes on. The call ends after n_trials trials, after `timeout` seconds (those
        that run are finished), when `Study.stop` is called, or when the study ends. `callbacks` are
        called with the study and each trial that ended. An exception that is none of `catch` fails its
        trial and ends the call. `show_progress_bar` shows how far the call is; by default on a terminal
        and in a notebook. `executor` is one of `concurrent.futures`, joblib's
        `loky.get_reusable_executor()` or a `Client` of Dask; the function and its result must be picklable
        for it. With `gc_after_trial`, Python's garbage collector runs after each trial.

        Ctrl-C hands the running trials back, and so does any exception that ends the call. A second
        Ctrl-C ends it at once; the trials are given out again when their leases end.

        Several threads may call it at once, as each evaluates trials of its own.

        Called again, it goes on with a study that has failed, and says so: the failures so far no longer
        count for the study's end.

        Raises:
            StudyFailedError: if the study fails, as it does when its first three trials all fail.
            DeclarationError: if the function asks for a parameter in another way than the study declares it.
            FantasiaError: if an objective or a callback of the same study calls it.

        Examples:
            >>> study.optimize(lambda trial: trial.params["x"] ** 2, n_trials=3, n_jobs=2)
            >>> len(study.trials)
            5
        """
        if gc_after_trial:
            callbacks = [*callbacks, _collect]
        run = Run(self, objective, n_trials, timeout, n_jobs, callbacks, catch, show_progress_bar, executor)
        with self._running(run):
            run.run()

    def stop(self) -> None:
        """End the calls of `optimize` that are running once their running trials have ended.

        Examples:
            >>> def enough(study, trial):
            ...     if trial.value < 0.5:
            ...         study.stop()
            >>> study.optimize(lambda trial: trial.params["x"] ** 2, n_trials=100, callbacks=[enough])
            >>> study.trials[-1].value < 0.5
            True
        """
        for run in list(self._runs):
            run.stop()

    def cancel_trial(self, trial: FrozenTrial | Trial | int, reason: str = "") -> None:
        """End one trial, for a reason. It does not count, and whoever evaluates it is told to stop.

        Raises:
            NotFoundError: if there is no such trial.
            PreconditionError: if it has ended.

        Examples:
            >>> trial = study.ask()
            >>> study.cancel_trial(trial, "the machine is needed")
            >>> study.get_trial(trial.number).state.value
            'CANCELLED'
        """
        self._write("CancelTrial", {"name": self._name(trial), "reason": cut(reason, REASON_BYTES)})

    def edit_trial(
        self,
        trial: FrozenTrial | Trial | int,
        *,
        labels: Mapping[str, str | None] | None = None,
        note: str | None = None,
    ) -> FrozenTrial:
        """Change the labels and the note of a trial; a label that is None is removed.

        Raises:
            NotFoundError: if there is no such trial.

        Examples:
            >>> study.edit_trial(1, labels={"checked": "yes"}, note="by hand").labels
            {'checked': 'yes'}
        """
        labels = labels or {}
        request: Message = {
            "name": self._name(trial),
            "labels": {key: value for key, value in labels.items() if value is not None},
            "removeLabels": [key for key, value in labels.items() if value is None],
        }
        if note is not None:
            request["note"] = note
        return self._record(self._write("EditTrial", request)["trial"])

    # The study itself.

    def end(self, reason: str = "") -> None:
        """End the study for everybody, for a reason, and cancel its running trials.

        Examples:
            >>> study.end("enough")
            >>> study.state
            'STOPPED'
        """
        self._write("StopStudy", {"name": self._id, "reason": reason})

    def resume(self) -> None:
        """Continue a study that has failed or was stopped.

        `optimize` does so by itself with one that has failed.
        Trials that have failed by then no longer count for the study's end. A study that runs stays as it is.

        Raises:
            PreconditionError: if something else ends the study, such as max_trials: see update.

        Examples:
            >>> study.end("enough")
            >>> study.resume()
            >>> study.state
            'RUNNING'
        """
        self._write("ResumeStudy", {"name": self._id})

    def update(
        self,
        *,
        max_trials: int | None = None,
        max_duration: timedelta | None = None,
        max_cost: float | None = None,
        stop_gain: float | None = None,
        stop_gain_per: Literal["trials", "hour", "cost"] | None = None,
        goal: float | None = None,
        references: Mapping[str, float | None] | None = None,
        limits: Sequence[Limit | Mapping[str, Any]] | None = None,
        labels: Mapping[str, str | None] | None = None,
        note: str | None = None,
    ) -> None:
        """Change the budget, the goal, limits, labels or the note; a label that is None is removed.

        `max_trials`, `max_duration`, `max_cost`, `stop_gain` and `stop_gain_per` are those of `create_study`;
        a `stop_gain` of 0 removes it.

        `references` are the worst values that are still of interest, by the metrics of several objectives.
        `limits` take the place of all that there are, and what is best is decided anew.
        The `goal` of several objectives is the hypervolume of their front.
        A larger budget resumes a study that has completed.

        Raises:
            SpaceError: if `references` name no objective of several, or a limit is invalid.
            StudyFileError: if the server refuses a value.

        Examples:
            >>> study.update(max_trials=50, goal=0.01, note="second try")
            >>> study.note
            'second try'
        """

        def change(document: Message) -> None:
            _spend(document["spec"]["budget"], max_trials, max_duration, max_cost)
            _stop(document["spec"]["budget"], stop_gain, stop_gain_per)
            if goal is not None:
                if "objectives" in document["spec"]:
                    document["spec"]["goal"] = {"hypervolume": goal}
                else:
                    document["spec"]["objective"]["goal"] = goal
            _refer(document["spec"].get("objectives", []), references or {})
            if limits is not None:
                document["spec"]["limits"] = documents(limits_of(limits))
            if labels is not None:
                merged = {**document["metadata"].get("labels", {}), **labels}
                document["metadata"]["labels"] = {k: v for k, v in merged.items() if v is not None}
            if note is not None:
                document["spec"]["note"] = note

        self._edit(change)

    def set_user_attr(self, key: str, value: Any) -> None:
        """Note something about the study, also after it has ended.

        Trial.set_user_attr says what a value may be. What other processes note at the same time is not
        lost. None removes an attribute. All of a study together may have 16 KiB.

        Raises:
            SpaceError: for a key or a value that cannot be stored.

        Examples:
            >>> study.set_user_attr("data", {"set": "digits", "rows": 600})
            >>> study.user_attrs["data"]["rows"]
            600
        """
        self._write("UpdateStudy", {"name": self._id, "attributes": {key: attribute(key, value)}})

    def edit_space(self, parameters: Mapping[str, Parameter]) -> None:
        """Give parameters other ranges or other values; those that are not named stay.

        The study goes on with a new version of its space. Trials whose point is not in it stay in
        `trials`, but the optimiser does not learn from them, and they are neither best nor
        recommended. Initial points that do not fit are left out. Names, types, scales, steps,
        conditions, the levels of a Fidelity, and the order of values that stay cannot change.

        Raises:
            SpaceError: for a parameter that the study does not have.
            PreconditionError: if something changes that cannot.
            StudyFileError: if the new space is invalid.

        Examples:
            >>> study.edit_space({"x": fantasia.Float(0, 1)})
            >>> study.best_params
            {'x': 0.5, 'kind': 'a'}
        """

        def change(document: Message) -> None:
            listed = document["spec"]["parameters"]
            places = {p["name"]: i for i, p in enumerate(listed)}
            for name, parameter in parameters.items():
                if name not in places:
                    raise errors.SpaceError(f"parameter: expected one of {', '.join(places)}, got {name!r}")
                listed[places[name]] = parameter.document(name)
            initial = document["spec"].get("initial") or []
            document["spec"]["initial"] = [p for p in initial if fits(parameters, p)]

        document = json.loads(self._edit(change)["studyFile"])
        self.parameters: dict[str, Parameter] = space_of(
            document["spec"]["parameters"], {**self.parameters, **parameters}
        )

    def to_mlflow(self, experiment: str | None = None, tracking_uri: str | None = None) -> str:
        """Add a run of MLflow for each trial that ended, and return the id of the experiment.

        See `fantasia_hpo.mlflow.to_mlflow`.

        Raises:
            ImportError: if neither MLflow nor mlflow-skinny is installed.

        Examples:
            >>> experiment = study.to_mlflow("digits", tracking_uri="sqlite:///mlflow.db")
            >>> experiment.isdigit()
            True
        """
        try:
            from .mlflow import to_mlflow
        except ImportError:
            raise ImportError("to_mlflow needs MLflow: pip install mlflow-skinny") from None
        return to_mlflow(self, experiment, tracking_uri)

    def to_wandb(self, project: str | None = None, **options: Any) -> list[str]:
        """Add a run of W&B for each trial that ended, and return the ids of the runs that were added.

        A run has the trial's parameters, values, curve and attributes. `project` is named like the study
        unless it is given; `options` are those of `wandb.init`, such as `entity` and `mode="offline"`. The
        trial gets the label `wandb`, the id of its run: trials that have it are left out, so call this
        again to add later ones.

        Raises:
            ImportError: if wandb is not installed.

        Examples:
            >>> len(study.to_wandb("digits", mode="offline"))
            2
            >>> study.to_wandb("digits", mode="offline")
            []
        """
        try:
            from .wandb import to_wandb
        except ImportError:
            raise ImportError("to_wandb needs W&B: pip install wandb") from None
        return to_wandb(self, project, **options)


def _spend(
    budget: Message, max_trials: int | None, max_duration: timedelta | None, max_cost: float | None
) -> None:
    """Change how many trials a study may have, how long it may run, and what they may cost."""
    if max_trials is not None:
        budget["maxTrials"] = max_trials
    if max_duration is not None:
        budget["maxDuration"] = duration_of(max_duration)
    if max_cost is not None:
        budget["maxCost"] = max_cost


def _stop(budget: Message, gain: float | None, per: str | None) -> None:
    """Change below which gain a study ends, and what that is for."""
    if gain == 0:
        budget.pop("stopWhen", None)
    elif gain is not None:
        budget["stopWhen"] = {**budget.get("stopWhen", {}), "gain": gain}
    if per is not None:
        if "stopWhen" not in budget:
            raise errors.SpaceError(f"stop_gain_per: expected stop_gain beside it, got only {per!r}")
        budget["stopWhen"] = {**budget["stopWhen"], "per": per}


def _refer(objectives: Sequence[Message], references: Mapping[str, float | None]) -> None:
    """Give objectives of a study file other references; None is no reference."""
    by_metric = {o["metric"]: o for o in objectives}
    for metric, reference in references.items():
        if metric not in by_metric:
            wanted = f"one of {', '.join(by_metric)}" if by_metric else "none with a single objective"
            raise errors.SpaceError(f"references: expected {wanted}, got {metric!r}")
        by_metric[metric].pop("reference", None)
        if reference is not None:
            by_metric[metric]["reference"] = reference


def _collect(_study: Study, _trial: FrozenTrial) -> None:
    gc.collect()
