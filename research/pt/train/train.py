"""Trains one transformer and writes its weights. Run it by research/pt/train-transformer.

The same arguments give the same weights on the same kind of processor and version of PyTorch.
"""

import argparse
import json
import math
import pathlib
import time

import torch
from safetensors.torch import save_file

from network import Buckets, Transformer
from prior import Prior

WIDTH, HEADS, HIDDEN, LAYERS, BUCKETS = 64, 4, 128, 4, 100
SETS, QUERIES = 16, 48
LEAST, USUAL, MOST = 4, 100, 200  # observations: three of four batches have up to USUAL
RATE, DECAY, CLIP, WARM = 2e-3, 0.01, 1.0, 0.125

# What the models of the paper differ in: the weighted split (ν) and the regulariser (R). The
# program's models are the last of them.
VARIANTS = {"pt": (False, False), "pt-v": (True, False), "pt-r": (False, True), "pt-vr": (True, True)}
# By a model's columns: the least number that its data sets use, and the regulariser's radius
# (Table 4; the last one's is that of ten dimensions).
SIZES = {1: (1, 0.05), 2: (2, 0.05), 5: (3, 0.5), 12: (6, 1.0)}


def regulariser(logits: torch.Tensor, x: torch.Tensor, radius: float) -> torch.Tensor:
    """Equation 3 of the paper, averaged over the queries: neighbours should predict the same."""
    log_p = logits.log_softmax(-1)
    p = log_p.exp()
    divergence = (p * log_p).sum(-1, keepdim=True) - p @ log_p.transpose(1, 2)
    weight = (1 - torch.cdist(x, x) / radius).clamp_min(0)
    return (weight * divergence).sum(-1).mean()


def schedule(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine."""
    warm = max(1, int(WARM * steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(columns: int, variant: str, steps: int, seed: int) -> tuple[Transformer, Buckets, dict]:
    weighted, regularised = VARIANTS[variant]
    least, radius = SIZES[columns]
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    prior = Prior(columns, least, weighted)
    sample = torch.cat([prior.draw(SETS, 4 + 8 * i, QUERIES, rng)[2].flatten() for i in range(20)])
    buckets = Buckets.of_sample(sample, BUCKETS)
    model = Transformer(columns, WIDTH, HEADS, HIDDEN, LAYERS, BUCKETS)
    optimiser = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY)
    rates = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: schedule(step, steps))
    losses, began = [], time.process_time()
    for step in range(steps):
        usual = torch.rand(1, generator=rng).item() < 0.75
        low, high = (LEAST, USUAL) if usual else (USUAL, MOST)
        observed = torch.randint(low, high + 1, (1,), generator=rng).item()
        x, y, f = prior.draw(SETS, observed, QUERIES, rng)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(x, y)
        logits = logits.float()
        loss = -buckets.log_density(logits, f).mean()
        losses.append(loss.item())
        if regularised:
            loss = loss + regulariser(logits, x[:, observed:], radius)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        rates.step()
        if (step + 1) % 100 == 0:
            print(f"{columns} columns, {variant}, step {step + 1}: loss {sum(losses[-100:]) / 100:.3f}, "
                  f"{time.process_time() - began:.0f} s", flush=True)
    last = losses[-max(1, steps // 10):]
    record = {
        "columns": columns, "min_columns": least, "variant": variant, "seed": seed, "steps": steps, "sets": SETS,
        "loss": round(sum(last) / len(last), 4), "minutes": round((time.process_time() - began) / 60, 2),
        "torch": torch.__version__.split("+")[0],
    }
    return model, buckets, record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, choices=SIZES, required=True)
    parser.add_argument("--variant", choices=VARIANTS, default="pt-vr")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the weights' file; its record ends in .json")
    a = parser.parse_args()
    torch.set_num_threads(1)
    model, buckets, record = train(a.columns, a.variant, a.steps, a.seed)
    tensors = {name: t.detach().to(torch.float16).contiguous() for name, t in model.state_dict().items()}
    tensors["borders"], tensors["tails"] = buckets.borders.contiguous(), buckets.tails
    shape = {"heads": HEADS, "least_columns": SIZES[a.columns][0], "most_observations": MOST}
    save_file(tensors, a.out, {name: str(value) for name, value in shape.items()})
    a.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
