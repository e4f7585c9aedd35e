"""Trains one transformer and writes its weights. Run it by research/pt/train-transformer.

With --steps, the same arguments give the same weights on the same kind of processor and version of
PyTorch. With --seconds, training ends when they have passed.
"""

import argparse
import copy
import json
import math
import os
import pathlib
import sys
import time

import torch
from safetensors.torch import load_file, save_file
from torch.special import ndtr

from network import Mixture, Transformer
from prior import Batch, Draws, Prior

# Numbers of observations in training.
OBSERVATIONS = (4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128)
CLIP, WARM, DECAY = 1.0, 0.05, 0.01
BUCKETS, REGULARISED = 100, 32  # of the regulariser: buckets, and the most data sets of a batch

# What the models of the paper differ in: ν, which is another one here (observations and queries as in a search), and the
# regulariser (R). The program's models are the last of them.
VARIANTS = {"pt": (False, False), "pt-v": (True, False), "pt-r": (False, True), "pt-vr": (True, True)}
# By a model's columns: the least number that its data sets use, the regulariser's radius (Table 4;
# the last one's is that of ten dimensions) and its weight.
SIZES = {1: (1, 0.05, 0.01), 2: (2, 0.05, 0.01), 5: (3, 0.5, 0.01), 12: (6, 1.0, 0.01)}


def cross_entropy(predicted: Mixture, batch: Batch) -> torch.Tensor:
    """Of each query, under the exact posterior."""
    return -predicted.log_density(batch.outcomes).mean(-1)


def regulariser(predicted: Mixture, x: torch.Tensor, radius: float) -> torch.Tensor:
    """Equation 3 of the paper, averaged over the queries: neighbours should predict the same.

    The divergence is that of the paper's predictions, over buckets in which a standard normal
    distribution is equally likely.
    """
    inner = torch.special.ndtri(torch.arange(1, BUCKETS, device=x.device) / BUCKETS)
    z = (inner - predicted.mean.unsqueeze(-1)) * (-predicted.log_sd).exp().unsqueeze(-1)
    below = (predicted.log_weight.exp().unsqueeze(-1) * ndtr(z)).sum(-2)
    p = torch.diff(below, prepend=torch.zeros_like(below[..., :1]), append=torch.ones_like(below[..., :1])).clamp_min(1e-6)
    log_p = p.log()
    divergence = (p * log_p).sum(-1, keepdim=True) - p @ log_p.transpose(1, 2)
    weight = (1 - torch.cdist(x, x) / radius).clamp_min(0)
    return (weight * divergence).sum(-1).mean()


def part(predicted: Mixture, step: int) -> Mixture:
    """The predictions of each data set whose number is a multiple of step."""
    some = copy.copy(predicted)
    some.log_weight, some.mean, some.log_sd = (t[::step] for t in (predicted.log_weight, predicted.mean, predicted.log_sd))
    return some


@torch.no_grad()
def gaps(model: Transformer, columns: int, device: torch.device) -> dict[str, float]:
    """How far cross-entropies are above those of the exact posterior, with 100 observations.

    The queries are even or near the best points. The observations are even, or like a search's.
    """
    found, fast = {}, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, searching, near in (("even", 0.0, 0), ("near", 0.0, 64), ("search", 1.0, 32)):
        draws = Draws(device, 12345)
        prior = Prior(columns, columns, searching, categorical=False)
        found[name] = gap(model, [prior.draw(64, 100, 64, draws, near) for _ in range(4)])
    torch.backends.cuda.matmul.allow_tf32 = fast
    return found


def gap(model: Transformer, batches: list[Batch]) -> float:
    total = 0.0
    for batch in batches:
        exact = batch.sd.log() + 0.5 * math.log(2 * math.pi * math.e)
        total += (cross_entropy(model(batch.x, batch.y), batch) - exact).mean().item()
    return total / len(batches)


class Clock:
    """How much of the training has passed: of the steps, or of the seconds."""

    def __init__(self, steps: int | None, seconds: float | None):
        self.steps, self.seconds, self.step, self.began = steps, seconds, 0, time.monotonic()

    def passed(self) -> float:
        if self.steps is not None:
            return self.step / self.steps
        return self.seconds_passed() / self.seconds

    def seconds_passed(self) -> float:
        return time.monotonic() - self.began

    def rate(self) -> float:
        """The factor of the learning rate: linear warm-up, then a cosine."""
        done = self.passed()
        if done < WARM:
            return done / WARM + 1e-3
        return 0.5 * (1 + math.cos(math.pi * min(1, (done - WARM) / (1 - WARM))))


