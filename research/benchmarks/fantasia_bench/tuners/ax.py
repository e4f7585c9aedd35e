"""Ax (https://ax.dev), as its client chooses."""

import logging
import warnings

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.exceptions.core import SearchSpaceExhausted

from ..space import INT
from .base import Tuner


class Ax(Tuner):
    """It has no logit scale: such a parameter is its coordinate."""

    def __init__(self, space, seed):
        super().__init__(space, seed)
        warnings.filterwarnings("ignore")
        logging.disable(logging.WARNING)
        self.client = Client(random_seed=seed)
        self.client.configure_experiment(parameters=[self._described(p) for p in space])
        self.client.configure_optimization(objective="-loss")

    @staticmethod
    def _described(p):
        if not p.continuous:
            return ChoiceParameterConfig(name=p.name, values=[False, True], parameter_type="bool")
        if p.scale == "logit":
            return RangeParameterConfig(name=p.name, bounds=p.coordinates(), parameter_type="float")
        return RangeParameterConfig(name=p.name, bounds=(p.low, p.high), parameter_type="int" if p.kind == INT else "float", scaling=p.scale)

    def ask(self, n):
        try:
            trials = self.client.get_next_trials(max_trials=n)
        except SearchSpaceExhausted:
            return []
        return [(key, {p.name: p.decode(point[p.name]) if p.scale == "logit" else point[p.name] for p in self.space}) for key, point in trials.items()]

    def tell(self, told):
        for key, loss in told:
            if loss is None:
                self.client.mark_trial_failed(key)
            else:
                self.client.complete_trial(key, raw_data={"loss": loss})
