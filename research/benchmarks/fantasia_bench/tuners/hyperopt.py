"""HyperOpt's TPE (https://github.com/hyperopt/hyperopt)."""

import numpy
from hyperopt import Trials, hp, tpe
from hyperopt.base import JOB_STATE_DONE, STATUS_FAIL, STATUS_OK, Domain

from ..space import INT
from .base import Tuner


class HyperOpt(Tuner):
    """Asked as its own fmin asks it, one after another; it does not look at trials that run."""

    def __init__(self, space, seed):
        super().__init__(space, seed)
        form = {p.name: self._described(p) for p in space}
        self.domain = Domain(lambda _: None, form, pass_expr_memo_ctrl=False)
        self.trials, self.rng = Trials(), numpy.random.default_rng(seed)

    @staticmethod
    def _whole(p):
        return p.kind == INT and p.scale == "linear"

    def _described(self, p):
        if not p.continuous:
            return hp.choice(p.name, [False, True])
        if self._whole(p):
            return hp.uniformint(p.name, p.low, p.high)
        return hp.uniform(p.name, *p.coordinates())

    def _value(self, p, drawn):
        if not p.continuous:
            return bool(drawn)
        return int(drawn) if self._whole(p) else p.decode(drawn)

    def ask(self, n):
        batch = []
        for key in self.trials.new_trial_ids(n):
            document = tpe.suggest([key], self.domain, self.trials, int(self.rng.integers(2**31)))[0]
            self.trials.insert_trial_docs([document])
            self.trials.refresh()
            drawn = document["misc"]["vals"]
            batch.append((key, {p.name: self._value(p, drawn[p.name][0]) for p in self.space}))
        return batch

    def tell(self, told):
        losses = dict(told)
        for document in self.trials._dynamic_trials:
            if document["tid"] in losses:
                loss = losses[document["tid"]]
                document["state"] = JOB_STATE_DONE
                document["result"] = {"status": STATUS_FAIL} if loss is None else {"status": STATUS_OK, "loss": loss}
        self.trials.refresh()
