"""Trains one transformer as the paper does (Maraval et al. 2022), small enough for a core, and writes its weights.

The variants are the paper's: pt, pt-r with the regulariser (Rε), pt-v with the prior of points that are not uniform (ν), and
pt-vr with both. The network has plain attention and a histogram of 100 buckets; targets are outcomes of the data set. What the
paper does not say is chosen here: the prior on the kernel's hyperparameters is that of prior.py, and coordinates go through two
linear maps. Training saves itself, and goes on where it was interrupted.
"""

import argparse
import json
import math
import os
import pathlib
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from prior import JITTER, Draws, Process

BUCKETS, LEAST, CLIP, WARM, DECAY = 100, 4, 1.0, 0.125, 0.01  # 50 of the paper's 400 epochs warm up
VARIANTS = {"pt": (False, False), "pt-v": (True, False), "pt-r": (False, True), "pt-vr": (True, True)}
RADIUS = {1: 0.05, 2: 0.05, 5: 0.5, 10: 1.0}  # Table 4


def split(y: torch.Tensor, observed: int, uneven: bool, draws: Draws) -> torch.Tensor:
    """The order of each data set's pairs, those first that are observed.

    With ν a pair is drawn with a probability proportional to exp(y), without replacement: the largest sums of y and Gumbel noise are
    such a sample. So the outcomes to predict are the lower ones.
    """
    noise = -torch.log(-torch.log(draws.uniform(*y.shape).clamp(1e-12, 1 - 1e-12)))
    return ((y + noise) if uneven else noise).argsort(1, descending=True)


@torch.no_grad()
def draw(sets: int, size: int, observed: int, columns: int, uneven: bool, draws: Draws) -> tuple[torch.Tensor, torch.Tensor]:
    """Points and outcomes of data sets, those first that are observed."""
    process = Process.draw(sets, columns, draws)
    x = draws.uniform(sets, size, columns)
    root = torch.linalg.cholesky_ex(process.covariance(x, x, process.noise.square() + JITTER))[0]
    y = (root @ draws.normal(sets, size).unsqueeze(-1)).squeeze(-1)
    order = split(y, observed, uneven, draws)
    return x.gather(1, order.unsqueeze(-1).expand(-1, -1, columns)).float(), y.gather(1, order).float()


def borders(a: argparse.Namespace) -> torch.Tensor:
    """The ends of buckets that hold the same share of the outcomes of ten batches."""
    draws = Draws(torch.device("cpu"), a.seed + 1000)
    y = torch.cat([draw(a.sets, a.size, LEAST, a.columns, False, draws)[1].flatten() for _ in range(10)]).sort().values
    return y[(torch.arange(BUCKETS + 1) / BUCKETS * (len(y) - 1)).round().long()]


class Block(nn.Module):
    """A layer: every token attends to the observations, then a small network for each token."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def split(self, t: torch.Tensor) -> torch.Tensor:
        return t.view(*t.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, tokens: torch.Tensor, observed: int) -> torch.Tensor:
        h = self.norm1(tokens)
        seen = h[:, :observed]
        attended = functional.scaled_dot_product_attention(self.split(self.query(h)), self.split(self.key(seen)), self.split(self.value(seen)))
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        return tokens + self.down(functional.gelu(self.up(self.norm2(tokens))))


class Histogram(nn.Module):
    """Gives the logits of the buckets at each point to predict."""

    def __init__(self, columns: int, width: int, heads: int, layers: int):
        super().__init__()
        self.point1, self.point2, self.outcome = nn.Linear(columns, width), nn.Linear(width, width), nn.Linear(1, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, BUCKETS)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x holds all points, the observed ones first; y the outcomes of those."""
        observed = y.shape[1]
        tokens = self.point2(functional.gelu(self.point1((x - 0.5) * math.sqrt(12))))
        tokens = torch.cat([tokens[:, :observed] + self.outcome(y.unsqueeze(-1)), tokens[:, observed:]], 1)
        for block in self.blocks:
            tokens = block(tokens, observed)
        return self.head(self.norm(tokens[:, observed:]))


def regulariser(log_p: torch.Tensor, x: torch.Tensor, radius: float) -> torch.Tensor:
    """Equation 3, averaged over the points to predict."""
    p = log_p.exp()
    divergence = (p * log_p).sum(-1, keepdim=True) - p @ log_p.transpose(1, 2)
    weight = (1 - torch.cdist(x, x) / radius).clamp_min(0)
    return (weight * divergence).sum(-1).mean()


