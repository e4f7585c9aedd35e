"""The exceptions of Fantasia."""

from __future__ import annotations

from collections.abc import Sequence


class FantasiaError(Exception):
    """Base of all errors that this package raises for its own reasons."""


class TrialPruned(FantasiaError):
    """Raise it in an objective to end a trial that `Trial.should_prune` stopped early."""


class TrialInfeasible(FantasiaError):
    """Raise it in an objective when its parameters cannot be evaluated; the text says why.

    The trial counts against the budget, is not a failure, and the optimiser avoids such points.
    """


class SpaceError(FantasiaError, ValueError):
    """A parameter, a value or an option of a study is invalid."""


class DeclarationError(SpaceError):
    """An objective asks for a parameter in another way than the study declares it. It ends `optimize`."""


class StudyFileError(SpaceError):
    """The server found problems in a study; `problems` has one text for each."""

    def __init__(self, problems: Sequence[str]):
        super().__init__("\n".join(problems))
        self.problems: tuple[str, ...] = tuple(problems)


class StudyEndedError(FantasiaError):
    """The study has ended, so it gives out no more trials; the text says why."""


class StudyFailedError(StudyEndedError):
    """The study failed, for example because its first three trials all failed."""


class ServerError(FantasiaError):
    """The server refused a request. `code` is Connect's code, such as `not_found`."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


class NotFoundError(ServerError):
    """There is no such study or trial."""


class AlreadyExistsError(ServerError):
    """A study with that name exists."""


class PreconditionError(ServerError):
    """The state of the study or the trial forbids the change."""


class UnavailableError(ServerError):
    """The server did not answer in time, even after retries."""


class ProgramError(FantasiaError):
    """The program `fantasia` was not found, or it did not start."""