class Step:
    """One step of the training. It computes nothing that the processor has to wait for."""

    def __init__(self, model: Transformer, a: argparse.Namespace, device: torch.device):
        on_gpu = device.type == "cuda"
        self.model, self.every = model, max(1, a.sets // REGULARISED)
        self.radius = SIZES[a.columns][1] if a.radius is None else a.radius
        self.weight = 0.0
        if VARIANTS[a.variant][1]:
            self.weight = SIZES[a.columns][2] if a.weight is None else a.weight
        self.rate = torch.tensor(a.rate, device=device)
        self.optimiser = torch.optim.AdamW(model.parameters(), self.rate, weight_decay=DECAY, fused=on_gpu, capturable=on_gpu)

    def __call__(self, batch: Batch) -> torch.Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        predicted = self.model(batch.x, batch.y)
        loss = total = cross_entropy(predicted, batch).mean()
        if self.weight:
            queries = batch.x[:: self.every, batch.y.shape[1] :]
            total = loss + self.weight * regulariser(part(predicted, self.every), queries, self.radius)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        return loss.detach()

    def restore(self, good: dict[str, torch.Tensor]) -> None:
        """Goes back to earlier weights, in place."""
        self.model.load_state_dict(good)
        for state in self.optimiser.state.values():
            state["exp_avg"].zero_()
            state["exp_avg_sq"].zero_()


class Graphs:
    """Replays steps on a GPU: launching their kernels one by one takes longer than computing them.

    There is a graph for each number of observations. They share their memory, since nothing but the
    loss is read of a step after it.
    """

    def __init__(self, step: Step):
        self.step, self.pool, self.kept = step, torch.cuda.graph_pool_handle(), {}

    def __call__(self, batch: Batch) -> torch.Tensor:
        size = batch.y.shape[1]
        if size not in self.kept:
            self.kept[size] = self.capture(batch)
        graph, static, loss = self.kept[size]
        for to, given in zip(static.tensors(), batch.tensors()):
            to.copy_(given)
        graph.replay()
        return loss.clone()

    def capture(self, batch: Batch):
        static = Batch(*(t.clone() for t in batch.tensors()))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.step(static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            loss = self.step(static)
        return graph, static, loss


class Supply:
    """Batches of random sizes. Some are drawn together, and given out between those of other sizes."""

    def __init__(self, prior: Prior, a: argparse.Namespace, draws: Draws):
        self.prior, self.a, self.draws, self.waiting = prior, a, draws, []

    def draw(self, observed: int) -> list[Batch]:
        a = self.a
        drawn = self.prior.draw(a.sets * a.together, observed, a.queries, self.draws)
        return [Batch(*(t[i :: a.together] for t in drawn.tensors())) for i in range(a.together)]

    def next(self) -> Batch:
        while len(self.waiting) < self.a.together:
            wanted = self.draws.integer(OBSERVATIONS[0], self.a.most)
            observed = next(n for n in OBSERVATIONS if n >= wanted)
            self.waiting.append(self.draw(min(observed, self.a.most)))
        chosen = self.waiting[self.draws.integer(0, len(self.waiting) - 1)]
        batch = chosen.pop()
        if not chosen:
            self.waiting.remove(chosen)
        return batch


def train(a: argparse.Namespace, device: torch.device) -> None:
    clock = Clock(a.steps, a.seconds)
    torch.manual_seed(a.seed)
    draws = Draws(device, a.seed)
    prior = Prior(a.columns, SIZES[a.columns][0], 0.5 if VARIANTS[a.variant][0] else 0.0)
    model = Transformer(a.columns, a.width, a.heads, 2 * a.width, a.layers).to(device)
    if a.start:
        model.load_state_dict(load_file(a.start))
    supply, step = Supply(prior, a, draws), Step(model, a, device)
    run = step if a.eager or device.type != "cuda" else Graphs(step)
    if run is not step:
        step.rate.fill_(a.rate / 1000)
        for observed in OBSERVATIONS:
            run(supply.draw(observed)[0])
        torch.cuda.synchronize()
        print(f"{a.columns} columns, {a.variant}: captured {len(run.kept)} graphs after {clock.seconds_passed():.1f} s", flush=True)
    losses, good, saved = [], None, time.monotonic()
    while clock.passed() < 1:
        began = time.monotonic()
        step.rate.fill_(a.rate * clock.rate())
        losses.append(run(supply.next()))
        clock.step += 1
        if clock.step % 10 == 0 and device.type == "cuda":
            torch.cuda.synchronize()
        if clock.step % a.every == 0:
            mean = torch.stack(losses[-a.every :]).mean().item()
            print(f"{a.columns} columns, {a.variant}, step {clock.step}: loss {mean:.3f}, {clock.seconds_passed():.0f} s", flush=True)
            if math.isfinite(mean):
                good = copy.deepcopy(model.state_dict())
            elif good:
                step.restore(good)
        if time.monotonic() - saved > a.save_every:
            save(a, model, losses, clock)
            saved = time.monotonic()
            print(f"{a.columns} columns, {a.variant}, step {clock.step}: gaps {gaps(model, a.columns, device)}", flush=True)
        time.sleep(max(0.0, a.pace - (time.monotonic() - began)))
    record = save(a, model, losses, clock)
    record["gaps"] = {name: round(value, 3) for name, value in gaps(model, a.columns, device).items()}
    print(f"{a.columns} columns, {a.variant}: {record}", flush=True)
    a.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


def save(a: argparse.Namespace, model: Transformer, losses: list[torch.Tensor], clock: Clock) -> dict:
    """Writes the weights, and returns what is told of them."""
    kind = torch.float32 if a.single else torch.float16
    tensors = {name: t.detach().cpu().to(kind).contiguous() for name, t in model.state_dict().items()}
    shape = {"heads": a.heads, "least_columns": SIZES[a.columns][0], "most_observations": a.most}
    save_file(tensors, a.out, {name: str(value) for name, value in shape.items()})
    last = torch.stack(losses[-max(1, len(losses) // 20) :])
    return {
        "columns": a.columns, "min_columns": SIZES[a.columns][0], "variant": a.variant, "seed": a.seed, "layers": a.layers,
        "width": a.width, "steps": clock.step, "sets": a.sets, "queries": a.queries, "loss": round(last.mean().item(), 4),
        "minutes": round(clock.seconds_passed() / 60, 2), "torch": torch.__version__.split("+")[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, choices=SIZES, required=True)
    parser.add_argument("--variant", choices=VARIANTS, default="pt-vr")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--steps", type=int)
    length.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--sets", type=int, default=16, help="data sets of a step")
    parser.add_argument("--queries", type=int, default=48, help="queries of a data set")
    parser.add_argument("--most", type=int, default=OBSERVATIONS[-1], help="the most observations")
    parser.add_argument("--rate", type=float, default=2e-3, help="the learning rate")
    parser.add_argument("--start", type=pathlib.Path, help="weights to begin with, instead of random ones")
    parser.add_argument("--weight", type=float, help="of the regulariser, instead of the usual one")
    parser.add_argument("--radius", type=float, help="of the regulariser, instead of the usual one")
    parser.add_argument("--every", type=int, default=100, help="steps between two lines of output")
    parser.add_argument("--save-every", type=float, default=1e9, help="seconds between two checkpoints")
    parser.add_argument("--single", action="store_true", help="write weights in single precision, not half")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--together", type=int, default=1, help="batches that are drawn at once")
    parser.add_argument("--eager", action="store_true", help="on a GPU: no CUDA graphs")
    parser.add_argument("--pace", type=float, default=0.0, help="the least seconds of a step")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the weights' file; its record ends in .json")
    a = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    if a.device == "cpu":
        torch.set_num_threads(1)
    began = time.monotonic()
    try:
        train(a, torch.device(a.device))
    except RuntimeError as problem:
        if a.eager or a.device == "cpu" or a.seconds is None:
            raise
        print(f"{a.columns} columns: without graphs, since: {problem}", flush=True)
        left = max(1.0, a.seconds - (time.monotonic() - began) - 5)
        os.execv(sys.executable, [sys.executable, *sys.argv, "--eager", "--seconds", str(left), "--sets", str(2 * a.sets)])


if __name__ == "__main__":
    main()
