"""Compares what weights in 8 bits predict with what those in half precision do.

differences.py FOLDER WEIGHTS... compares each file with the one of the same name in FOLDER, which has
half precision. It prints the rows of a table. Data sets are drawn as in training, from another seed:
SETS for each of OBSERVED numbers of observations, with QUERIES of them even or near the best points.
"""

import math
import pathlib
import sys

import torch

from golden import load
from network import Mixture
from prior import Draws, Prior
from train import SIZES, cross_entropy

OBSERVED, SETS, QUERIES, SAMPLES = (8, 30, 100), 128, 32, 24


def quantile(p: Mixture, at: float) -> torch.Tensor:
    """By bisection between the components' quantiles."""
    z = torch.special.ndtri(torch.tensor(at, dtype=torch.double))
    each = p.mean + z * p.log_sd.exp()
    low, high = each.amin(-1), each.amax(-1)
    for _ in range(60):
        middle = (low + high) / 2
        below = (p.log_weight.exp() * torch.special.ndtr((middle.unsqueeze(-1) - p.mean) / p.log_sd.exp())).sum(-1)
        low, high = torch.where(below < at, middle, low), torch.where(below < at, high, middle)
    return high


def divergence(p: Mixture, q: Mixture, draws: Draws) -> torch.Tensor:
    """The mean of log p − log q over samples of p, for each query."""
    chosen = p.log_weight.exp().cumsum(-1).unsqueeze(-2) < draws.uniform(*p.log_weight.shape[:-1], SAMPLES, 1)
    chosen = chosen.sum(-1).clamp(max=p.mean.shape[-1] - 1)
    y = p.mean.gather(-1, chosen) + p.log_sd.exp().gather(-1, chosen) * draws.normal(*chosen.shape)
    return (p.log_density(y) - q.log_density(y)).mean(-1)


@torch.no_grad()
def main() -> None:
    print("| columns | KL | mean | 5% quantile | 95% quantile | largest of means | gap, half | gap, 8 bits |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for path in map(pathlib.Path, sys.argv[2:]):
        half, eight = load(pathlib.Path(sys.argv[1]) / path.name), load(path)
        columns = half.point1.in_features
        draws = Draws(torch.device("cpu"), 991)
        prior = Prior(columns, SIZES[columns][0], 0.5)
        found, largest = [], 0.0
        for batch in (prior.draw(SETS // 8, n, QUERIES, draws) for n in OBSERVED for _ in range(8)):
            p, q = half(batch.x.double(), batch.y.double()), eight(batch.x.double(), batch.y.double())
            (mean, variance), (other, _) = p.moments(), q.moments()
            moved = [(other - mean).abs()] + [(quantile(q, at) - quantile(p, at)).abs() for at in (0.05, 0.95)]
            entropy = batch.sd.log() + 0.5 * math.log(2 * math.pi * math.e)
            gaps = [(cross_entropy(m, batch) - entropy).mean() for m in (p, q)]
            found.append(torch.stack([divergence(p, q, draws).mean(), *[(m / variance.sqrt()).mean() for m in moved], *gaps]))
            largest = max(largest, (moved[0] / variance.sqrt()).max().item())
        kl, mean, low, high, *gaps = torch.stack(found).mean(0).tolist()
        print(f"| {columns} | {kl:.6f} | {mean:.4f} | {low:.4f} | {high:.4f} | {largest:.2f} | {gaps[0]:.3f} | {gaps[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
