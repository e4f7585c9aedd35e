"""Optuna's pruners by their names and arguments: `create_study(pruner=MedianPruner())`.

Each is a rule of docs/tune/early-stopping.md with settings that make Optuna's decisions.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from . import errors
from .create import EarlyStopping

__all__ = [
    "HyperbandPruner",
    "MedianPruner",
    "NopPruner",
    "PatientPruner",
    "PercentilePruner",
    "SuccessiveHalvingPruner",
    "ThresholdPruner",
    "WilcoxonPruner",
]

# Optuna has none of the limits that the rules have.
_UNLIMITED: dict[str, Any] = {
    "minSteps": 0,
    "minCompleted": 0,
    "minProgress": 0,
    "maxProgress": 1,
    "protect": 0,
}


class PercentilePruner(EarlyStopping):
    """Prune a trial whose best report is not among the best `percentile` % of the completed trials there.

    Trials are pruned once `n_startup_trials` have completed, from step `n_warmup_steps` on, at the first
    report of every `interval_steps`, and where at least `n_min_trials` have reported.

    Examples:
        >>> from fantasia_hpo.pruners import PercentilePruner
        >>> tuned = fantasia.create_study(direction="minimize", pruner=PercentilePruner(25.0))
    """

    def __init__(
        self,
        percentile: float,
        n_startup_trials: int = 5,
        n_warmup_steps: int = 0,
        interval_steps: int = 1,
        *,
        n_min_trials: int = 1,
    ):
        _check("percentile", percentile, 0, 100)
        _check("n_startup_trials", n_startup_trials)
        _check("n_warmup_steps", n_warmup_steps)
        _check("interval_steps", interval_steps, 1)
        _check("n_min_trials", n_min_trials, 1)
        settings = {
            "keep": percentile,
            "minCompleted": n_startup_trials,
            "minSteps": n_warmup_steps,
            "interval": interval_steps,
            "minCompared": n_min_trials,
        }
        super().__init__("percentile", _UNLIMITED | settings)


class MedianPruner(PercentilePruner):
    """Prune a trial whose best report is worse than the median of the completed trials at its step.

    See PercentilePruner for the arguments. This is what Optuna does by default.

    Examples:
        >>> from fantasia_hpo.pruners import MedianPruner
        >>> tuned = fantasia.create_study(direction="minimize", pruner=MedianPruner(n_warmup_steps=10))
    """

    def __init__(
        self,
        n_startup_trials: int = 5,
        n_warmup_steps: int = 0,
        interval_steps: int = 1,
        *,
        n_min_trials: int = 1,
    ):
        super().__init__(50.0, n_startup_trials, n_warmup_steps, interval_steps, n_min_trials=n_min_trials)


class SuccessiveHalvingPruner(EarlyStopping):
    """Prune a trial that is not among the best 1 / `reduction_factor` of those at its rung.

    The first rung is at step `min_resource * reduction_factor**min_early_stopping_rate`, and each further one
    at `reduction_factor` times as many steps. "auto" is a hundredth of the steps of the first completed
    trial, at least 1. The first `bootstrap_count` trials at a rung are pruned.

    Examples:
        >>> from fantasia_hpo.pruners import SuccessiveHalvingPruner
        >>> tuned = fantasia.create_study(direction="minimize", pruner=SuccessiveHalvingPruner(1))
    """

    def __init__(
        self,
        min_resource: Literal["auto"] | int = "auto",
        reduction_factor: int = 4,
        min_early_stopping_rate: int = 0,
        bootstrap_count: int = 0,
    ):
        auto = min_resource == "auto"
        if not auto:
            _check("min_resource", min_resource, 1)
        _check("reduction_factor", reduction_factor, 2)
        _check("min_early_stopping_rate", min_early_stopping_rate)
        _check("bootstrap_count", bootstrap_count)
        if auto and (bootstrap_count or min_early_stopping_rate):
            raise errors.SpaceError(
                "min_resource: expected a number beside bootstrap_count or min_early_stopping_rate, "
                'got "auto"'
            )
        settings = {
            "minSteps": 0 if auto else int(min_resource) * reduction_factor**min_early_stopping_rate,
            "reduction": reduction_factor,
            "bootstrap": bootstrap_count,
            "once": True,
        }
        super().__init__("asha", _UNLIMITED | settings)


class HyperbandPruner(EarlyStopping):
    """Prune as SuccessiveHalvingPruner does, in groups of which each starts one rung later.

    There are as many groups as rungs from `min_resource` to `max_resource`. "auto" is one more than the last
    step of the first completed trial, and no trial is pruned before. Which group a trial is in follows
    from its number; Optuna draws it by the study's name, too. See SuccessiveHalvingPruner for the other
    arguments.

    Examples:
        >>> from fantasia_hpo.pruners import HyperbandPruner
        >>> tuned = fantasia.create_study(direction="minimize", pruner=HyperbandPruner(1, 81))
    """

    def __init__(
        self,
        min_resource: int = 1,
        max_resource: Literal["auto"] | int = "auto",
        reduction_factor: int = 3,
        bootstrap_count: int = 0,
    ):
        _check("min_resource", min_resource, 1)
        _check("reduction_factor", reduction_factor, 2)
        _check("bootstrap_count", bootstrap_count)
        brackets = 0
        if max_resource != "auto":
            _check("max_resource", max_resource, min_resource)
            brackets = math.floor(math.log(int(max_resource) / min_resource, reduction_factor)) + 1
        elif bootstrap_count:
            raise errors.SpaceError('max_resource: expected a number beside bootstrap_count, got "auto"')
        settings = {
            "minSteps": min_resource,
            "reduction": reduction_factor,
            "brackets": brackets,
            "bootstrap": bootstrap_count,
            "once": True,
        }
        super().__init__("asha", _UNLIMITED | settings)


class PatientPruner(EarlyStopping):
    """Prune by `wrapped_pruner` only once the last `patience` + 1 reports have brought no improvement.

    They count as none if all are worse than the best before them by more than `min_delta`. Without another
    pruner, None, the trial is then pruned.

    Examples:
        >>> from fantasia_hpo.pruners import MedianPruner, PatientPruner
        >>> patient = PatientPruner(MedianPruner(), patience=3)
        >>> tuned = fantasia.create_study(direction="minimize", pruner=patient)
    """

    def __init__(self, wrapped_pruner: EarlyStopping | None, patience: int, min_delta: float = 0.0):
        _check("patience", patience)
        _check("min_delta", min_delta)
        if wrapped_pruner is not None and not isinstance(wrapped_pruner, EarlyStopping):
            raise errors.SpaceError(
                f"wrapped_pruner: expected None or a pruner of fantasia_hpo.pruners, got {wrapped_pruner!r}"
            )
        if isinstance(wrapped_pruner, PatientPruner):
            raise errors.SpaceError("wrapped_pruner: expected another pruner than a PatientPruner")
        inner = wrapped_pruner or EarlyStopping("patient", _UNLIMITED)
        settings = {**inner.settings, "patience": patience, "minDelta": min_delta}
        super().__init__(inner.name, settings if inner.name else {}, inner.metric)


class ThresholdPruner(EarlyStopping):
    """Prune a trial that reports less than `lower`, more than `upper`, or NaN.

    It is asked from step `n_warmup_steps` on, at the first report of every `interval_steps`.

    Examples:
        >>> from fantasia_hpo.pruners import ThresholdPruner
        >>> tuned = fantasia.create_study(direction="minimize", pruner=ThresholdPruner(upper=10.0))
    """

    def __init__(
        self,
        lower: float | None = None,
        upper: float | None = None,
        n_warmup_steps: int = 0,
        interval_steps: int = 1,
    ):
        _check("n_warmup_steps", n_warmup_steps)
        _check("interval_steps", interval_steps, 1)
        bounds = {"lower": lower, "upper": upper}
        given = {name: float(bound) for name, bound in bounds.items() if bound is not None}
        settings = {"minSteps": n_warmup_steps, "interval": interval_steps}
        super().__init__("threshold", _UNLIMITED | settings | given)


class WilcoxonPruner(EarlyStopping):
    """Prune a trial that a signed-rank test says is worse than the best one on the steps that both have.

    Each step is a fold, a seed or an instance, in growing order. The trial is pruned if the test gives less
    than `p_threshold`, once both have `n_startup_steps` in common.

    Examples:
        >>> from fantasia_hpo.pruners import WilcoxonPruner
        >>> tuned = fantasia.create_study(direction="minimize", pruner=WilcoxonPruner(p_threshold=0.05))
    """

    def __init__(self, *, p_threshold: float = 0.1, n_startup_steps: int = 2):
        _check("p_threshold", p_threshold, 0, 1)
        _check("n_startup_steps", n_startup_steps)
        settings = {"pValue": p_threshold, "minCompared": max(2, n_startup_steps)}
        super().__init__("wilcoxon", _UNLIMITED | settings)


class NopPruner(EarlyStopping):
    """Prune no trial, as without a pruner, and say nothing about it.

    Examples:
        >>> from fantasia_hpo.pruners import NopPruner
        >>> tuned = fantasia.create_study(direction="minimize", pruner=NopPruner())
    """

    def __init__(self) -> None:
        super().__init__("")


def _check(name: str, value: Any, least: float = 0, most: float = math.inf) -> None:
    """Raise SpaceError if an argument is no number in a range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        wanted = f"a number from {least:g}" + ("" if most == math.inf else f" to {most:g}")
        raise errors.SpaceError(f"{name}: expected {wanted}, got {value!r}")
