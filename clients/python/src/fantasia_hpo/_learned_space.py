"""A study's space, as its trials declare it."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import errors
from ._declarations import PLACEHOLDER, Evidence, name_problem, with_conditions, with_declarations
from ._draw import complete, seeded
from ._learning_trial import LearningTrial
from ._results import Results
from .parameters import Parameter, encode_point
from .record import TrialState

log: logging.Logger = logging.getLogger("fantasia_hpo")

_TRIES = 30  # how often a change of the space is made again because another process was faster
_WHOLE = ("TRIAL_STATE_COMPLETED", "TRIAL_STATE_PRUNED")  # its program has asked for all that it needs


class LearnedSpace:
    """Keeps the space of a study up to what its trials declare. Processes may do so at once."""

    def __init__(self, study: Results):
        self._study = study
        self.lock = threading.Lock()  # trials of a process end one after another
        self.wishes: deque[dict[str, Any]] = deque()  # points of parameters that are not declared yet

    def wish(self) -> dict[str, Any]:
        """Return the values that the next trial is to have, or none. Threads may call it at once."""
        try:
            return self.wishes.popleft()
        except IndexError:
            return {}

    def adopt(self, params: Mapping[str, Any], declared: Mapping[str, Parameter]) -> dict[str, Any]:
        """Make the point of a trial that was evaluated elsewhere a part of the space, and return it.

        `declared` has at least the parameters that no trial of the study has asked for yet.
        """
        if not self._study._knows(params):
            self._study._refresh()  # other processes may have declared them
        known = self._study.parameters
        if unknown := [name for name in params if name not in known and name not in declared]:
            raise errors.SpaceError(
                f"parameter {unknown[0]!r}: no trial of the study {self._study.name!r} has asked for it yet, "
                f"so its range is not known: give it, as in add_trial(…, parameters={{{unknown[0]!r}: "
                "fantasia.Float(low, high)})"
            )
        new = {name: declared[name] for name in params if name in declared}
        for name, problem in ((name, name_problem(name)) for name in new):
            if problem:
                raise errors.DeclarationError(f"parameter {name!r}: {problem}")
        with self.lock:
            point = encode_point(with_declarations(known, new), params)
            return encode_point(self.learn(new, [Evidence(point, whole=True)]), params)

    def settle(self, trial: LearningTrial, state: TrialState) -> dict[str, Any] | None:
        """Return the point that a trial has evaluated, for the server; None if that was the suggested one.

        Before, what the trial has declared is made a part of the space.
        """
        point, whole = trial.point(), state in (TrialState.COMPLETED, TrialState.PRUNED)
        space = self._study.parameters
        if space and point == trial._suggested_point and with_declarations(space, trial.declared) == space:
            return None
        if not trial.declared:  # it has failed before it asked for anything
            return None
        space = self.learn(trial.declared, [Evidence(point, whole)], without=trial.number)
        suggested = {n: space[n].decode(v) for n, v in trial._suggested_point.items() if n in space}
        filled = complete(space, trial.params, seeded(self._study._seed, trial.number), suggested)
        return encode_point(space, filled)

    def learn(
        self, declared: Mapping[str, Parameter], evidence: Sequence[Evidence] = (), without: int = 0
    ) -> dict[str, Parameter]:
        """Make declarations a part of the space, and return that.

        `evidence` is of trials that the study does not know, or not as they are: `without` is one.

        It is made again if another process has changed the space meanwhile.
        """
        for _ in range(_TRIES):
            message = self._study._get()
            document = json.loads(message["studyFile"])
            known = self._study._space_in(document)
            space = with_declarations(known, declared)
            space = with_conditions(space, [*self._evidence(without), *evidence])
            self._tell_changes(known, space)
            changed = [p.document(name) for name, p in space.items()]
            if changed == [p.document(name) for name, p in known.items()]:
                self._study.parameters = space
                return space
            document["spec"]["parameters"] = changed
            request = {
                "name": self._study._id,
                "studyFile": json.dumps(document),
                "spaceVersion": int(message.get("spaceVersion", 1)),
            }
            try:
                self._study._write("UpdateStudy", request)
            except errors.PreconditionError as e:
                log.debug("the space has changed meanwhile: %s", e)
                continue
            self._study.parameters = space
            return space
        raise errors.FantasiaError(f"the space of {self._study.name!r} did not settle in {_TRIES} tries")

    def _evidence(self, without: int) -> Iterator[Evidence]:
        request = {"parent": self._study._id, "pageSize": 1000}
        for message in self._study._pages("ListTrials", request, "trials"):
            point = message.get("parameters", {})
            whole = message["state"] in _WHOLE
            if whole and int(message["number"]) != without and PLACEHOLDER not in point:
                yield Evidence(point, whole)

    def _tell_changes(self, known: Mapping[str, Parameter], space: Mapping[str, Parameter]) -> None:
        for name, parameter in space.items():
            if name not in known:
                log.debug("parameter %r is new: %r", name, parameter)
            elif known[name] != parameter:
                log.info("parameter %r was declared as %r, and is now %r", name, known[name], parameter)
