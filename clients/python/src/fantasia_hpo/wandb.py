"""The trials of a study as runs of Weights & Biases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import wandb

from ._results import Results
from .record import FrozenTrial, TrialState

LABEL = "wandb"  # of a trial: the id of its run


def to_wandb(study: Results, project: str | None = None, **options: Any) -> list[str]:
    """Add a run for each trial that ended, and return the ids of the runs that were added.

    See Study.to_wandb.

    Examples:
        >>> from fantasia_hpo.wandb import to_wandb
        >>> len(to_wandb(study, "digits", mode="offline"))
        2
    """
    added = []
    for trial in study.trials:
        if trial.state.ended and trial.state is not TrialState.CANCELLED and LABEL not in trial.labels:
            added.append(_add(study, trial, {"project": project or study.name, **options}))
            study._write("EditTrial", {"name": study._name(trial), "labels": {LABEL: added[-1]}})
    return added


def _add(study: Results, trial: FrozenTrial, options: Mapping[str, Any]) -> str:
    """Add the run of a trial, and return its id."""
    details = {
        "trial": trial.number,
        "state": trial.state.value,
        "source": trial.source,
        "worker": trial.worker,
        "reason": trial.reason,
    }
    # Nothing about this process belongs to the trial: it may have run elsewhere, long ago.
    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,
        disable_code=True,
        x_disable_stats=True,
        x_disable_meta=True,
    )
    given: dict[str, Any] = {
        "group": study.name,
        "name": f"{study.name}-{trial.number}",
        "tags": [trial.state.value],
        "notes": trial.note or None,
        "settings": settings,
        "reinit": "create_new",  # the caller may have a run of its own
        **options,
    }
    run = wandb.init(config={**trial.params, "fantasia": details}, **given)
    values = dict(trial.metrics)
    for i, metric in enumerate(study.objectives):
        run.define_metric(metric, summary="none")  # the last step is not the value
        for step, value in study.curve(trial, metric).items():
            run.log({metric: value}, step=step)
        if trial.values is not None:
            values[metric] = trial.values[i]
    run.summary.update({name: value for name, value in values.items() if math.isfinite(value)})
    run.summary.update({f"user_attrs.{name}": value for name, value in trial.user_attrs.items()})
    if trial.duration is not None:
        run.summary["duration"] = trial.duration
    run.finish(exit_code=0 if trial.state in (TrialState.COMPLETED, TrialState.PRUNED) else 1)
    return str(run.id)
