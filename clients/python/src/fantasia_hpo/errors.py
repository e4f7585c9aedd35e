"""The exceptions of Fantasia."""

from __future__ import annotations

from collections.abc import Sequence


class FantasiaError(Exception):
    """Base of all errors that this package raises for its own reasons.

    Examples:
        >>> try:
        ...     fantasia.load_study("missing")
        ... except fantasia.FantasiaError as e:
        ...     print(type(e).__name__)
        NotFoundError
    """


class TrialPruned(FantasiaError):
    """Raise it in an objective to end a trial that `Trial.should_prune` stopped early.

    Examples:
        >>> def train(trial):
        ...     for step in range(1, 11):
        ...         trial.report(trial.params["x"] + 1 / step, step)
        ...         if trial.should_prune():
        ...             raise fantasia.TrialPruned
        ...     return trial.params["x"]
        >>> study.optimize(train, n_trials=2)
    """


class TrialInfeasible(FantasiaError):
    """Raise it in an objective when its parameters cannot be evaluated; the text says why.

    The trial counts against the budget, is not a failure, and the optimiser avoids such points.

    Examples:
        >>> def fails(trial):
        ...     raise fantasia.TrialInfeasible("x is too large for the simulation")
        >>> study.optimize(fails, n_trials=1)
        >>> study.trials[-1].state.value, study.trials[-1].reason
        ('INFEASIBLE', 'x is too large for the simulation')
    """


class SpaceError(FantasiaError, ValueError):
    """A parameter, a value or an option of a study is invalid.

    Examples:
        >>> fantasia.Float(1, 0)
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.SpaceError: high: expected a number above low, 1.0, got 0.0
    """


class DeclarationError(SpaceError):
    """An objective asks for a parameter in another way than the study declares it. It ends `optimize`.

    Examples:
        >>> study.ask().suggest_float("x", 0, 5)
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.DeclarationError: parameter 'x' is declared as Float(low=-1.0, ...
    """


class StudyFileError(SpaceError):
    """The server found problems in a study; `problems` has one text for each.

    Examples:
        >>> try:
        ...     fantasia.create_study(direction="minimize", parameters=study.parameters, algorithm="hebbo")
        ... except fantasia.StudyFileError as e:
        ...     print(e.problems[0])
        algorithm: ...
    """

    def __init__(self, problems: Sequence[str]):
        super().__init__("\n".join(problems))
        self.problems: tuple[str, ...] = tuple(problems)


class StudyEndedError(FantasiaError):
    """The study has ended, so it gives out no more trials; the text says why.

    Examples:
        >>> study.end("enough")
        >>> study.ask()
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.StudyEndedError: the study ... is stopped: enough
    """


class StudyFailedError(StudyEndedError):
    """The study failed, for example because its first three trials all failed.

    Examples:
        >>> def broken(trial):
        ...     raise OSError("the disk is full")
        >>> fresh = fantasia.create_study(direction="minimize", parameters={"x": fantasia.Float(0, 1)})
        >>> fresh.optimize(broken, n_trials=5)
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.StudyFailedError: ...
    """


class ServerError(FantasiaError):
    """The server refused a request. `code` is Connect's code, such as `not_found`.

    Examples:
        >>> try:
        ...     study.get_trial(99)
        ... except fantasia.ServerError as e:
        ...     print(e.code)
        not_found
    """

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


class NotFoundError(ServerError):
    """There is no such study or trial.

    Examples:
        >>> fantasia.load_study("missing")
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.NotFoundError: ...
    """


class AlreadyExistsError(ServerError):
    """A study with that name exists.

    Examples:
        >>> fantasia.create_study(name=study.name, direction="minimize", parameters=study.parameters)
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.AlreadyExistsError: ...
    """


class PreconditionError(ServerError):
    """The state of the study or the trial forbids the change.

    Examples:
        >>> study.cancel_trial(1)
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.PreconditionError: ...
    """


class UnavailableError(ServerError):
    """The server did not answer in time, even after retries.

    Examples:
        >>> issubclass(fantasia.UnavailableError, fantasia.ServerError)
        True
    """


class ProgramError(FantasiaError):
    """The program `fantasia` was not found, or it did not start.

    Examples:
        >>> import os
        >>> os.environ["FANTASIA_PROGRAM"] = "/nowhere/fantasia"
        >>> fantasia.create_study(direction="minimize", storage="elsewhere")
        Traceback (most recent call last):
            ...
        fantasia_hpo.errors.ProgramError: ...
    """
