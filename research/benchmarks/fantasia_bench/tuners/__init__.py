"""The tuners by name. Each is asked for points and told losses; its module is imported when it is made."""

import importlib
import importlib.util

from ..definitions import TRIALS
from .base import Tuner

# name: (module, class, arguments, packages that it needs)
_PEERS = {
    "random": ("base", "Random", {}, ()),
    "optuna-tpe": ("optuna", "Optuna", {"kind": "tpe"}, ("optuna",)),
    "optuna-gp": ("optuna", "Optuna", {"kind": "gp"}, ("optuna", "torch")),
    "optuna-cmaes": ("optuna", "Optuna", {"kind": "cmaes"}, ("optuna", "cmaes")),
    "hebo": ("hebo", "Hebo", {}, ("hebo",)),
    "hebo-liar": ("hebo", "Hebo", {"liar": True}, ("hebo",)),
    "hebo-gpy": ("hebo", "Hebo", {"model": "gpy"}, ("hebo", "GPy")),
    "ax": ("ax", "Ax", {}, ("ax",)),
    "nevergrad": ("nevergrad", "Nevergrad", {}, ("nevergrad",)),
    "hyperopt": ("hyperopt", "HyperOpt", {}, ("hyperopt",)),
}
NAMES = tuple(_PEERS)
FANTASIA = "fantasia:"


class UnavailableError(Exception):
    """A tuner that is unknown, or whose packages or program are missing; says what to do."""


def check(name, binary):
    """Raises UnavailableError where make would fail. Fantasia's are named fantasia:ALGORITHM."""
    if name.startswith(FANTASIA):
        try:
            open(binary, "rb").close()
        except OSError as problem:
            raise UnavailableError(f"{name} needs the program fantasia ({problem}): run `make build`, or name it with --fantasia") from problem
        return
    if name not in _PEERS:
        raise UnavailableError(f"no tuner is named {name!r}: want fantasia:ALGORITHM or one of {', '.join(NAMES)}")
    missing = [package for package in _PEERS[name][3] if importlib.util.find_spec(package) is None]
    if missing:
        raise UnavailableError(f"{name} needs the Python package {', '.join(missing)}: run `research/benchmarks/setup peers`, and this with the peers' Python")


def make(name, space, seed, binary=None, settings=None, trials=TRIALS) -> Tuner:
    """A tuner of a space, a list of parameters. Fantasia alone has a `binary`, its program, algorithm `settings`, and is told the number of `trials`."""
    if name.startswith(FANTASIA):
        from .fantasia import Fantasia

        return Fantasia(space, seed, name.removeprefix(FANTASIA), binary, settings, trials)
    module, kind, arguments, _ = _PEERS[name]
    return getattr(importlib.import_module("." + module, __name__), kind)(space, seed, **arguments)
