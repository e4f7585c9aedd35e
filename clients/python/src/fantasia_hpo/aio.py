"""Studies for code that runs in an event loop of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._limits import Limit
from ._objectives import Direction, Objective
from ._optimize import Run
from ._results import Picture, Recommendation
from ._space import Space
from ._values import Value
from .create import create_study as _create_study
from .create import load_study as _load_study
from .parameters import Parameter
from .record import FrozenTrial, TrialState
from .study import Callback, Study
from .trial import Trial

if TYPE_CHECKING:
    import pandas

AsyncObjective = Callable[[Trial], Awaitable["Value | None"]]


class AsyncStudy:
    """A study whose calls of the server run in threads, so that the event loop goes on.

    `study` is the Study itself.

    Examples:
        >>> import asyncio
        >>> from fantasia_hpo import aio
        >>> async def objective(trial):
        ...     await asyncio.sleep(0.01)
        ...     return trial.params["x"] ** 2
        >>> async def main():
        ...     study = await aio.create_study(direction="minimize", parameters={"x": fantasia.Float(-1, 1)})
        ...     await study.optimize(objective, n_trials=4, n_jobs=2)
        ...     trial = await study.ask()
        ...     await study.report(trial, 0.5, 1)
        ...     await study.tell(trial, 0.25)
        ...     return len(await study.trials())
        >>> asyncio.run(main())
        5
    """

    def __init__(self, study: Study):
        self.study = study

    async def ask(self, *, timeout: float | None = None) -> Trial:
        """Return a trial to evaluate. See Study.ask."""
        return await asyncio.to_thread(self.study.ask, timeout=timeout)

    async def tell(
        self,
        trial: Trial,
        value: Value | None = None,
        *,
        state: TrialState | str = TrialState.COMPLETED,
        reason: str = "",
        details: str = "",
        checkpoint: str = "",
    ) -> FrozenTrial:
        """End a trial. See Study.tell."""
        return await asyncio.to_thread(
            self.study.tell,
            trial,
            value,
            state=state,
            reason=reason,
            details=details,
            checkpoint=checkpoint,
        )

    async def report(self, trial: Trial, value: Value, step: int | None = None) -> None:
        """Report what an evaluation has reached. See Trial.report."""
        await asyncio.to_thread(trial.report, value, step)

    async def release(self, trial: Trial, *, checkpoint: str = "", reason: str = "") -> None:
        """Hand a trial back. See Study.release."""
        await asyncio.to_thread(self.study.release, trial, checkpoint=checkpoint, reason=reason)

    async def optimize(
        self,
        objective: AsyncObjective,
        n_trials: int | None = None,
        timeout: float | None = None,
        n_jobs: int = 1,
        callbacks: Sequence[Callback] = (),
        *,
        catch: type[Exception] | tuple[type[Exception], ...] = Exception,
        show_progress_bar: bool | None = None,
    ) -> None:
        """Evaluate trials with a coroutine function, n_jobs at once. See Study.optimize.

        When the task is cancelled, the running trials are handed back.
        """
        run = Run(self.study, objective, n_trials, timeout, n_jobs, callbacks, catch, show_progress_bar)
        with self.study._running(run):
            await run.run_async()

    def stop(self) -> None:
        """End the call of `optimize` that is running. See Study.stop."""
        self.study.stop()

    async def enqueue_trial(self, params: Mapping[str, Any], **options: Any) -> FrozenTrial:
        """Have a point evaluated soon. See Study.enqueue_trial."""
        return await asyncio.to_thread(self.study.enqueue_trial, params, **options)

    async def continue_trial(self, trial: FrozenTrial | Trial | int) -> FrozenTrial:
        """Have a trial run to its end that was stopped early. See Study.continue_trial."""
        return await asyncio.to_thread(self.study.continue_trial, trial)

    async def add_trial(self, params: Mapping[str, Any], value: Value, **options: Any) -> FrozenTrial:
        """Add a trial that was evaluated elsewhere. See Study.add_trial."""
        return await asyncio.to_thread(self.study.add_trial, params, value, **options)

    async def cancel_trial(self, trial: FrozenTrial | Trial | int, reason: str = "") -> None:
        """End one trial. See Study.cancel_trial."""
        await asyncio.to_thread(self.study.cancel_trial, trial, reason)

    async def edit_trial(self, trial: FrozenTrial | Trial | int, **changes: Any) -> FrozenTrial:
        """Change the labels and the note of a trial. See Study.edit_trial."""
        return await asyncio.to_thread(self.study.edit_trial, trial, **changes)

    async def end(self, reason: str = "") -> None:
        """End the study for everybody. See Study.end."""
        await asyncio.to_thread(self.study.end, reason)

    async def resume(self) -> None:
        """Continue a study that has failed or was stopped. See Study.resume."""
        await asyncio.to_thread(self.study.resume)

    async def update(self, **changes: Any) -> None:
        """Change the budget, the goal, limits, labels or the note. See Study.update."""
        await asyncio.to_thread(self.study.update, **changes)

    async def set_user_attr(self, key: str, value: Any) -> None:
        """Note something about the study. See Study.set_user_attr."""
        await asyncio.to_thread(self.study.set_user_attr, key, value)

    async def user_attrs(self) -> dict[str, Any]:
        """Return what programs have noted about the study, by name. See Study.user_attrs."""
        return await asyncio.to_thread(lambda: self.study.user_attrs)

    async def edit_space(self, parameters: Mapping[str, Parameter]) -> None:
        """Give parameters other ranges or values. See Study.edit_space."""
        await asyncio.to_thread(self.study.edit_space, parameters)

    async def trials(self) -> list[FrozenTrial]:
        """Return all trials, by number. See Study.trials."""
        return await asyncio.to_thread(self.study.get_trials)

    async def get_trials(self, states: Sequence[TrialState] | None = None) -> list[FrozenTrial]:
        """Return the trials in one of the states. See Study.get_trials."""
        return await asyncio.to_thread(self.study.get_trials, states)

    async def get_trial(self, number: int) -> FrozenTrial:
        """Return one trial. See Study.get_trial."""
        return await asyncio.to_thread(self.study.get_trial, number)

    async def curve(self, trial: FrozenTrial | Trial | int, metric: str | None = None) -> dict[int, float]:
        """Return what a trial has reported, by step. See Study.curve."""
        return await asyncio.to_thread(self.study.curve, trial, metric)

    async def picture(
        self, name: str = "history", *parameters: str, objective: str | None = None, width: int = 720
    ) -> Picture:
        """Return a picture of the study. See Study.picture."""
        return await asyncio.to_thread(
            self.study.picture, name, *parameters, objective=objective, width=width
        )

    async def best_trial(self) -> FrozenTrial:
        """Return the completed trial with the best value. See Study.best_trial."""
        return await asyncio.to_thread(lambda: self.study.best_trial)

    async def space(self) -> Space:
        """Return the parameters. See Study.space."""
        return await asyncio.to_thread(lambda: self.study.space)

    async def best_trials(self) -> list[FrozenTrial]:
        """Return the completed trials with the best value, or of the front. See Study.best_trials."""
        return await asyncio.to_thread(lambda: self.study.best_trials)

    async def best_value(self) -> float:
        """Return the value of the best trial. See Study.best_value."""
        return await asyncio.to_thread(lambda: self.study.best_value)

    async def best_params(self) -> dict[str, Any]:
        """Return the parameters of the best trial. See Study.best_params."""
        return (await self.best_trial()).params

    async def recommended(self) -> Recommendation:
        """Return the point that the optimiser's model recommends. See Study.recommended."""
        return await asyncio.to_thread(lambda: self.study.recommended)

    async def state(self) -> str:
        """Return the state of the study: RUNNING, COMPLETED, STOPPED or FAILED. See Study.state."""
        return await asyncio.to_thread(lambda: self.study.state)

    async def reason(self) -> str:
        """Return why the study is in its state. See Study.reason."""
        return await asyncio.to_thread(lambda: self.study.reason)

    async def limits(self) -> list[Limit]:
        """Return the limits on metrics, as they are now. See Study.limits."""
        return await asyncio.to_thread(lambda: self.study.limits)

    async def labels(self) -> dict[str, str]:
        """Return the labels of the study. See Study.labels."""
        return await asyncio.to_thread(lambda: self.study.labels)

    async def note(self) -> str:
        """Return what people have written about the study. See Study.note."""
        return await asyncio.to_thread(lambda: self.study.note)

    async def trials_dataframe(self) -> pandas.DataFrame:
        """Return all trials as a table of pandas, which must be installed. See Study.trials_dataframe."""
        return await asyncio.to_thread(self.study.trials_dataframe)

    async def to_mlflow(self, experiment: str | None = None, tracking_uri: str | None = None) -> str:
        """Add a run of MLflow for each trial that ended. See Study.to_mlflow."""
        return await asyncio.to_thread(self.study.to_mlflow, experiment, tracking_uri)

    async def to_wandb(self, project: str | None = None, **options: Any) -> list[str]:
        """Add a run of W&B for each trial that ended. See Study.to_wandb."""
        return await asyncio.to_thread(self.study.to_wandb, project, **options)

    @property
    def name(self) -> str:
        """The name of the study. See Study."""
        return self.study.name

    @property
    def metric(self) -> str:
        """The metric of the only objective. See Study.metric."""
        return self.study.metric

    @property
    def direction(self) -> Direction:
        """The direction of the only objective. See Study.direction."""
        return self.study.direction

    @property
    def directions(self) -> list[Direction]:
        """The direction of each objective. See Study.directions."""
        return self.study.directions

    @property
    def objectives(self) -> dict[str, Objective]:
        """The objectives, by their metrics. See Study."""
        return self.study.objectives

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters, by name. See Study."""
        return self.study.parameters

    @property
    def link(self) -> str:
        """The study's page on the dashboard. See Study.link."""
        return self.study.link


async def create_study(**options: Any) -> AsyncStudy:
    """Create a study. See create_study."""
    return AsyncStudy(await asyncio.to_thread(_create_study, **options))


async def load_study(name: str, storage: Any = None, **options: Any) -> AsyncStudy:
    """Return the study of that name. See load_study."""
    return AsyncStudy(await asyncio.to_thread(_load_study, name, storage, **options))
