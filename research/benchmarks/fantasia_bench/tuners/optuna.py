"""Optuna's samplers (https://optuna.org)."""

import optuna

from ..space import INT
from .base import Tuner


class Optuna(Tuner):
    """Running trials are RUNNING in Optuna's study, where the samplers can see them. It has no logit scale: such a parameter is its coordinate."""

    def __init__(self, space, seed, kind):
        super().__init__(space, seed)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        if kind == "tpe":
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        elif kind == "gp":
            sampler = optuna.samplers.GPSampler(seed=seed)
        else:
            sampler = optuna.samplers.CmaEsSampler(seed=seed)
        self.study = optuna.create_study(direction="minimize", sampler=sampler)
        self.distributions = {p.name: self._distribution(p) for p in space}

    @staticmethod
    def _distribution(p):
        if not p.continuous:
            return optuna.distributions.CategoricalDistribution([False, True])
        if p.scale == "logit":
            return optuna.distributions.FloatDistribution(*p.coordinates())
        kind = optuna.distributions.IntDistribution if p.kind == INT else optuna.distributions.FloatDistribution
        return kind(p.low, p.high, log=p.scale == "log")

    def ask(self, n):
        trials = [self.study.ask(self.distributions) for _ in range(n)]
        return [(t.number, {p.name: p.decode(t.params[p.name]) if p.scale == "logit" else t.params[p.name] for p in self.space}) for t in trials]

    def tell(self, told):
        for key, loss in told:
            if loss is None:
                self.study.tell(key, state=optuna.trial.TrialState.FAIL)
            else:
                self.study.tell(key, loss)

    def observe(self, points, losses):
        for point, loss in zip(points, losses):
            values = {p.name: p.encode(point[p.name]) if p.scale == "logit" else point[p.name] for p in self.space}
            self.study.add_trial(optuna.trial.create_trial(params=values, distributions=self.distributions, value=loss))
