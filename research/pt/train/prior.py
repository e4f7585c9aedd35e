"""Data sets on which the transformer is trained: draws from Gaussian processes.

The places of observations depend only on outcomes that were observed before, so the posterior of
the process that made a data set is exact. It is what the transformer has to predict.
"""

from __future__ import annotations

import dataclasses
import math

import torch

JITTER = 1e-6  # the variance that every value of a function has of its own
OUTCOMES = 5  # for each query


@dataclasses.dataclass(frozen=True)
class Batch:
    """Data sets of one size. Outcomes are standardised by the observed ones."""

    x: torch.Tensor  # sets × (observed + queries) × columns, the observed points first
    y: torch.Tensor  # sets × observed
    sd: torch.Tensor  # sets × queries: of the function by the exact posterior
    outcomes: torch.Tensor  # sets × queries × OUTCOMES: draws from the exact posterior

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.x, self.y, self.sd, self.outcomes


@dataclasses.dataclass(frozen=True)
class Prior:
    """Functions of a few columns, the others being constant."""

    columns: int  # of the network; a data set uses least to columns of them
    least: int
    searching: float  # the share of data sets that were observed as a search does, and of such queries
    categorical: bool = True  # some columns are in steps, or are the choices of a categorical parameter

    @torch.no_grad()
    def draw(self, sets: int, observed: int, queries: int, draws: Draws, near: int | None = None) -> Batch:
        """near is how many of the queries are near the best observations.

        A column that is not used is in the middle, as the optimiser leaves it.
        """
        used = draws.integer(self.least, self.columns)
        shape = Shape.draw(used, draws) if self.categorical else Shape(used, (), ())
        process = Process.draw(sets, used, draws)
        like_search = round(sets * self.searching) if observed >= 6 else 0
        x = shape.snap(draws.uniform(sets, observed, used))
        normal = draws.normal(sets, observed)
        if like_search:
            first = slice(0, like_search)
            x[first] = search(x[first], normal[first], process.of(first), shape, draws)
        root = torch.linalg.cholesky_ex(process.covariance(x, x, process.noise.square() + JITTER))[0]
        y = (root @ normal.unsqueeze(-1)).squeeze(-1)
        near = round(queries * self.searching) if near is None else near
        query = shape.snap(draws.uniform(sets, queries - near, used))
        if near:
            query = torch.cat([query, around(x, y, near, 0.01, 0.2, shape, draws)], 1)
        # With root⁻¹y = normal, the posterior takes one more solution.
        solved = torch.linalg.solve_triangular(root, process.covariance(x, query), upper=False)
        mean = (solved * normal.unsqueeze(-1)).sum(1)
        variance = (1 + JITTER - solved.square().sum(1)).clamp_min(JITTER)
        centre, spread = y.mean(1, keepdim=True), y.std(1, keepdim=True, correction=0).clamp_min(1e-6)
        points = torch.cat([x, query], 1)
        if used < self.columns:
            places = draws.uniform(self.columns).argsort()[:used]
            full = torch.full((*points.shape[:2], self.columns), 0.5, dtype=points.dtype, device=points.device)
            full[:, :, places] = points
            points = full
        mean, sd = (mean - centre) / spread, variance.sqrt() / spread
        # One outcome from each of equally likely strata. Places that were the same in each set, such as
        # those of a quadrature, would teach a mixture to put its components there.
        strata = torch.arange(OUTCOMES, device=x.device)
        normal = torch.special.ndtri((strata + draws.uniform(sets, queries, OUTCOMES)) / OUTCOMES)
        outcomes = mean.unsqueeze(-1) + sd.unsqueeze(-1) * normal.clamp(-8, 8)
        return Batch(points.float(), ((y - centre) / spread).float(), sd.float(), outcomes.float())


class Draws:
    """Random numbers in double precision on a device.

    What decides about sizes is drawn on the processor, so that nothing waits for the device.
    """

    def __init__(self, device: torch.device, seed: int):
        self.rng, self.host = torch.Generator(device).manual_seed(seed), torch.Generator().manual_seed(seed)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=self.rng, device=self.rng.device, dtype=torch.double)

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self.rng, device=self.rng.device, dtype=torch.double)

    def fraction(self) -> float:
        return torch.rand(1, generator=self.host).item()

    def integer(self, low: int, high: int) -> int:
        return low + int(self.fraction() * (high + 1 - low))


