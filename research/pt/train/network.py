"""The probabilistic transformer: it predicts an outcome's distribution from observations.

Observations and query points are tokens. Every token attends to the observations alone, so
queries do not depend on each other. The output is a distribution over buckets of the outcome.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class Buckets:
    """A piecewise constant density (Riemann distribution) with half-normal tails.

    The first and the last bucket are unbounded: their density falls from the inner border as
    one half of a normal density.
    """

    def __init__(self, borders: torch.Tensor, tails: torch.Tensor):
        self.borders = borders  # the inner borders, one fewer than there are buckets
        self.tails = tails  # the standard deviations of the lower and the upper tail

    @staticmethod
    def of_sample(y: torch.Tensor, count: int) -> "Buckets":
        """Borders between which a sample has equally many values, and tails that fit it."""
        borders = torch.quantile(y, torch.linspace(0, 1, count + 1)[1:-1])
        below, above = y[y < borders[0]] - borders[0], y[y > borders[-1]] - borders[-1]
        return Buckets(borders, torch.stack([below.square().mean().sqrt(), above.square().mean().sqrt()]))

    def log_density(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The logarithm of the predicted density at y."""
        bucket = torch.bucketize(y, self.borders)
        log_p = logits.log_softmax(-1).gather(-1, bucket.unsqueeze(-1)).squeeze(-1)
        width = torch.diff(self.borders)
        inner = -width[(bucket - 1).clamp(0, len(width) - 1)].log()
        half_normal = 0.5 * math.log(2 / math.pi) - self.tails.log()
        below = half_normal[0] - 0.5 * ((y - self.borders[0]) / self.tails[0]) ** 2
        above = half_normal[1] - 0.5 * ((y - self.borders[-1]) / self.tails[1]) ** 2
        shape = torch.where(bucket == 0, below, torch.where(bucket == len(self.borders), above, inner))
        return log_p + shape


class Block(nn.Module):
    """A layer: attention to the observations, then a small network for each token.

    Attention prefers observations that are near: the score of each head falls with the squared
    distance, at a rate that is learnt. This gives a small network after few steps what a large
    one has to learn.
    """

    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        # From no preference to one for neighbours within a twentieth of a side.
        self.near = nn.Parameter(torch.linspace(-1, 5, heads))

    def split(self, t: torch.Tensor) -> torch.Tensor:
        b, n, w = t.shape
        return t.view(b, n, self.heads, w // self.heads).transpose(1, 2)

    def forward(self, tokens: torch.Tensor, observed: int, distance: torch.Tensor) -> torch.Tensor:
        """distance holds the squared distances from each token to each observation."""
        h = self.norm1(tokens)
        context = h[:, :observed]
        query, key, value = self.split(self.query(h)), self.split(self.key(context)), self.split(self.value(context))
        score = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        score = score - self.near.exp().view(1, -1, 1, 1) * distance.unsqueeze(1)
        attended = score.softmax(-1).to(value.dtype) @ value
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        return tokens + self.down(functional.gelu(self.up(self.norm2(tokens))))


class Transformer(nn.Module):
    """Logits over buckets for query points, given observations."""

    def __init__(self, columns: int, width: int, heads: int, hidden: int, layers: int, buckets: int):
        super().__init__()
        self.point1, self.point2 = nn.Linear(columns, width), nn.Linear(width, width)
        self.outcome = nn.Linear(1, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, buckets)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x holds all points, the observed ones first; y the outcomes of those."""
        observed = y.shape[1]
        centred = (x - 0.5) * math.sqrt(12)
        tokens = self.point2(functional.gelu(self.point1(centred)))
        tokens = torch.cat([tokens[:, :observed] + self.outcome(y.unsqueeze(-1)), tokens[:, observed:]], 1)
        distance = (x.unsqueeze(2) - x[:, :observed].unsqueeze(1)).square().sum(-1)
        for block in self.blocks:
            tokens = block(tokens, observed, distance)
        return self.head(self.norm(tokens[:, observed:]))
