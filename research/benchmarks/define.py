"""Define-by-run on the tasks of spaces.py, for methods.py: a program asks for each parameter where it needs it.

    define:learned           Fantasia's Python client, and a study without parameters, which learns the space with its conditions
    define:declared          the same client with the space declared; the program asks for the same parameters
    define:optuna-tpe        Optuna's TPE as it is by default
    define:optuna-tpe-group  Optuna's TPE with multivariate, group and constant_liar

The studies of Fantasia wait for the optimiser as long as it takes, so that a busy machine changes no suggestion. Needs Optuna:
`$(clients/python/setup test)/bin/python` has it.
"""
import contextlib
import functools
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients/python/src"))


def active(parameter, point):
    return all(point.get(name) in values for name, values in parameter.get("when", {}).items())


def ask_for(trial, parameters):
    """The point of a trial, parameter by parameter, as an objective with `if` asks for it."""
    point = {}
    for p in parameters:
        name, log = p["name"], p.get("scale") == "log"
        if not active(p, point):
            continue
        if p["type"] == "categorical":
            point[name] = trial.suggest_categorical(name, p["values"])
        else:
            suggest = trial.suggest_int if p["type"] == "int" else trial.suggest_float
            point[name] = suggest(name, p["min"], p["max"], log=log)
    return point


@functools.cache
def storage():
    """The folder of all studies of this process; the server in it ends with the process."""
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


class Fantasia:
    def __init__(self, task, seed, binary, declared):
        os.environ["FANTASIA_PROGRAM"] = str(Path(binary).resolve())
        import fantasia_hpo
        from fantasia_hpo.parameters import space_of

        fantasia_hpo.logging.set_verbosity("WARNING")
        self.task, self.client = task, fantasia_hpo
        parameters = space_of(task.parameters) if declared else None
        self.study = fantasia_hpo.create_study(direction="minimize", parameters=parameters, seed=seed, storage=storage().name)
        self.study._edit(lambda document: document["spec"]["algorithm"].update(wait="10m", fallbackAfter="10m"))

    def ask(self, count):
        trials = [self.study.ask() for _ in range(count)]
        return [(trial, ask_for(trial, self.task.parameters)) for trial in trials]

    def tell(self, told):
        for trial, _, loss in told:
            self.study.tell(trial, loss)

    def recommend(self):
        with contextlib.suppress(ValueError):
            return self.study.recommended.params

    def close(self):
        assert not any(t.source == "fallback" for t in self.study.trials), "the optimiser was too slow"
        self.client.delete_study(self.study.name, storage().name)


class Optuna:
    def __init__(self, task, seed, _binary, **options):
        import warnings

        import optuna

        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.task, self.study = task, optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, **options))

    def ask(self, count):
        trials = [self.study.ask() for _ in range(count)]
        return [(trial, ask_for(trial, self.task.parameters)) for trial in trials]

    def tell(self, told):
        for trial, _, loss in told:
            self.study.tell(trial, loss)

    def recommend(self):
        return None

    def close(self):
        pass


TUNERS = {
    "learned": functools.partial(Fantasia, declared=False),
    "declared": functools.partial(Fantasia, declared=True),
    "optuna-tpe": Optuna,
    "optuna-tpe-group": functools.partial(Optuna, multivariate=True, group=True, constant_liar=True),
}
