"""HEBO (https://github.com/huawei-noah/HEBO)."""

import os
import warnings

import numpy
import pandas
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.models import model_factory
from hebo.models.gp.gpy_wgp import GPyGP
from hebo.optimizers.hebo import HEBO

from ..space import INT
from .base import Tuner


class Hebo(Tuner):
    """It knows no pending points. With `liar` it is shown them, for the length of an ask, at the worst loss so far.

    The model "gpy" is the one of its paper, with the warped inputs that the default lacks; the package holds it still, but
    its table of models does not.
    """

    def __init__(self, space, seed, model="gp", liar=False):
        super().__init__(space, seed)
        warnings.filterwarnings("ignore")
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        if model == "gpy" and "gpy" not in model_factory.model_dict:
            model_factory.model_dict["gpy"] = GPyGP
            model_factory.model_names.append("gpy")
        self.liar, self.pending, self.asked = liar, {}, 0
        self.hebo = HEBO(DesignSpace().parse([self._described(p) for p in space]), model_name=model, scramble_seed=seed)

    @staticmethod
    def _plain(p):
        """Whether HEBO is given the parameter itself, and not its coordinate."""
        return not p.continuous or p.scale == "linear"

    def _described(self, p):
        if not p.continuous:
            return {"name": p.name, "type": "bool"}
        if self._plain(p):
            return {"name": p.name, "type": "int" if p.kind == INT else "num", "lb": p.low, "ub": p.high}
        low, high = p.coordinates()
        return {"name": p.name, "type": "num", "lb": low, "ub": high}

    def _value(self, p, cell):
        if not p.continuous:
            return bool(cell)
        if not self._plain(p):
            return p.decode(float(cell))
        return int(cell) if p.kind == INT else float(cell)

    def _worst(self):
        return float(self.hebo.y.max()) if len(self.hebo.y) else None

    def ask(self, n):
        inputs, outputs = self.hebo.X, self.hebo.y
        if self.liar and self.pending and len(outputs):
            self.hebo.observe(pandas.concat(self.pending.values()), numpy.full((len(self.pending), 1), self._worst()))
        frame = self.hebo.suggest(n_suggestions=n)
        self.hebo.X, self.hebo.y = inputs, outputs
        batch = []
        for i in range(len(frame)):
            row = frame.iloc[[i]]
            self.pending[self.asked] = row
            batch.append((self.asked, {p.name: self._value(p, row[p.name].iloc[0]) for p in self.space}))
            self.asked += 1
        return batch

    def tell(self, told):
        failed = [(key, loss) for key, loss in told if loss is None]
        for key, loss in [t for t in told if t[1] is not None] + failed:
            row, loss = self.pending.pop(key), self._worst() if loss is None else loss
            if loss is not None:  # a failure is as bad as the worst; before there is one it is nothing
                self.hebo.observe(row, numpy.array([[loss]]))

    def observe(self, points, losses):
        rows = [{p.name: point[p.name] if self._plain(p) else p.encode(point[p.name]) for p in self.space} for point in points]
        self.hebo.observe(pandas.DataFrame(rows), numpy.array(losses).reshape(-1, 1))
