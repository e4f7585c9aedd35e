"""Studies for code that runs in an event loop of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ._optimize import Run
from ._results import Recommendation
from .create import create_study as _create_study
from .create import load_study as _load_study
from .record import FrozenTrial, TrialState
from .study import Callback, Study
from .trial import Trial

AsyncObjective = Callable[[Trial], Awaitable["float | Mapping[str, float] | None"]]


class AsyncStudy:
    """A study whose calls of the server run in threads, so that the event loop goes on.

    `study` is the Study itself, for everything that is not here. `Trial.report` calls the server:
    use `report` of this class in a coroutine.
    """

    def __init__(self, study: Study):
        self.study = study

    async def ask(self, *, timeout: float | None = None) -> Trial:
        """Return a trial to evaluate. See Study.ask."""
        return await asyncio.to_thread(self.study.ask, timeout=timeout)

    async def tell(
        self,
        trial: Trial,
        value: float | Mapping[str, float] | None = None,
        *,
        state: TrialState | str = TrialState.COMPLETED,
        reason: str = "",
        checkpoint: str = "",
    ) -> FrozenTrial:
        """End a trial. See Study.tell."""
        return await asyncio.to_thread(
            self.study.tell, trial, value, state=state, reason=reason, checkpoint=checkpoint
        )

    async def report(self, trial: Trial, value: float | Mapping[str, float], step: int | None = None) -> None:
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
    ) -> None:
        """Evaluate trials with a coroutine function, n_jobs at once. See Study.optimize.

        When the task is cancelled, the running trials are handed back.
        """
        run = Run(self.study, objective, n_trials, timeout, n_jobs, callbacks)
        with self.study._alone(run):
            await run.run_async()

    async def trials(self) -> list[FrozenTrial]:
        """Return all trials, by number."""
        return await asyncio.to_thread(self.study.get_trials)

    async def best_trial(self) -> FrozenTrial:
        """Return the completed trial with the best value. See Study.best_trial."""
        return await asyncio.to_thread(lambda: self.study.best_trial)

    async def best_params(self) -> dict[str, Any]:
        """Return the parameters of the best trial."""
        return (await self.best_trial()).params

    async def recommended(self) -> Recommendation:
        """Return the point that the optimiser's model recommends. See Study.recommended."""
        return await asyncio.to_thread(lambda: self.study.recommended)


async def create_study(**options: Any) -> AsyncStudy:
    """Create a study. The options are those of fantasia_hpo.create_study."""
    return AsyncStudy(await asyncio.to_thread(_create_study, **options))


async def load_study(name: str, storage: Any = None, **options: Any) -> AsyncStudy:
    """Return the study of that name. The options are those of fantasia_hpo.load_study."""
    return AsyncStudy(await asyncio.to_thread(_load_study, name, storage, **options))
