"""A searcher for Ray Tune that asks Fantasia for the trials' configurations."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ray.air.constants import TRAINING_ITERATION
from ray.tune.search import Searcher
from ray.tune.search import sample as domains
from ray.tune.search.variant_generator import parse_spec_vars
from ray.tune.utils import flatten_dict
from ray.tune.utils.util import unflatten_dict

from .create import Algorithm, create_study
from .errors import FantasiaError, SpaceError, StudyEndedError, StudyFailedError
from .parameters import Categorical, Fixed, Float, Int, Parameter
from .record import TrialState
from .study import Study
from .trial import Trial

log: logging.Logger = logging.getLogger("fantasia_hpo")


class FantasiaSearch(Searcher):
    """A searcher for `tune.TuneConfig(search_alg=…)`, which suggests points and learns from results.

    The space is that of the Tuner, unless `space` is given: parameters of fantasia_hpo or domains of Ray, by
    name. `points_to_evaluate` come first. `name`, `storage`, `algorithm`, `seed` and `constraints` are
    those of create_study; a search with the name of an earlier one continues it. After the first suggestion,
    `study` is the study. Ray's scheduler decides which trials stop early.

    Raises:
        SpaceError: for grid search, functions and normal distributions.

    Examples:
        >>> from fantasia_hpo.ray import FantasiaSearch
        >>> search = FantasiaSearch({"x": fantasia.Float(0, 1)}, metric="loss", mode="min")
        >>> sorted(search.suggest("trial-1"))
        ['x']
    """

    def __init__(
        self,
        space: Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
        name: str | None = None,
        storage: str | os.PathLike[str] | None = None,
        algorithm: str | Algorithm = "hebo",
        seed: int | None = None,
        constraints: Sequence[str] = (),
    ):
        super().__init__(metric=metric, mode=mode)
        self._metric: Any = self.metric
        self._mode: Any = self.mode
        self.study: Study | None = None
        self._space = None if space is None else parameters_of(space)
        self._points = list(points_to_evaluate)
        self._options: dict[str, Any] = {
            "name": name,
            "storage": None if storage is None else os.fspath(storage),
            "algorithm": algorithm,
            "seed": seed,
            "constraints": list(constraints),
        }
        self._trials: dict[str, Trial] = {}

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take the Tuner's metric, mode and space, unless there is a space already."""
        if self._space is not None:
            return False
        self._space = parameters_of(config)
        self._metric, self._mode = metric or self._metric, mode or self._mode
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the configuration of a new trial, or FINISHED if the study has ended."""
        try:
            trial = self._started().ask()
        except StudyFailedError:
            raise
        except StudyEndedError as e:
            log.info("%s", e)
            return Searcher.FINISHED
        self._trials[trial_id] = trial
        return unflatten_dict(dict(trial.params))

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Report what a trial has reached."""
        if trial_id in self._trials and self.metric in result:
            self._trials[trial_id].report(float(result[self.metric]), int(result[TRAINING_ITERATION]))

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell the study how a trial ended. One that the scheduler stopped has its last result."""
        trial = self._trials.pop(trial_id, None)
        if trial is None:
            return
        study = self._started()
        try:
            if error or not result or self.metric not in result:
                reason = (
                    "the trial of Ray ended with an error"
                    if error
                    else "the trial of Ray ended without a result"
                )
                study.tell(trial, state=TrialState.FAILED, reason=reason)
            else:
                study.tell(trial, float(result[self.metric]))
        except FantasiaError as e:  # lost while Ray was away, or refused: Ray goes on
            log.warning("trial %d: its result is not used: %s", trial.number, e)

    def save(self, checkpoint_path: str) -> None:
        """Save the searcher, with the trials that run."""
        Path(checkpoint_path).write_bytes(pickle.dumps(self.__dict__))

    def restore(self, checkpoint_path: str) -> None:
        """Continue the study of a saved searcher."""
        self.__dict__.update(pickle.loads(Path(checkpoint_path).read_bytes()))

    def _started(self) -> Study:
        """Return the study, which is created when it is first needed."""
        if self.study is None:
            if self._space is None or self.metric is None or self.mode not in ("min", "max"):
                raise SpaceError(
                    "expected a space, a metric, and the mode 'min' or 'max', "
                    f"got {self._space!r}, {self.metric!r} and {self.mode!r}"
                )
            self.study = create_study(
                direction="minimize" if self.mode == "min" else "maximize",
                parameters=self._space,
                metric=self.metric,
                load_if_exists=True,
                **self._options,
            )
            for point in self._points:
                self.study.enqueue_trial(flatten_dict(dict(point), prevent_delimiter=True))
        return self.study


def parameters_of(space: Mapping[str, Any]) -> dict[str, Parameter]:
    """Return the parameters of a space of Ray, whose names have a / between the levels of nested ones.

    Raises:
        SpaceError: for a domain that no parameter is like, and for grid_search.

    Examples:
        >>> from fantasia_hpo.ray import parameters_of
        >>> from ray import tune
        >>> parameters_of({"net": {"layers": tune.randint(1, 4)}})["net/layers"].high
        3
    """
    if all(hasattr(parameter, "document") for parameter in space.values()):
        return dict(space)
    _, _, grids = parse_spec_vars(dict(space))
    if grids:
        raise SpaceError(f"expected choice in place of grid_search, got {'/'.join(map(str, grids[0][0]))}")
    _, found, _ = parse_spec_vars(flatten_dict(dict(space), prevent_delimiter=True))
    return {
        "/".join(map(str, path)): _parameter_of("/".join(map(str, path)), domain) for path, domain in found
    }


def _parameter_of(name: str, domain: Any) -> Parameter:
    """Return the parameter that has the values of a domain of Ray."""
    sampler = domain.get_sampler()
    step = None
    if isinstance(sampler, domains.Quantized):
        sampler, step = sampler.sampler, sampler.q
    logarithmic = isinstance(sampler, domains.LogUniform)
    if isinstance(domain, domains.Categorical):
        return Categorical(domain.categories) if len(domain.categories) > 1 else Fixed(domain.categories[0])
    if isinstance(sampler, domains.Uniform | domains.LogUniform):
        scale: Any = "log" if logarithmic else "linear"
        if isinstance(domain, domains.Integer):  # its upper bound is outside, unless there is a step
            high = domain.upper if step else domain.upper - 1
            by = None if step in (None, 1) or logarithmic else int(step)
            return Int(domain.lower, high, scale, by) if high > domain.lower else Fixed(domain.lower)
        if isinstance(domain, domains.Float):
            return Float(domain.lower, domain.upper, scale, None if logarithmic else step)
    raise SpaceError(
        f"{name}: expected uniform, loguniform, randint, lograndint, their q forms, or choice, got {domain}"
    )
