"""The records of trials, as a study has them."""

from __future__ import annotations

import dataclasses
import enum
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from .parameters import Parameter, decode_point


class TrialState(str, enum.Enum):
    """The state of a trial. COMPLETED and all states after it are final.

    Examples:
        >>> [state.value for state in fantasia.TrialState if state.ended]
        ['COMPLETED', 'FAILED', 'INFEASIBLE', 'PRUNED', 'CANCELLED']
    """

    PENDING = "PENDING"
    QUEUED = "QUEUED"
    CLAIMED = "CLAIMED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    INFEASIBLE = "INFEASIBLE"
    PRUNED = "PRUNED"
    CANCELLED = "CANCELLED"
    COMPLETE = "COMPLETED"  # Optuna's names for the same
    FAIL = "FAILED"
    WAITING = "PENDING"

    @classmethod
    def _missing_(cls, value: object) -> TrialState | None:
        """Return the state of Optuna's name for it, or of a member of Optuna's own TrialState."""
        name = value.name if isinstance(value, enum.Enum) else value
        return cls.__members__.get(name) if isinstance(name, str) else None

    def __eq__(self, other: object) -> bool:
        """Whether it is the same state, also by Optuna's name or as a member of Optuna's own TrialState."""
        if isinstance(other, enum.Enum) and not isinstance(other, TrialState):
            return type(other).__name__ == "TrialState" and TrialState.__members__.get(other.name) is self
        return str.__eq__(self, other) or (
            isinstance(other, str) and TrialState.__members__.get(other) is self
        )

    def __ne__(self, other: object) -> bool:
        """Whether it is another state; that of str would not follow __eq__."""
        return not self == other

    __hash__ = str.__hash__

    def is_finished(self) -> bool:
        """Whether the trial has ended, as Optuna asks it.

        Examples:
            >>> fantasia.TrialState.COMPLETE.is_finished()
            True
        """
        return self.ended

    @property
    def ended(self) -> bool:
        """Whether the trial has ended."""
        return self not in (TrialState.PENDING, TrialState.QUEUED, TrialState.CLAIMED, TrialState.RUNNING)


@dataclass(frozen=True)
class FrozenTrial:
    """A trial as the study records it.

    `number` counts from 1. `values` has the value of each objective for a completed trial, or what a
    pruned trial had reached, and is None otherwise; `metrics` holds the other metrics. `reason` says in
    a few words why a trial failed, is infeasible, was pruned or cancelled, and `details` more, such as
    the end of a log. `source` says where the point came from, such as `model` or `design`. `attempt` is
    the number of the last attempt to evaluate it, 0 for none. `labels` and `note` are what people say
    of it. In a study with a Fidelity, `rung` is the trial's level, from 1. `predecessor` is the trial that
    it continues, or 0: one at the level below, or one that `Study.continue_trial` named. `user_attrs` is
    what `Trial.set_user_attr` has noted.
    `exceeded` has the limits of the study that a completed trial is outside of, such as "memory_mb <= 512".
    `cost` is what it has cost by now, in a study whose cost is not time; None if it has reported none.
    `worker` is who evaluated it, `checkpoint` what its last attempt has saved. `datetime_start` and
    `datetime_complete` are when the last attempt began and ended. `link` is its page on the dashboard.

    Examples:
        >>> trial = study.trials[0]
        >>> trial.number, trial.state.value, trial.values, trial.params
        (1, 'COMPLETED', [0.25], {'x': 0.5, 'kind': 'a'})
    """

    number: int
    state: TrialState
    params: dict[str, Any]
    values: list[float] | None
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    details: str = ""
    source: str = ""
    worker: str = ""
    checkpoint: str = ""
    attempt: int = 0
    rung: int = 0
    predecessor: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    note: str = ""
    datetime_start: datetime | None = None
    datetime_complete: datetime | None = None
    user_attrs: dict[str, Any] = field(default_factory=dict)
    exceeded: list[str] = field(default_factory=list)
    cost: float | None = None
    link: str = field(default="", compare=False)

    @property
    def value(self) -> float | None:
        """The value of the only objective; None if the trial has none.

        Raises:
            RuntimeError: if there are several, as in Optuna.

        Examples:
            >>> study.trials[1].value
            1.0
        """
        if self.values is None:
            return None
        if len(self.values) > 1:
            raise RuntimeError(f"value: trial {self.number} has {len(self.values)} values: use values")
        return self.values[0]

    @property
    def duration(self) -> float | None:
        """How many seconds the last attempt took, or None if it has not ended.

        Examples:
            >>> record = study.tell(study.ask(), 1.0)
            >>> 0 <= record.duration < 60
            True
        """
        if self.datetime_start is None or self.datetime_complete is None:
            return None
        return (self.datetime_complete - self.datetime_start).total_seconds()

    def _shown(self) -> dict[str, Any]:
        """Return the value, or the values if there are several, by the name of the attribute."""
        several = self.values is not None and len(self.values) > 1
        return {"values": self.values} if several else {"value": self.value}

    def __repr__(self) -> str:
        """Return three lines: how it ended, its parameters, and everything else that there is."""
        rest = {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if name not in ("number", "state", "values", "params", "link")
            and value not in ("", 0, {}, [], None)
        }
        for name in ("datetime_start", "datetime_complete"):
            if name in rest:
                rest[name] = rest[name].isoformat(sep=" ", timespec="milliseconds")
        ((name, value),) = self._shown().items()
        others = ", ".join(f"{name}={value!r}" for name, value in rest.items())
        return (
            f"FrozenTrial(number={self.number}, state={self.state.value}, {name}={value!r},\n"
            f"            params={self.params!r},\n"
            f"            {others})"
        )

    def _repr_html_(self) -> str:
        """Return a table, which a notebook shows."""
        rows: dict[str, Any] = {"state": self.state.value, **self._shown(), "reason": self.reason}
        rows["cost"] = self.cost
        rows["outside of"] = ", ".join(self.exceeded)
        rows |= {f"parameter {name}": value for name, value in self.params.items()}
        rows |= {f"metric {name}": value for name, value in self.metrics.items()}
        rows |= {f"attribute {name}": value for name, value in self.user_attrs.items()}
        if self.duration is not None:
            rows["seconds"] = round(self.duration, 3)
        return table(
            f"Trial {self.number}", {k: v for k, v in rows.items() if v not in ("", None)}, self.link
        )


