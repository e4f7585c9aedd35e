"""Holds hypervolume.json against BoTorch 0.18.1's ExpectedHypervolumeImprovement.

Run from optimizer/bayes/acquisition: python3 testdata/with_botorch.py
BoTorch has no logarithm of it: only improvements above 1e-10 are compared.
"""
import json
import math

import torch
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.models.deterministic import GenericDeterministicModel
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning
from gpytorch.distributions import MultitaskMultivariateNormal

torch.set_default_dtype(torch.float64)


class Fixed(GenericDeterministicModel):
    """Answers with one posterior, whatever the point."""

    def __init__(self, mean, sd):
        super().__init__(lambda x: x, num_outputs=len(mean))
        self.mean, self.sd = mean, sd

    def posterior(self, X, **_):
        mean = torch.tensor(self.mean).expand(*X.shape[:-1], -1)
        covariance = torch.diag_embed(torch.tensor(self.sd).square().expand(*X.shape[:-2], -1))
        return GPyTorchPosterior(MultitaskMultivariateNormal(mean, covariance))


compared = 0
for c in json.load(open("testdata/hypervolume.json")):
    if len(c["mean"]) < 2 or c["log"] < math.log(1e-10):
        continue
    reference = -torch.tensor(c["reference"])  # BoTorch maximises
    front = -torch.tensor(c["front"]) if c["front"] else torch.empty(0, len(reference))
    partitioning = FastNondominatedPartitioning(reference, front)
    function = ExpectedHypervolumeImprovement(Fixed([-m for m in c["mean"]], c["sd"]), reference, partitioning)
    got = function(torch.zeros(1, 1, 1)).log().item()
    assert abs(got - c["log"]) < 1e-9 * max(1, abs(c["log"])), (got, c)
    compared += 1
print(compared, "improvements agree")
