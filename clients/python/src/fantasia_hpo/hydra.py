"""A sweeper of Hydra that asks Fantasia for the jobs of a multirun."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional  # noqa: UP035  OmegaConf reads these in SweeperConfig

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep, Transformer
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig, OmegaConf

from ._optimize import last_line
from .create import Algorithm, create_study
from .errors import FantasiaError, SpaceError, StudyEndedError, StudyFailedError
from .parameters import Categorical, Fixed, Float, Int, Parameter
from .record import TrialState
from .study import Study
from .trial import Trial

log: logging.Logger = logging.getLogger("fantasia_hpo")


@dataclass
class SweeperConfig:
    """The configuration group `hydra/sweeper: fantasia`.

    `params` are sweeps as on the command line, such as `interval(0, 1)`, which they go before. `direction` is
    `minimize` or `maximize`, or a list of these for several objectives. `n_trials` jobs run, `n_jobs` at
    once. `algorithm` and `settings` are those of fantasia_hpo.Algorithm; `study_name`, `storage`, `seed` and
    `constraints` those of create_study. If more than `max_failure_rate` of the jobs that run at once
    fail, the multirun ends with the last error.

    Examples:
        >>> from fantasia_hpo.hydra import SweeperConfig
        >>> SweeperConfig(params={"x": "interval(-5, 5)"}, n_trials=50).direction
        'minimize'
    """

    _target_: str = "hydra_plugins.fantasia_sweeper.FantasiaSweeper"
    direction: Any = "minimize"
    study_name: Optional[str] = None  # noqa: UP045
    storage: Optional[str] = None  # noqa: UP045
    n_trials: int = 20
    n_jobs: int = 2
    max_failure_rate: float = 0.0
    algorithm: str = "hebo"
    settings: Dict[str, Any] = field(default_factory=dict)  # noqa: UP006
    seed: Optional[int] = None  # noqa: UP045
    constraints: List[str] = field(default_factory=list)  # noqa: UP006
    params: Dict[str, Any] = field(default_factory=dict)  # noqa: UP006


class FantasiaSweeper(Sweeper):
    """Runs the trials of a study as jobs of Hydra's launcher; what a job returns is its value.

    Hydra makes it of a SweeperConfig, whose fields, such as `params`, are its arguments.

    Examples:
        >>> from fantasia_hpo.hydra import FantasiaSweeper
        >>> sweeper = FantasiaSweeper({"x": "interval(-5, 5)"}, n_trials=50)  # as Hydra does
    """

    def __init__(self, params: Mapping[str, Any], **options: Any):
        self._params = params
        self._options = options

    def setup(self, *, hydra_context: Any, task_function: Any, config: DictConfig) -> None:
        """Take what Hydra hands over."""
        self.hydra_context = hydra_context
        self.config = config
        self.launcher: Any = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Run the jobs, and write the best to `optimization_results.yaml` in the sweep's folder."""
        config: Any = self.config
        folder = Path(config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(config, folder / "multirun.yaml")
        study, keys = self._study(arguments)
        done = 0
        while done < self._options["n_trials"]:
            try:
                trials = study._ask(min(self._options["n_jobs"], self._options["n_trials"] - done))
            except StudyFailedError:
                raise
            except StudyEndedError as e:
                log.info("%s", e)
                break
            self._launch(study, trials, keys, done)
            done += len(trials)
        OmegaConf.save(OmegaConf.create(_results(study)), folder / "optimization_results.yaml")

    def _study(self, arguments: Sequence[str]) -> tuple[Study, dict[str, str]]:
        """Return the study, and the keys of overrides by the names of parameters."""
        given = [f"{name}={sweep}" for name, sweep in self._params.items()]
        overrides = {
            o.key_or_group: o for o in OverridesParser.create().parse_overrides([*given, *arguments])
        }
        parameters = {name: parameter_of(override) for name, override in overrides.items()}
        if not any(not isinstance(p, Fixed) for p in parameters.values()):
            raise SpaceError(
                "expected a sweep such as x=interval(0,1) in hydra.sweeper.params or the arguments, got none"
            )
        options = self._options
        aim: Any = options["direction"]
        given_as: dict[str, Any] = {"direction": aim} if isinstance(aim, str) else {"directions": list(aim)}
        return create_study(
            **given_as,
            parameters=parameters,
            name=options["study_name"],
            storage=options["storage"],
            load_if_exists=True,
            algorithm=Algorithm(
                options["algorithm"], OmegaConf.to_container(OmegaConf.create(options["settings"]))
            ),
            seed=options["seed"],
            constraints=list(options["constraints"]),
        ), {name: override.get_key_element() for name, override in overrides.items()}

    def _launch(self, study: Study, trials: Sequence[Trial], keys: Mapping[str, str], done: int) -> None:
        """Run trials at once, and tell the study their values."""
        open_ = list(trials)
        launcher: Any = self.launcher
        errors: list[Exception] = []
        try:
            batch = [[f"{keys[name]}={value}" for name, value in trial.params.items()] for trial in trials]
            self.validate_batch_is_legal(batch)
            for trial, job in zip(trials, launcher.launch(batch, initial_job_idx=done), strict=True):
                if job.status is JobStatus.COMPLETED:
                    error = _tell(study, trial, job.return_value)
                else:
                    error = job._return_value
                    study.tell(trial, state=TrialState.FAILED, reason=last_line(error))
                open_.remove(trial)
                errors += [error] if error is not None else []
        finally:
            for trial in open_:
                study._hand_back(trial, "the multirun ended")
        if len(errors) > self._options["max_failure_rate"] * len(trials):
            raise errors[-1]


def _tell(study: Study, trial: Trial, value: Any) -> Exception | None:
    """Tell what a job has returned; return an error if that is no value."""
    try:
        study.tell(trial, value if isinstance(value, Mapping | Sequence) else float(value))
    except (FantasiaError, TypeError, ValueError) as e:
        error = SpaceError(f"expected that the job returns a number for each objective, got {value!r}: {e}")
        study.tell(trial, state=TrialState.FAILED, reason=str(error))
        return error
    return None


def parameter_of(override: Override) -> Parameter:
    """Return the parameter that an override with a sweep describes; one with a single value is Fixed.

    Raises:
        SpaceError: for a sweep that is no interval, range or choice.

    Examples:
        >>> from fantasia_hpo.hydra import parameter_of
        >>> from hydra.core.override_parser.overrides_parser import OverridesParser
        >>> parameter_of(OverridesParser.create().parse_override("x=tag(log, interval(1, 8))")).scale
        'log'
    """
    sweep = override._value
    name = override.input_line
    if not override.is_sweep_override():
        return Fixed(_text(override))
    if isinstance(sweep, ChoiceSweep):
        values = list(override.sweep_iterator(transformer=Transformer.encode))
        return Categorical(values) if len(values) > 1 else Fixed(values[0])
    if not isinstance(sweep, IntervalSweep | RangeSweep):
        raise SpaceError(f"expected an interval, a range or choices, got {name}")
    logarithmic = "log" in sweep.tags
    if isinstance(sweep, IntervalSweep):
        low, high, step = sweep.start, sweep.end, None
    else:
        values = list(sweep.range())
        low, high, step = min(values), max(values), abs(sweep.step)
    if low is None or high is None or not low < high:
        raise SpaceError(f"expected two ends, the lower one first, got {name}")
    if all(isinstance(end, int) for end in (low, high, step or 1)):
        whole = None if step == 1 or logarithmic else step
        return Int(int(low), int(high), "log" if logarithmic else "linear", whole)
    by = None if step is None or logarithmic else float(step)
    return Float(float(low), float(high), "log" if logarithmic else "linear", by)


def _text(override: Override) -> str:
    """Return the value of a plain override as the command line has it."""
    return str(override.get_value_element_as_str())


def _results(study: Study) -> dict[str, Any]:
    """Return what Hydra's other sweepers write at the end."""
    results: dict[str, Any] = {"name": "fantasia", "study": study.name}
    completed = [t for t in study.best_trials if t.state is TrialState.COMPLETED]
    if len(study.objectives) > 1:
        results["solutions"] = [{"params": t.params, "values": list(t.values or ())} for t in completed]
    elif completed:
        results |= {"best_params": completed[0].params, "best_value": completed[0].value}
    return results
