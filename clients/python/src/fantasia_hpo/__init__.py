"""Fantasia finds good values for the parameters of expensive functions.

import fantasia_hpo as fantasia

study = fantasia.create_study(direction="minimize", parameters={"x": fantasia.Float(-10, 10)})
study.optimize(lambda trial: (trial.params["x"] - 2) ** 2, n_trials=20)
print(study.best_params)
"""

from . import logging, pruners
from ._limits import Limit
from ._objectives import Objective
from ._results import Expected, Picture, Recommendation
from .create import Algorithm, EarlyStopping, create_study, delete_study, load_study, study_names
from .errors import (
    AlreadyExistsError,
    DeclarationError,
    FantasiaError,
    NotFoundError,
    PreconditionError,
    ProgramError,
    ServerError,
    SpaceError,
    StudyEndedError,
    StudyFailedError,
    StudyFileError,
    TrialInfeasible,
    TrialPruned,
    UnavailableError,
)
from .evaluator import Evaluator, WorkerTrial, evaluator
from .parameters import Bool, Categorical, Fidelity, Fixed, Float, Int, Normal, Ordinal, Parameter
from .record import FrozenTrial, TrialState
from .study import MaxTrialsCallback, Study
from .trial import Trial

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "AlreadyExistsError",
    "Bool",
    "Categorical",
    "DeclarationError",
    "EarlyStopping",
    "Evaluator",
    "Expected",
    "FantasiaError",
    "Fidelity",
    "Fixed",
    "Float",
    "FrozenTrial",
    "Int",
    "Limit",
    "MaxTrialsCallback",
    "Normal",
    "NotFoundError",
    "Objective",
    "Ordinal",
    "Parameter",
    "Picture",
    "PreconditionError",
    "ProgramError",
    "Recommendation",
    "ServerError",
    "SpaceError",
    "Study",
    "StudyEndedError",
    "StudyFailedError",
    "StudyFileError",
    "Trial",
    "TrialInfeasible",
    "TrialPruned",
    "TrialState",
    "UnavailableError",
    "WorkerTrial",
    "create_study",
    "delete_study",
    "evaluator",
    "load_study",
    "logging",
    "pruners",
    "study_names",
]