def factor(done: float) -> float:
    """Of the learning rate: linear warm-up, then a cosine."""
    return done / WARM + 1e-3 if done < WARM else 0.5 * (1 + math.cos(math.pi * (done - WARM) / (1 - WARM)))


def train(a: argparse.Namespace) -> None:
    uneven, regularised = VARIANTS[a.variant]
    torch.manual_seed(a.seed)
    model, ends, draws = Histogram(a.columns, a.width, a.heads, a.layers), borders(a), Draws(torch.device("cpu"), a.seed)
    optimiser = torch.optim.AdamW(model.parameters(), a.rate, betas=(0.9, 0.999), weight_decay=DECAY)
    kept, first, spent, losses = a.out.with_suffix(".part"), 0, 0.0, []
    if kept.exists():
        state = torch.load(kept)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        draws.rng.set_state(state["rng"])
        draws.host.set_state(state["host"])
        first, spent, losses = state["step"], state["spent"], state["losses"]
    began = time.monotonic()
    for step in range(first, a.steps):
        for group in optimiser.param_groups:
            group["lr"] = a.rate * factor(step / a.steps)
        observed = draws.integer(LEAST, a.most)
        x, y = draw(a.sets, a.size, observed, a.columns, uneven, draws)
        log_p = model(x, y[:, :observed]).log_softmax(-1)
        target = torch.bucketize(y[:, observed:].contiguous(), ends[1:-1])
        loss = total = functional.nll_loss(log_p.flatten(0, 1), target.flatten())
        if regularised:
            total = loss + a.weight * regulariser(log_p, x[:, observed:], a.radius or RADIUS[a.columns])
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        losses.append(loss.item())
        if (step + 1) % 250 == 0:
            now = spent + time.monotonic() - began
            print(f"{a.columns} columns, {a.variant}, step {step + 1}: loss {sum(losses[-250:]) / 250:.3f}, {now:.0f} s", flush=True)
            state = {
                "model": model.state_dict(), "optimiser": optimiser.state_dict(), "rng": draws.rng.get_state(), "host": draws.host.get_state(),
                "step": step + 1, "spent": now, "losses": losses,
            }
            torch.save(state, kept.with_suffix(".new"))
            os.replace(kept.with_suffix(".new"), kept)
    save(a, model, ends, losses, spent + time.monotonic() - began)
    kept.unlink(missing_ok=True)


def save(a: argparse.Namespace, model: Histogram, ends: torch.Tensor, losses: list[float], seconds: float) -> None:
    """Writes the weights, the ends of the buckets, and a record."""
    tensors = {name: t.detach().contiguous() for name, t in model.state_dict().items()} | {"ends": ends}
    save_file(tensors, a.out, {"heads": str(a.heads)})
    last = losses[-max(1, len(losses) // 20) :]
    record = {
        "columns": a.columns, "variant": a.variant, "seed": a.seed, "layers": a.layers, "width": a.width, "steps": a.steps, "sets": a.sets,
        "size": a.size, "most": a.most, "weight": a.weight, "loss": round(sum(last) / max(1, len(last)), 3), "minutes": round(seconds / 60, 1),
    }
    a.out.with_suffix(".json").write_text(json.dumps(record) + "\n")


def golden(a: argparse.Namespace) -> None:
    """Writes a network that was not trained, and what it predicts, for the test of compare."""
    torch.manual_seed(a.seed)
    model = Histogram(2, 8, 2, 2)
    x, y = torch.rand(1, 9, 2), torch.randn(1, 6)
    save(argparse.Namespace(**vars(a) | {"heads": 2}), model, torch.linspace(-3, 3, BUCKETS + 1), [], 0)
    with torch.no_grad():
        p = model(x, y).softmax(-1)[0]
    a.out.with_suffix(".json").write_text(json.dumps({"x": x[0].tolist(), "y": y[0].tolist(), "p": p.tolist()}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, choices=RADIUS, default=1)
    parser.add_argument("--variant", choices=VARIANTS, default="pt-vr")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--sets", type=int, default=12, help="data sets of a step")
    parser.add_argument("--size", type=int, default=96, help="pairs of a data set")
    parser.add_argument("--most", type=int, default=64, help="the most observations of a data set")
    parser.add_argument("--rate", type=float, default=3e-3, help="the learning rate")
    parser.add_argument("--weight", type=float, default=1.0, help="of the regulariser")
    parser.add_argument("--radius", type=float, help="of the regulariser, instead of the paper's")
    parser.add_argument("--golden", action="store_true", help="write the network of the test instead")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the weights' file; its record ends in .json")
    a = parser.parse_args()
    torch.set_num_threads(1)
    (golden if a.golden else train)(a)


if __name__ == "__main__":
    main()