@dataclasses.dataclass(frozen=True)
class Shape:
    """What the columns of a data set can hold."""

    used: int
    levels: tuple[tuple[int, int], ...]  # columns in even steps, with the number of their levels
    groups: tuple[tuple[int, int], ...]  # first column and number of the choices of one parameter

    @staticmethod
    def draw(used: int, draws: Draws) -> "Shape":
        """Half of the data sets have continuous columns alone."""
        if draws.fraction() < 0.5:
            return Shape(used, (), ())
        levels, groups, at = [], [], 0
        while at < used:
            kind, size = draws.fraction(), draws.integer(3, 4)
            if kind < 0.2 and at + size <= used:
                groups.append((at, size))
                at += size
                continue
            if kind < 0.5:
                levels.append((at, draws.integer(2, 12)))
            at += 1
        return Shape(used, tuple(levels), tuple(groups))

    def snap(self, x: torch.Tensor) -> torch.Tensor:
        for column, count in self.levels:
            x[..., column] = (x[..., column] * (count - 1)).round() / (count - 1)
        for first, size in self.groups:
            part = x[..., first : first + size]
            x[..., first : first + size] = torch.nn.functional.one_hot(part.argmax(-1), size).to(x.dtype)
        return x


@dataclasses.dataclass(frozen=True)
class Process:
    """Matérn-5/2 processes with unit variance: lengthscales (sets×1×columns) and noise (sets×1)."""

    scale: torch.Tensor
    noise: torch.Tensor

    @staticmethod
    def draw(sets: int, used: int, draws: Draws) -> "Process":
        """Lengthscales are LogNormal(ln(0.3·√d), 0.6) for each column of d. The noise's standard
        deviation is log-uniform from 1e-3 to 0.3, and 0 in half of the sets.
        """
        scale = torch.exp(math.log(0.3 * math.sqrt(used)) + 0.6 * draws.normal(sets, 1, used))
        noise = torch.exp(math.log(1e-3) + math.log(300) * draws.uniform(sets, 1))
        return Process(scale, noise * (draws.uniform(sets, 1) < 0.5))

    def of(self, sets: slice) -> "Process":
        return Process(self.scale[sets], self.noise[sets])

    def covariance(self, a: torch.Tensor, b: torch.Tensor, diagonal: torch.Tensor | None = None) -> torch.Tensor:
        a, b = a / self.scale, b / self.scale
        square = a.square().sum(-1).unsqueeze(2) + b.square().sum(-1).unsqueeze(1) - 2 * a @ b.transpose(1, 2)
        r = square.clamp_min_(0).mul_(5).sqrt_()
        k = (1 + r + r.square() / 3) * torch.exp(-r)
        if diagonal is not None:
            k.diagonal(dim1=1, dim2=2).copy_(1 + diagonal)
        return k


def search(x: torch.Tensor, normal: torch.Tensor, process: Process, shape: Shape, draws: Draws) -> torch.Tensor:
    """Replaces all but the first points of each set by ones around the best points before them."""
    observed = x.shape[1]
    first = max(3, int(observed * (0.15 + 0.55 * draws.fraction())))
    x = x.clone()
    for begin, end in ((first, (first + observed + 1) // 2), ((first + observed + 1) // 2, observed)):
        if end <= begin:
            continue
        before = x[:, :begin]
        root = torch.linalg.cholesky_ex(process.covariance(before, before, process.noise.square() + JITTER))[0]
        y = (root @ normal[:, :begin].unsqueeze(-1)).squeeze(-1)
        x[:, begin:end] = around(before, y, end - begin, 0.003, 0.3, shape, draws)
    return x


def around(x: torch.Tensor, y: torch.Tensor, count: int, near: float, far: float, shape: Shape, draws: Draws) -> torch.Tensor:
    """Points at normal steps, of log-uniform size, from the five lowest outcomes of each set."""
    sets, columns = len(x), x.shape[2]
    best = y.topk(min(5, y.shape[1]), dim=1, largest=False).indices
    chosen = best.gather(1, (draws.uniform(sets, count) * best.shape[1]).long())
    start = x.gather(1, chosen.unsqueeze(-1).expand(-1, -1, columns))
    size = near * torch.exp(math.log(far / near) * draws.uniform(sets, count, 1))
    # One half of the points differ in some columns alone.
    kept = (draws.uniform(sets, count, 1) < 0.5) & (draws.uniform(sets, count, columns) < 0.5)
    moved = (start + size * draws.normal(sets, count, columns) * ~kept).clamp_(0, 1)
    for at, width in [(column, 1) for column, _ in shape.levels] + list(shape.groups):
        again = draws.uniform(sets, count, 1) < 0.15  # steps are too short to leave a level
        fresh = draws.uniform(sets, count, width)
        moved[..., at : at + width] = torch.where(again, fresh, moved[..., at : at + width])
    return shape.snap(moved)
