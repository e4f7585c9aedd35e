"""The trial that an objective gets."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from . import errors
from ._fork import renew_after_fork
from ._objectives import Objective, Reported
from ._values import Value, attribute
from .parameters import (
    Bool,
    Categorical,
    Fidelity,
    Fixed,
    Float,
    Int,
    Parameter,
    key,
    texts,
    whole,
)
from .record import FrozenTrial, TrialState

log: logging.Logger = logging.getLogger("fantasia_hpo")

_ANSWER = 1.0  # seconds that `should_prune` waits for an answer at most


class Owner(Protocol):
    """The study of a trial, as a trial knows it: a `Study`."""

    name: str
    objectives: dict[str, Objective]
    parameters: dict[str, Parameter]
    _seed: int
    _prunes: bool
    _hinted: bool

    def tell(
        self,
        trial: Trial,
        value: Value | None = None,
        *,
        state: TrialState | str = TrialState.COMPLETED,
        reason: str = "",
        details: str = "",
        checkpoint: str = "",
    ) -> FrozenTrial:
        """End a trial. See Study.tell."""
        ...

    def release(self, trial: Trial, *, checkpoint: str = "", reason: str = "") -> None:
        """Hand a trial back. See Study.release."""
        ...

    def _report(self, value: Value) -> dict[str, float]: ...

    def _add_report(self, trial: Trial, step: int, metrics: dict[str, float]) -> None: ...

    def _send_attrs(self, trial: Trial) -> None: ...

    def _await_reports(self, trial: Trial, timeout: float | None = None) -> None: ...


class Trial:
    """One evaluation: an objective gets it, or `Study.ask` returns it.

    `params` holds the value of each active parameter. `checkpoint` is what an earlier attempt
    reported, or the trial `predecessor` that this one continues: in a study with a Fidelity, or by
    `Study.continue_trial`. A trial may be used from several threads.

    Examples:
        >>> trial = study.ask()
        >>> trial.number, sorted(trial.params)
        (3, ['kind', 'x'])
    """

    _changes: tuple[str, ...] = ("params", "user_attrs", "_reported", "_step", "_action", "_reason")

    def __init__(self, study: Owner, record: FrozenTrial, client_id: str):
        self.study = study
        self.number: int = record.number
        self.params: dict[str, Any] = dict(record.params)
        self.checkpoint: str = record.checkpoint
        self.predecessor: int = record.predecessor
        self.client_id = client_id
        self.attempt: int = record.attempt
        self._renew()
        renew_after_fork(self)
        self._reported = Reported(study.objectives)
        self._step = 0
        self.user_attrs: dict[str, Any] = dict(record.user_attrs)
        self._unsent_attrs: dict[str, Any] = {}
        self._reports = 0
        self._asked = 0  # after how many reports `should_prune` has waited for the answer
        self._copied = False  # it was pickled
        self._process = os.getpid()
        self._action = ""
        self._reason = ""
        self._over = False

    def _renew(self) -> None:
        self._lock: threading.Lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._copied = True
        self._renew()
        renew_after_fork(self)

    def _evaluated(self) -> dict[str, Any]:
        """Return what an evaluation in another process has changed, for the trial that it is a copy of."""
        with self._lock:
            return {name: self.__dict__[name] for name in self._changes}

    def _absorb(self, changed: Mapping[str, Any]) -> None:
        """Take over what an evaluation in another process has changed."""
        changed = dict(changed)
        self._instruct(changed.pop("_action") or "CONTINUE", changed.pop("_reason"))
        with self._lock:
            self.__dict__.update(changed)

    def suggest_float(
        self,
        name: str,
        low: float | None = None,
        high: float | None = None,
        *,
        step: float | None = None,
        log: bool | None = None,
    ) -> float:
        """Return the value of a declared Float by its name.

        In a study without declared parameters, this declares one from `low` to `high`, both included, with
        a `step` from `low` on, or on a log scale. Otherwise these may be left out.

        Raises:
            DeclarationError: if an argument differs from what is declared.
            SpaceError: if the parameter's condition does not hold.

        Examples:
            >>> trial = study.ask()
            >>> trial.suggest_float("x", -1, 1) == trial.params["x"]
            True
        """
        return float(self._suggest(name, (Float, Int), low=low, high=high, step=step, log=log))

    def suggest_int(
        self,
        name: str,
        low: int | None = None,
        high: int | None = None,
        *,
        step: int | None = None,
        log: bool | None = None,
    ) -> int:
        """Return the value of a declared Int or Fidelity by its name.

        In a study without declared parameters, this declares an Int from `low` to `high`, both included, with
        a `step` from `low` on, or on a log scale. Otherwise these may be left out.

        Raises:
            DeclarationError: if an argument differs from what is declared.
            SpaceError: if the parameter's condition does not hold.

        Examples:
            >>> learning = fantasia.create_study(direction="minimize")
            >>> trial = learning.ask()
            >>> trial.suggest_int("depth", 1, 9) in range(1, 10)
            True
        """
        return int(self._suggest(name, (Int, Fidelity), low=low, high=high, step=step, log=log))

    def suggest_categorical(self, name: str, choices: Sequence[Any] | None = None) -> Any:
        """Return the value of a declared Categorical, Ordinal, Bool or Fixed parameter by its name.

        In a study without declared parameters, this declares a Categorical. In a study of `load_study`,
        which has the text of an object, the choices give the object itself.

        Raises:
            DeclarationError: if the choices are others than the declared ones.
            SpaceError: if the parameter's condition does not hold.

        Examples:
            >>> trial = study.ask()
            >>> trial.suggest_categorical("kind", ["a", "b"]) == trial.params["kind"]
            True
        """
        return self._suggest(name, (Categorical, Bool, Fixed), choices=choices)

    def report(self, value: Value, step: int | None = None) -> None:
        """Report what the evaluation has reached at a step.

        `value` is the study's metric, or a mapping of metrics. In a study of several objectives, it is
        a value for each, or a mapping; a number is the metric that early stopping compares. Steps must
        grow: other reports are left out of the curve and of early stopping, and a warning is logged. Without
        `step` the trial's reports are counted from 1. Then ask `should_prune`. Reports are sent in the
        background, and all have arrived when the trial ends.

        Raises:
            SpaceError: for a step that is no whole number from 0, or a value that is no number.

        Examples:
            >>> trial = study.ask()
            >>> trial.report(0.5, step=1)
            >>> trial.report({"value": 0.25, "seconds": 3.0}, step=2)
            >>> study.tell(trial).value
            0.25
        """
        metrics = self.study._report(value)
        if step is not None and (whole("step", step) < 0 or whole("step", step) >= 2**63):
            raise errors.SpaceError(f"step: expected a whole number from 0, got {step!r}")
        with self._lock:
            self._step = self._step + 1 if step is None else whole("step", step)
            step = self._step
            self._reports += 1
            behind = self._reported.behind(step, metrics)
            self._reported.add(step, metrics)
        if behind:
            log.warning(
                "trial %d: %s: its curve and early stopping leave such reports out, since steps must grow",
                self.number,
                behind,
            )
        self.study._add_report(self, step, metrics)
        if self._is_copy():  # the process that ends the trial does not know of this report
            self.study._await_reports(self)

    def should_prune(self) -> bool:
        """Return whether the evaluation should stop: raise TrialPruned then.

        The study's early stopping decides, after a report. It is also True when the trial was
        cancelled or handed back. This waits for the answer to the latest report, up to a second. Without
        early stopping it does so after the 1st, 2nd, 4th, 8th and so on.

        Examples:
            >>> trial = study.ask()
            >>> trial.report(0.5, step=1)
            >>> trial.should_prune()  # this study has no early stopping
            False
        """
        if self._reports and not self.study._hinted:
            self.study._hinted = True
            log.info(
                "trials report, and nothing stops them early: "
                "create_study(pruner=fantasia_hpo.pruners.MedianPruner()) does what Optuna does by default"
            )
        with self._lock:
            often = self.study._prunes or self._reports & (self._reports - 1) == 0
            wait = often and self._reports > self._asked
            self._asked = self._reports
        if wait:
            self.study._await_reports(self, _ANSWER)
        with self._lock:
            return self._action in ("PRUNE", "ABANDON")

    def set_user_attr(self, key: str, value: Any) -> None:
        """Note something about the trial, which tables and exports show.

        A value is a number, a text, a date, a path, an enum, an array, or a list, a set or a dict of
        these, also of NumPy, pandas and PyTorch. It becomes a value of JSON: a date its text, NaN the
        text "NaN". It is stored when the trial ends. All of a trial together may have 16 KiB; what is
        beyond is left out with a warning.

        Raises:
            SpaceError: for a value that has no such form; the text has its key and type.

        Examples:
            >>> trial = study.ask()
            >>> trial.set_user_attr("sizes", [64, 32])
            >>> study.tell(trial, 1.0).user_attrs
            {'sizes': [64, 32]}
        """
        value = attribute(key, value)
        with self._lock:
            self.user_attrs[key] = self._unsent_attrs[key] = value
        if self._is_copy():
            self.study._send_attrs(self)

    def _is_copy(self) -> bool:
        """Whether another process may end the trial."""
        return self._copied or self._process != os.getpid()

    def __repr__(self) -> str:
        return f"Trial({self.number}, {self.params})"

    def _instruct(self, action: str, reason: str) -> None:
        """Note what the server says to do. It says CONTINUE only as long as it says nothing else."""
        with self._lock:
            if action != "CONTINUE" and self._action != "ABANDON":
                self._action, self._reason = action, reason

    def _suggest(self, name: str, kinds: tuple[type[Any], ...], **given: Any) -> Any:
        """Return the value of a parameter, which is one of the kinds and has what is given.

        Of what is given, None counts as nothing. A LearningTrial declares the parameter instead.
        """
        parameter = self.study.parameters.get(name)
        if parameter is None:
            declared = ", ".join(self.study.parameters)
            raise errors.DeclarationError(
                f"parameter {name!r} is not declared in create_study(parameters=…); declared are {declared}"
            )
        if not isinstance(parameter, kinds):
            raise errors.DeclarationError(f"parameter {name!r} is declared as {type(parameter).__name__}")
        if name not in self.params:
            raise errors.SpaceError(
                f"parameter {name!r} is not active in trial {self.number}: its condition is {parameter.when}"
            )
        given = {field: value for field, value in given.items() if value is not None}
        if "choices" in given:
            return self._chosen(name, parameter, given["choices"])
        self._same_range(name, parameter, given)
        return self.params[name]

    def _chosen(self, name: str, parameter: Parameter, choices: Sequence[Any]) -> Any:
        """Return the choice that has the trial's value; the choices MUST be the declared ones."""
        declared: Sequence[Any] = (False, True)
        if isinstance(parameter, Categorical):
            declared = parameter.values
        elif isinstance(parameter, Fixed):
            declared = (parameter.value,)
        given = [key(text) for text in texts(choices)]
        if set(given) != {key(text) for text in texts(declared)}:
            raise self._differs(name, choices=list(choices))
        return choices[given.index(key(parameter.encode(self.params[name])))]

    def _same_range(self, name: str, parameter: Parameter, given: Mapping[str, Any]) -> None:
        """Raise DeclarationError if a bound, a step or a scale is another one than the declared one."""
        declared = {
            "low": getattr(parameter, "low", None),
            "high": getattr(parameter, "high", None),
            "step": getattr(parameter, "step", None) or (None if isinstance(parameter, Float) else 1),
            "log": getattr(parameter, "scale", "linear") == "log",
        }
        if any(value != declared[field] for field, value in given.items()):
            raise self._differs(name, **given)

    def _differs(self, name: str, **given: Any) -> errors.DeclarationError:
        wanted = ", ".join(f"{field}={value!r}" for field, value in given.items())
        return errors.DeclarationError(
            f"parameter {name!r} is declared as {self.study.parameters[name]!r}, got {wanted}"
        )
