"""The trials of a study as runs of MLflow."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from datetime import datetime

from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from ._results import Results
from .record import FrozenTrial, TrialState

_METRICS, _PARAMETERS = 1000, 100  # MLflow's limits of a request
_STATUS = {TrialState.COMPLETED: "FINISHED", TrialState.PRUNED: "KILLED"}


def to_mlflow(study: Results, experiment: str | None = None, tracking_uri: str | None = None) -> str:
    """Add a run for each trial that ended, and return the id of the experiment.

    A run has the trial's parameters, its metrics, its curves and its times. `experiment` is named
    like the study unless it is given, and is created if there is none. `tracking_uri` is where
    MLflow keeps its runs, by default what MLflow is set to. Trials that have a run already are left
    out, so call this again to add later ones. See `Study.to_mlflow`.
    """
    client = MlflowClient(tracking_uri)
    name = experiment or study.name
    found = client.get_experiment_by_name(name)
    experiment_id = str(found.experiment_id if found else client.create_experiment(name))
    known = set(_known(client, experiment_id, study))
    for trial in study.trials:
        if trial.state.ended and trial.state is not TrialState.CANCELLED and trial.number not in known:
            _add(client, experiment_id, study, trial)
    return experiment_id


def _known(client: MlflowClient, experiment_id: str, study: Results) -> Iterator[int]:
    """Yield the numbers of the trials whose runs are complete. A run that a crash cut short is deleted."""
    token = None
    while True:
        where = f"tags.`fantasia.study` = '{study._id}'"
        page = client.search_runs([experiment_id], where, max_results=1000, page_token=token)
        for run in page:
            if run.info.status == "RUNNING":
                client.delete_run(run.info.run_id)
            else:
                yield int(run.data.tags["fantasia.trial"])
        token = page.token
        if not token:
            return


def _add(client: MlflowClient, experiment_id: str, study: Results, trial: FrozenTrial) -> None:
    tags = {
        "fantasia.study": study._id,
        "fantasia.trial": str(trial.number),
        "fantasia.state": trial.state.value,
        "fantasia.source": trial.source,
        "fantasia.worker": trial.worker,
        "fantasia.reason": trial.reason,
    }
    ended = _milliseconds(trial.datetime_complete) or int(time.time() * 1000)
    started = _milliseconds(trial.datetime_start) or ended
    name = f"{study.name}-{trial.number}"
    run = client.create_run(experiment_id, start_time=started, tags=tags, run_name=name).info.run_id
    # MLflow refuses other characters in names.
    params = [Param(re.sub(r"[^\w./: -]", "_", name), str(value)) for name, value in trial.params.items()]
    for i in range(0, len(params), _PARAMETERS):
        client.log_batch(run, params=params[i : i + _PARAMETERS])
    metrics = list(_metrics(study, trial, started, ended))
    for i in range(0, len(metrics), _METRICS):
        client.log_batch(run, metrics=metrics[i : i + _METRICS])
    client.set_terminated(run, _STATUS.get(trial.state, "FAILED"), end_time=ended)


def _metrics(study: Results, trial: FrozenTrial, started: int, ended: int) -> Iterator[Metric]:
    """Yield the curves, then the values: the latest of a metric is its value.

    MLflow takes the value of the last step, and of several the one of the latest time.
    """
    values, last = dict(trial.metrics), {}
    for i, metric in enumerate(study.objectives):
        curve = study.curve(trial, metric)
        last[metric] = max(curve, default=0)
        for step, value in curve.items():
            yield Metric(metric, value, started, step)
        if trial.values is not None:
            values[metric] = trial.values[i]
    for name, value in values.items():
        if math.isfinite(value):
            yield Metric(name, value, max(ended, started + 1), last.get(name, 0))


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)
