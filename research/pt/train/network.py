"""The probabilistic transformer: it predicts an outcome's distribution from observations.

Observations and query points are tokens. Every token attends to the observations alone, so
queries do not depend on each other. The output is a mixture of normal distributions.
"""

import contextlib
import math

import torch
from torch import nn
from torch.nn import functional

COMPONENTS = 8
FLOOR = 1e-8  # is added to squares before their logarithm is taken


@contextlib.contextmanager
def exact():
    """Products in single precision: rounding to fewer bits would move a fit by 0.001."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class Mixture:
    """A mixture of normal distributions around a fit, from the network's output."""

    def __init__(self, fit: torch.Tensor, output: torch.Tensor):
        scale = output[..., :1]
        logits, offset, width = output[..., 1:].chunk(3, -1)
        self.log_weight = logits.log_softmax(-1)
        self.mean = fit.unsqueeze(-1) + scale.exp() * offset
        self.log_sd = scale + width

    def log_density(self, y: torch.Tensor) -> torch.Tensor:
        """The logarithms of the densities at y, which has one more dimension than the fit."""
        z = (y.unsqueeze(-1) - self.mean.unsqueeze(-2)) * (-self.log_sd).exp().unsqueeze(-2)
        each = self.log_weight.unsqueeze(-2) - 0.5 * z.square() - self.log_sd.unsqueeze(-2)
        return each.logsumexp(-1) - 0.5 * math.log(2 * math.pi)

    def moments(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance."""
        weight = self.log_weight.exp()
        mean = (weight * self.mean).sum(-1)
        variance = (weight * ((2 * self.log_sd).exp() + (self.mean - mean.unsqueeze(-1)).square())).sum(-1)
        return mean, variance


class Block(nn.Module):
    """A layer: attention to the observations, then a small network for each token.

    Attention prefers observations that are near: the score of each head falls with the squared
    distance. The rate is learnt for each column, and depends on the observations. Each layer also
    improves a fit to the outcomes: it adds a weighted mean of what the fit has left of them. So a
    small network predicts precisely where a process without noise has many observations.
    """

    def __init__(self, columns: int, width: int, heads: int, hidden: int, near: tuple[float, float]):
        super().__init__()
        self.heads, self.columns = heads, columns
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.near = nn.Linear(width, heads * columns)
        self.gate = nn.Linear(width, heads)
        self.seen = nn.Linear(4 * heads + 3, width)
        with torch.no_grad():
            self.near.weight.zero_()
            self.near.bias.copy_(torch.linspace(*near, heads).repeat_interleave(columns))
            self.gate.weight.zero_()
            self.gate.bias.fill_(1 / heads)

    def split(self, t: torch.Tensor) -> torch.Tensor:
        b, n, w = t.shape
        return t.view(b, n, self.heads, w // self.heads).transpose(1, 2)

    def score(self, x: torch.Tensor, h: torch.Tensor, observed: int) -> torch.Tensor:
        """Of each token (sets × heads × tokens × observations)."""
        sets, tokens, columns = x.shape
        query, key = self.split(self.query(h)), self.split(self.key(h[:, :observed]))
        rate = self.near(h[:, :observed].mean(1)).clamp(max=12).exp().view(sets, self.heads, 1, columns)
        with exact():
            at = x.unsqueeze(1)
            context = at[:, :, :observed] * rate
            bias = 2 * at @ context.transpose(-1, -2) - (context * at[:, :, :observed]).sum(-1).unsqueeze(2)
            bias = bias - (at.square() * rate).sum(-1, keepdim=True)
        return query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + bias

    def forward(self, x: torch.Tensor, tokens: torch.Tensor, fit: torch.Tensor, y: torch.Tensor):
        """The tokens and the fit, improved."""
        observed = y.shape[1]
        h = self.norm1(tokens)
        score = self.score(x, h, observed)
        density = score.logsumexp(-1)
        attention = (score - density.unsqueeze(-1)).exp()
        tokens = tokens + self.out((attention @ self.split(self.value(h[:, :observed]))).transpose(1, 2).flatten(2))
        left = y - fit[:, :observed]
        with exact():
            means = attention @ torch.stack([left, left.square()], -1).unsqueeze(1)
        means, squares = (m.transpose(1, 2) for m in means.unbind(-1))
        # What an observation's neighbours predict of what is left of its own outcome.
        own = attention[:, :, :observed].diagonal(dim1=2, dim2=3).transpose(1, 2)
        outside = (left.unsqueeze(-1) - means[:, :observed]) / (1 - own + 1e-3)
        of_observed = torch.cat([left.unsqueeze(-1), logarithm(left.unsqueeze(-1)), logarithm(outside)], -1)
        of_observed = functional.pad(of_observed, (0, 0, 0, tokens.shape[1] - observed))
        fit = fit + (self.gate(h) * means).sum(-1)
        seen = [fit.unsqueeze(-1), means, (squares + FLOOR).log() / 5, density.transpose(1, 2) / 5, of_observed]
        tokens = tokens + self.seen(torch.cat(seen, -1))
        return tokens + self.down(functional.gelu(self.up(self.norm2(tokens)))), fit


def logarithm(v: torch.Tensor) -> torch.Tensor:
    return (v.square() + FLOOR).log() / 5


class Transformer(nn.Module):
    """A mixture for each query point, given observations."""

    def __init__(self, columns: int, width: int, heads: int, hidden: int, layers: int):
        super().__init__()
        self.point1, self.point2 = nn.Linear(columns, width), nn.Linear(width, width)
        self.outcome = nn.Linear(1, width)
        # Rates for neighbours that are far or close, by how far apart points are in so many columns.
        near = {1: (1.5, 8.5), 2: (1.0, 6.0)}.get(columns, (0.0, 3.5) if columns <= 5 else (-1.0, 2.5))
        self.blocks = nn.ModuleList(Block(columns, width, heads, hidden, near) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3 * COMPONENTS + 1)
        with torch.no_grad():
            self.head.weight.mul_(0.1)
            self.head.bias.zero_()
            self.head.bias[1 + COMPONENTS : 1 + 2 * COMPONENTS] = torch.linspace(-1, 1, COMPONENTS)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Mixture:
        """x holds all points, the observed ones first; y the outcomes of those."""
        observed = y.shape[1]
        x = x - 0.5
        tokens = self.point2(functional.gelu(self.point1(x * math.sqrt(12))))
        tokens = torch.cat([tokens[:, :observed] + self.outcome(y.unsqueeze(-1)), tokens[:, observed:]], 1)
        fit = torch.zeros_like(tokens[..., 0])
        for block in self.blocks:
            tokens, fit = block(x, tokens, fit, y)
        return Mixture(fit[:, observed:], self.head(self.norm(tokens[:, observed:])))
