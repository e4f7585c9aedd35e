"""Plays another tuner for `go run ./research/objectives -peers`, which evaluates the points.

It reads requests from standard input, a JSON object a line, and answers each with a line:
  {"tell": [{"id": 0, "values": [1, 2]}, …], "ask": 2}  →  [[0.3, 7], …]
The points asked for get the next ids, from 0 on. A point without values is still being
evaluated. All objectives are minimised. Its one argument is a JSON object with the tuner's name,
the seed, the bounds, the number of objectives and, if they are to be told, the reference.
"""

import json
import sys
import warnings


class Optuna:
    """A sampler of Optuna, with its defaults. Points that are being evaluated are running trials."""

    def __init__(self, name, seed, lower, upper, objectives, reference):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers = {
            "optuna-tpe": lambda: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True),
            "optuna-nsga2": lambda: optuna.samplers.NSGAIISampler(seed=seed),
            "optuna-gp": lambda: optuna.samplers.GPSampler(seed=seed),
        }
        self.study = optuna.create_study(directions=["minimize"] * objectives, sampler=samplers[name]())
        self.space = {f"x{i + 1}": optuna.distributions.FloatDistribution(a, b) for i, (a, b) in enumerate(zip(lower, upper))}

    def tell(self, number, values):
        self.study.tell(number, values)

    def ask(self, n):
        return [[trial.params[name] for name in self.space] for trial in (self.study.ask(self.space) for _ in range(n))]


class BoTorch:
    """qLogNEHVI of BoTorch as Ax uses it: a SingleTaskGP for each objective over standardised values,
    Sobol points first, and a reference that is inferred from the front if none is told."""

    def __init__(self, name, seed, lower, upper, objectives, reference):
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.torch, self.seed, self.reference = torch, seed, reference
        self.bounds = torch.tensor([lower, upper], dtype=torch.double)
        self.initial = max(5, 2 * len(lower))
        self.sobol = torch.quasirandom.SobolEngine(len(lower), scramble=True, seed=seed)
        self.x, self.values = [], {}

    def tell(self, number, values):
        self.values[number] = values

    def ask(self, n):
        points = []
        for _ in range(n):
            early = len(self.x) < self.initial or len(self.values) < 2
            point = self.sobol.draw(1, dtype=self.torch.double)[0] if early else self.choose()
            self.x.append(point)
            points.append((self.bounds[0] + point * (self.bounds[1] - self.bounds[0])).tolist())
        return points

    def choose(self):
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.optim import optimize_acqf
        from botorch.utils.multi_objective.hypervolume import infer_reference_point
        from botorch.utils.multi_objective.pareto import is_non_dominated
        from gpytorch.mlls import SumMarginalLogLikelihood

        torch = self.torch
        told = sorted(self.values)
        x = torch.stack([self.x[k] for k in told])
        y = -torch.tensor([self.values[k] for k in told], dtype=torch.double)
        mean, sd = y.mean(0), y.std(0).clamp_min(1e-12)
        y = (y - mean) / sd
        model = ModelListGP(*[SingleTaskGP(x, y[:, k : k + 1]) for k in range(y.shape[1])])
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        if self.reference is None:
            reference = infer_reference_point(y[is_non_dominated(y)])
        else:
            reference = (-torch.tensor(self.reference, dtype=torch.double) - mean) / sd
        pending = [p for k, p in enumerate(self.x) if k not in self.values]
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model, reference, x, prune_baseline=True, X_pending=torch.stack(pending) if pending else None, cache_root=True
        )
        unit = torch.stack([torch.zeros(x.shape[1], dtype=torch.double), torch.ones(x.shape[1], dtype=torch.double)])
        point, _ = optimize_acqf(acquisition, unit, q=1, num_restarts=4, raw_samples=256, options={"maxiter": 100})
        return point[0].detach()


class Hebo:
    """GeneralBO of HEBO with its defaults, which is its way to several objectives. It takes no account of points
    that are being evaluated."""

    def __init__(self, name, seed, lower, upper, objectives, reference):
        import numpy
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.general import GeneralBO
        from pymoo.config import Config

        Config.warnings["not_compiled"] = False  # it would go to standard output, where answers are read
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.numpy = numpy
        bounds = enumerate(zip(lower, upper), start=1)
        self.space = DesignSpace().parse([{"name": f"x{i}", "type": "num", "lb": a, "ub": b} for i, (a, b) in bounds])
        self.tuner = GeneralBO(self.space, objectives, ref_point=None if reference is None else numpy.array(reference))
        self.points = []

    def tell(self, number, values):
        self.tuner.observe(self.points[number], self.numpy.array([values], dtype=float))

    def ask(self, n):
        table = self.tuner.suggest(n)
        self.points += [table.iloc[[k]] for k in range(n)]
        return table[self.space.para_names].to_numpy(dtype=float).tolist()


def main():
    warnings.filterwarnings("ignore")
    asked = json.loads(sys.argv[1])
    tuner = {"botorch": BoTorch, "hebo-0.3.6": Hebo}.get(asked["name"], Optuna)(**asked)
    for line in sys.stdin:
        request = json.loads(line)
        for told in request["tell"]:
            tuner.tell(told["id"], told["values"])
        print(json.dumps(tuner.ask(request["ask"])), flush=True)


main()
