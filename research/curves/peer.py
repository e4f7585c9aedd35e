"""Plays another tuner for `go run ./research/curves -finals`, which looks up the trainings.

Its first line of input is a JSON object with the tuner, the seed, the dimension and the earlier studies, lists of {"x": [...], "loss": 0.3}
in the unit cube; each further line is a request, which is answered with points:
  {"tell": [{"x": [0.1, 0.2], "loss": null}], "ask": 1}  →  [[0.3, 0.7]]
The loss is null if the training failed. What was asked for is not remembered: what is told is where the training was.
"""
import json
import sys
import warnings

import numpy

warnings.simplefilter("ignore")
answers, sys.stdout = sys.stdout, sys.stderr  # some tuners print


class Optuna:
    """TPESampler. Failed trainings are failed trials. The best point of each earlier study comes first, as `enqueue_trial` puts it."""

    def __init__(self, seed, dim, earlier):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna, self.asked = optuna, []
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True))
        self.space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(dim)}
        for study in earlier:
            self.study.enqueue_trial(self.params(min(study, key=lambda t: t["loss"])["x"]))

    def params(self, x):
        return {f"x{i}": min(max(v, 0.0), 1.0) for i, v in enumerate(x)}

    def tell(self, x, loss):
        state = self.optuna.trial.TrialState
        self.study.tell(self.asked.pop(0), state=state.FAIL)  # in place of it, the training that was near
        more = {"state": state.FAIL} if loss is None else {"value": loss}
        self.study.add_trial(self.optuna.trial.create_trial(params=self.params(x), distributions=self.space, **more))

    def ask(self, n):
        self.asked += [self.study.ask(self.space) for _ in range(n)]
        return [[t.params[name] for name in self.space] for t in self.asked[-n:]]


class Hebo:
    """HEBO 0.3.6, without earlier studies. It knows no failures: a failed training has the worst loss so far."""

    def __init__(self, seed, dim, earlier):
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        numpy.random.seed(seed % (1 << 31))
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.names, self.worst = [f"x{i}" for i in range(dim)], 0.7
        self.hebo = HEBO(DesignSpace().parse([{"name": k, "type": "num", "lb": 0, "ub": 1} for k in self.names]), scramble_seed=seed)

    def tell(self, x, loss):
        import pandas

        self.worst = max(self.worst, self.worst if loss is None else loss)
        self.hebo.observe(pandas.DataFrame([x], columns=self.names), numpy.array([[self.worst if loss is None else loss]]))

    def ask(self, n):
        frame = self.hebo.suggest(n_suggestions=n)
        return [[float(row[k]) for k in self.names] for _, row in frame.iterrows()]


class BoTorch:
    """MultiTaskGP over this task and the earlier studies, each with its own standardised losses, and qLogEI.

    Of each earlier study it knows 32 points, the best half and others, since its time grows with their cube. It knows no failures: a
    failed training has the worst loss so far."""

    def __init__(self, seed, dim, earlier):
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.torch, self.dim, self.xs, self.ys, self.worst = torch, dim, [], [], 0.7
        self.sources = []
        for study in earlier:
            order = sorted(study, key=lambda t: t["loss"])
            some = order[:16] + order[16 :: max(1, len(order[16:]) // 16)][:16]
            y = numpy.array([t["loss"] for t in some])
            self.sources.append((numpy.array([t["x"] for t in some]), (y - y.mean()) / (y.std() + 1e-9)))
        self.first = [min(study, key=lambda t: t["loss"])["x"] for study in earlier][:2]
        self.rng = numpy.random.default_rng(seed)

    def tell(self, x, loss):
        self.worst = max(self.worst, self.worst if loss is None else loss)
        self.xs.append(x)
        self.ys.append(self.worst if loss is None else loss)

    def ask(self, n):
        if len(self.xs) < 2:
            return [self.first.pop(0) if self.first else self.rng.random(self.dim).tolist() for _ in range(n)]
        torch = self.torch
        from botorch.acquisition import qLogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MultiTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        y = numpy.array(self.ys)
        y = (y - y.mean()) / (y.std() + 1e-9)
        parts = [(numpy.array(self.xs), y), *self.sources]
        x = numpy.concatenate([numpy.column_stack([a, numpy.full(len(a), float(i))]) for i, (a, _) in enumerate(parts)])
        values = -numpy.concatenate([b for _, b in parts])[:, None]
        model = MultiTaskGP(torch.tensor(x), torch.tensor(values), task_feature=-1, output_tasks=[0])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs={"options": {"maxiter": 50}})
        best = float(-y.min())
        bounds = torch.tensor([[0.0] * self.dim, [1.0] * self.dim], dtype=torch.double)
        found, _ = optimize_acqf(qLogExpectedImprovement(model, best_f=best), bounds, q=n, num_restarts=4, raw_samples=128, sequential=True)
        return found.tolist()


about = json.loads(sys.stdin.readline())
tuner = {"optuna-tpe": Optuna, "hebo-0.3.6": Hebo, "botorch-mtgp": BoTorch}[about["tuner"]](about["seed"], about["dim"], about["earlier"])
for line in sys.stdin:
    request = json.loads(line)
    for told in request["tell"]:
        tuner.tell(told["x"], told["loss"])
    print(json.dumps(tuner.ask(request["ask"])), file=answers, flush=True)
