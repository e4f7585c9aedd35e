"""Earlier studies, from whose trials a new one learns."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import errors
from .record import FrozenTrial, TrialState
from .study import Study

# The most trials of all earlier studies together.
_MOST = 1000

# The endings of files that only the command line reads.
_FILES = (".csv", ".json", ".jsonl", ".ndjson", ".parquet")


def documents(earlier: Sequence[str | Study]) -> list[dict[str, Any]]:
    """Return the earlier studies as a study file has them.

    A name is that of a study of the same storage, which the server reads. The trials of a Study, which
    may be in another storage, are sent along.
    """
    if isinstance(earlier, (str, Study)):
        earlier = [earlier]
    found: list[dict[str, Any]] = []
    for i, one in enumerate(earlier):
        if isinstance(one, str) and one.lower().endswith(_FILES):
            raise errors.SpaceError(
                f"learn_from[{i}]: expected the name of a study or a Study, got the file {one!r}; "
                "`fantasia study create --learn-from` and `fantasia run --learn-from` read files"
            )
        if isinstance(one, str):
            found.append({"study": re.sub(r"[_. ]+", "-", one.lower())})
        elif isinstance(one, Study):
            found.append(_document(one, i, _MOST // len(earlier)))
        else:
            raise errors.SpaceError(f"learn_from[{i}]: expected the name of a study or a Study, got {one!r}")
    return found


def _document(study: Study, i: int, most: int) -> dict[str, Any]:
    if len(study.objectives) > 1:
        raise errors.SpaceError(
            f"learn_from[{i}]: the study {study.name!r} has several objectives; expected one"
        )
    minimize = next(iter(study.objectives.values())).direction == "minimize"
    done: list[dict[str, Any]] = [
        {"parameters": _stored(study, t.params), "value": t.value} | _effort(t)
        for t in study.trials
        if t.state is TrialState.COMPLETED and t.value is not None and math.isfinite(t.value)
    ]
    if not done:
        raise errors.SpaceError(
            f"learn_from[{i}]: the study {study.name!r} has no completed trial; expected some"
        )
    if len(done) > most:
        # The best half, and an even share of the others.
        done.sort(key=lambda t: t["value"] if minimize else -t["value"])
        best, rest = done[: most // 2], done[most // 2 :]
        left = most - len(best)
        done = best + [rest[k * len(rest) // left] for k in range(left)]
    direction = "minimize" if minimize else "maximize"
    return {"study": study.name, "direction": direction, "trials": done}


def _stored(study: Study, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as the study stores them: a choice may be any object here, and is a text there.

    A value that is no longer in the study's space, which may have changed, stays as it is.
    """
    found: dict[str, Any] = {}
    for name, value in params.items():
        try:
            found[name] = study.parameters[name].encode(value)
        except (KeyError, errors.SpaceError):
            found[name] = value if isinstance(value, (str, int, float)) else str(value)
    return found


def _effort(t: FrozenTrial) -> dict[str, float]:
    """Return how long a trial took and what it has cost, as far as that is known.

    A trial that continues another, or was evaluated at a level of a fidelity, does not say so of a whole one.
    """
    if t.rung or t.predecessor:
        return {}
    found = {"seconds": t.duration, "cost": t.cost}
    return {name: v for name, v in found.items() if v is not None and 0 < v < math.inf}
