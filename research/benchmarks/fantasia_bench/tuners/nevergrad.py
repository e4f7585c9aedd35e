"""Nevergrad's NGOpt (https://github.com/facebookresearch/nevergrad)."""

import warnings

import nevergrad

from ..definitions import TRIALS, WORKERS
from .base import Tuner


class Nevergrad(Tuner):
    """A failure is told as the worst loss so far, once there is one."""

    def __init__(self, space, seed):
        super().__init__(space, seed)
        warnings.filterwarnings("ignore")
        form = nevergrad.p.Dict(**{p.name: self._described(p) for p in space})
        form.random_state.seed(seed)
        self.optimizer = nevergrad.optimizers.NGOpt(parametrization=form, budget=TRIALS, num_workers=WORKERS)
        self.pending, self.failed, self.worst, self.asked = {}, [], None, 0

    @staticmethod
    def _described(p):
        if not p.continuous:
            return nevergrad.p.Choice([False, True])
        low, high = p.coordinates()
        return nevergrad.p.Scalar(lower=low, upper=high)

    def ask(self, n):
        batch = []
        for _ in range(n):
            candidate = self.optimizer.ask()
            self.pending[self.asked] = candidate
            batch.append((self.asked, {p.name: p.decode(candidate.value[p.name]) if p.continuous else candidate.value[p.name] for p in self.space}))
            self.asked += 1
        return batch

    def tell(self, told):
        for key, loss in told:
            if loss is None:
                self.failed.append(key)
                continue
            self.worst = loss if self.worst is None else max(self.worst, loss)
            self.optimizer.tell(self.pending.pop(key), loss)
        while self.failed and self.worst is not None:
            self.optimizer.tell(self.pending.pop(self.failed.pop()), self.worst)
