#!/usr/bin/env python3
"""Trains the networks whose curves research/benchmarks/curves.gz has, one shape after another.

Interrupted, the same command continues. It takes 40 minutes on one core and needs scikit-learn with Pillow.
"""

import argparse
import os
import pathlib

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from fantasia_bench import curves, networks


def make(name, shape, path):
    inputs, classes, valid, valid_classes = networks.data(name)
    watch = networks.scores(valid, valid_classes)
    with np.errstate(all="ignore"):  # a network of a high rate diverges, which its curve shows
        epochs = list(networks.train(inputs, classes, watch, *shape, networks.GRID["lr"], networks.GRID["alpha"], networks.SEEDS))
    loss, error = (np.stack(part, -1) for part in zip(*epochs))
    part = path.with_suffix(".part.npz")
    np.savez(part, loss=loss, error=error, seconds=networks.seconds_per_epoch(inputs, classes, *shape))
    part.rename(path)


def pack(parts, out):
    """Writes the table: the axes of a part are lr, alpha, seed and epoch."""
    order, losses, seconds = list(networks.GRID), [], []
    for name in networks.DATA:
        shapes = [np.load(parts / f"{name}-{'-'.join(map(str, shape))}.npz") for shape in networks.SHAPES]
        outer = [len(networks.GRID[axis]) for axis in ("width", "layers", "batch")]
        stack = np.stack([shape["loss"] for shape in shapes]).reshape(*outer, *shapes[0]["loss"].shape)
        losses.append(np.moveaxis(stack, (3, 4), (0, 1)))  # lr, alpha, width, layers, batch, seed, epoch
        seconds.append([round(float(shape["seconds"]), 6) for shape in shapes])  # the same for all lr and alpha
    head = {"data": networks.DATA, "seeds": len(networks.SEEDS), "epochs": networks.EPOCHS, "grid": networks.GRID, "seconds": seconds}
    assert order == ["lr", "alpha", "width", "layers", "batch"]
    with np.errstate(invalid="ignore"):
        curves.write(out, head, np.clip(np.nan_to_num(np.round(np.stack(losses) * 1e4), nan=65535), 0, 65535))


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--parts", type=pathlib.Path, default=pathlib.Path("results/curves"), help="where each shape's curves are kept")
    flags.add_argument("--out", type=pathlib.Path, default=pathlib.Path("curves.gz"), help="the table")
    given = flags.parse_args()
    given.parts.mkdir(parents=True, exist_ok=True)
    for shape in networks.SHAPES:
        for name in networks.DATA:
            path = given.parts / f"{name}-{'-'.join(map(str, shape))}.npz"
            if not path.exists():
                make(name, shape, path)
                print(path.name, flush=True)
    pack(given.parts, given.out)


if __name__ == "__main__":
    main()
