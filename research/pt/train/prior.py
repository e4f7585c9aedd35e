"""Data sets on which the transformer is trained: draws from Gaussian processes."""

import dataclasses
import math

import torch


@dataclasses.dataclass(frozen=True)
class Prior:
    """Functions of a few columns, the others being constant."""

    columns: int  # of the network; a data set uses min_columns to columns of them
    min_columns: int
    weighted: bool  # observe by softmax(y): high outcomes more often (ν of the paper)

    def draw(self, sets: int, observed: int, queries: int, rng: torch.Generator):
        """x of sets×(observed+queries)×columns, y of the observed, f of the queries.

        f has no noise. Both are standardised by the observations. A column that is not used is
        in the middle, as the optimiser leaves it.
        """
        pool = observed + max(observed, 64, queries)
        used = torch.randint(self.min_columns, self.columns + 1, (1,), generator=rng).item()
        x, f, noise = self.functions(sets, pool, used, rng)
        y = f + noise * torch.randn(f.shape, generator=rng)
        # The largest of y + Gumbel noise are draws without replacement by softmax(y).
        gumbel = -(-torch.rand(y.shape, generator=rng).clamp(1e-12, 1 - 1e-7).log()).log()
        order = (y + gumbel if self.weighted else gumbel).argsort(dim=1, descending=True)
        rest = order[:, observed:]
        chosen = torch.rand(rest.shape, generator=rng).argsort(dim=1)[:, :queries]
        order = torch.cat([order[:, :observed], rest.gather(1, chosen)], 1)
        x = x.gather(1, order.unsqueeze(-1).expand(-1, -1, used))
        y, f = y.gather(1, order)[:, :observed], f.gather(1, order)[:, observed:]
        mean, sd = y.mean(1, keepdim=True), y.std(1, keepdim=True, correction=0).clamp_min(1e-6)
        full = torch.full((sets, observed + queries, self.columns), 0.5)
        places = torch.rand(self.columns, generator=rng).argsort()[:used]
        full[:, :, places] = x
        return full, (y - mean) / sd, (f - mean) / sd

    def functions(self, sets: int, pool: int, used: int, rng: torch.Generator):
        """Points, draws of a Matérn-5/2 process with unit variance there, and the noise.

        Lengthscales are LogNormal(ln(0.3·√d), 0.6) for each column of d. The noise's standard
        deviation is log-uniform from 1e-3 to 0.3, and 0 in half of the sets.
        """
        scale = torch.exp(math.log(0.3 * math.sqrt(used)) + 0.6 * torch.randn(sets, 1, used, generator=rng))
        noise = torch.exp(math.log(1e-3) + math.log(300) * torch.rand(sets, 1, generator=rng))
        noise = noise * (torch.rand(sets, 1, generator=rng) < 0.5)
        x = torch.rand(sets, pool, used, generator=rng)
        normal = torch.randn(sets, pool, 1, generator=rng, dtype=torch.double)
        f = values(x, scale, normal)
        return x, f, noise


def values(x: torch.Tensor, scale: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    """The values at x of Matérn-5/2 processes, from as many standard normal numbers."""
    z = (x / scale).double()
    square = z.square().sum(-1)
    r = (square.unsqueeze(1) + square.unsqueeze(2) - 2 * z @ z.transpose(1, 2)).clamp_min(0).mul(5).sqrt()
    k = (1 + r + r.square() / 3) * torch.exp(-r)
    k.diagonal(dim1=1, dim2=2).add_(1e-6)
    return (torch.linalg.cholesky(k) @ normal).squeeze(-1).float()
