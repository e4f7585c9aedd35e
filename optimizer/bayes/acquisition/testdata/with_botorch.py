"""Writes botorch.json with BoTorch 0.18.1 and PyTorch 2.15.0: its acquisition functions, and their
gradients, of posteriors drawn here.

Run from optimizer/bayes/acquisition: python3 testdata/with_botorch.py

Analytic functions are LogExpectedImprovement, LogConstrainedExpectedImprovement and
ExpectedHypervolumeImprovement. BoTorch has no logarithm of the last one, so only improvements above
1e-10 are written. qLogNoisyExpectedHypervolumeImprovement is a mean over draws, of which the points on the
front have next to no noise here; it is written where the draws can tell.
"""
import json
import math
import random

import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogExpectedImprovement
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.models.deterministic import GenericDeterministicModel
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal

torch.set_default_dtype(torch.float64)
random.seed(20261128)


class Recorded(GenericDeterministicModel):
    """Has the posterior of row k at the point k. Objectives and points are independent."""

    def __init__(self, means, sds):
        super().__init__(lambda x: x, num_outputs=means.shape[-1])
        self.means, self.sds = means, sds

    def posterior(self, X, **_):
        rows = X[..., 0].detach().round().long()
        means, variances = self.means[rows], self.sds[rows].square()
        if means.shape[-1] == 1:
            return GPyTorchPosterior(MultivariateNormal(means[..., 0], torch.diag_embed(variances[..., 0])))
        covariance = torch.diag_embed(variances.reshape(*variances.shape[:-2], -1))
        return GPyTorchPosterior(MultitaskMultivariateNormal(means, covariance))


def tensors(mean, sd):
    return torch.tensor([mean], requires_grad=True), torch.tensor([sd], requires_grad=True)


def row(value, mean, sd, **more):
    value.backward()
    return more | {"mean": mean.tolist()[0], "sd": sd.tolist()[0], "log": value.item(), "d_mean": mean.grad.tolist()[0], "d_sd": sd.grad.tolist()[0]}


point = torch.zeros(1, 1, 1)


def limited():
    """One objective, which is minimised, with no limits, one and three: each an upper bound."""
    for limits in (0, 1, 3):
        for scale in (0.3, 1, 5):
            for _ in range(3):
                best, bounds = random.gauss(0, 1), [random.gauss(0, 1) for _ in range(limits)]
                mean, sd = tensors([random.gauss(0, scale) for _ in range(1 + limits)], [random.uniform(0.1, 1) for _ in range(1 + limits)])
                model = Recorded(mean, sd)
                if limits:
                    function = LogConstrainedExpectedImprovement(model, best, 0, {1 + k: [None, b] for k, b in enumerate(bounds)}, maximize=False)
                else:
                    function = LogExpectedImprovement(model, best, maximize=False)
                yield row(function(point)[0], mean, sd, best=best, bounds=bounds)


def hypervolumes():
    """Two and three objectives, which BoTorch maximises: it gets all with the other sign."""
    for objectives in (2, 3):
        for number in (0, 1, 4, 8):
            for scale in (0.3, 1, 3):
                front = torch.randn(number, objectives)
                reference = 1 + torch.rand(objectives)
                mean, sd = tensors([random.gauss(0, scale) for _ in range(objectives)], [random.uniform(0.1, 1) for _ in range(objectives)])
                function = ExpectedHypervolumeImprovement(Recorded(-mean, sd), -reference, FastNondominatedPartitioning(-reference, -front))
                value = function(point)[0]
                if value.item() < 1e-10:
                    continue
                known = {"front": front.tolist(), "reference": reference.tolist()}
                if 0 < number < 8 and value.item() > 1e-3:
                    known["draws"] = by_draws(front, reference, mean, sd)
                yield row(value.log(), mean, sd, **known)


def by_draws(front, reference, mean, sd):
    model = Recorded(-torch.cat([mean, front]).detach(), torch.cat([sd, torch.full_like(front, 1e-6)]).detach())
    baseline = 1.0 + torch.arange(len(front), dtype=torch.double).unsqueeze(-1)
    function = qLogNoisyExpectedHypervolumeImprovement(
        model, -reference, baseline, sampler=SobolQMCNormalSampler(torch.Size([512]), seed=1), prune_baseline=False, cache_root=False
    )
    return function(point)[0].item()


torch.manual_seed(1)
cases = {"limited": list(limited()), "hypervolume": list(hypervolumes())}
assert all(math.isfinite(c["log"]) for part in cases.values() for c in part)
with open("testdata/botorch.json", "w") as f:
    json.dump(cases, f)
    f.write("\n")
print({name: len(part) for name, part in cases.items()}, sum("draws" in c for c in cases["hypervolume"]), "by draws")