def table(title: str, rows: Mapping[str, Any], link: str) -> str:
    """Return a table of HTML with two columns, and a link to the dashboard if there is one."""
    head = html.escape(title)
    if link:
        address = html.escape(link, quote=True)
        head = f'<a href="{address}" target="_blank" rel="noopener">{head}</a>'
    cells = "".join(
        f"<tr><th style='text-align: left'>{html.escape(str(name))}</th>"
        f"<td style='text-align: left'>{html.escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption style='text-align: left'>{head}</caption>{cells}</table>"


def trial_of(
    space: Mapping[str, Parameter],
    message: Mapping[str, Any],
    link: str = "",
    exceeded: Callable[[Sequence[float], Mapping[str, float]], list[str]] = lambda values, metrics: [],
) -> FrozenTrial:
    """Return the record of a trial in an answer of the server; `link` is the address of its study's page.

    `exceeded` returns the limits that values and metrics are outside of.
    """
    attempts = message.get("attempts", [])
    last = attempts[-1] if attempts else {}
    times = message.get("times", {})
    values = [float(v) for v in message.get("values", [])]
    metrics = {name: float(number) for name, number in message.get("metrics", {}).items()}
    state = TrialState(message["state"].removeprefix("TRIAL_STATE_"))
    return FrozenTrial(
        number=int(message["number"]),
        state=state,
        params=decode_point(space, message.get("parameters", {})),
        values=values or None,
        metrics=metrics,
        reason=_reason(message, last),
        details=last.get("failure", {}).get("message", ""),
        source=message.get("source", "").removeprefix("SOURCE_").lower(),
        worker=last.get("worker", ""),
        checkpoint=message.get("checkpoint", ""),
        attempt=int(last.get("number", 0)),
        rung=int(message.get("rung", 0)),
        predecessor=int(message.get("predecessor", 0)),
        labels=dict(message.get("labels", {})),
        note=message.get("note", ""),
        datetime_start=timestamp(times.get("started") or last.get("startTime")),
        datetime_complete=timestamp(times.get("ended") or last.get("endTime")),
        user_attrs=message.get("attributes", {}),
        exceeded=exceeded(values, metrics) if state is TrialState.COMPLETED else [],
        cost=None if message.get("cost") is None else float(message["cost"]),
        link=f"{link}/trials/{message['number']}" if link else "",
    )


def _reason(message: Mapping[str, Any], attempt: Mapping[str, Any]) -> str:
    if message.get("cancelReason"):
        return str(message["cancelReason"])
    stopped, failure = message.get("stopped"), attempt.get("failure")
    if failure:
        return str(failure.get("reason", ""))
    return str(stopped.get("reason", "")) if stopped else ""


def timestamp(text: str | None) -> datetime | None:
    """Return a time of protobuf's JSON, such as 2026-01-02T03:04:05.678901234Z, to the microsecond."""
    if not text:
        return None
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    microsecond = int(fraction[:6].ljust(6, "0")) if fraction else 0
    return datetime.fromisoformat(seconds).replace(tzinfo=timezone.utc, microsecond=microsecond)
