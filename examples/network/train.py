"""Train a network of one hidden layer, in NumPy, on handwritten digits.

Prints the cross entropy of the validation data after each epoch."""
import argparse
import csv
import gzip
import pathlib

import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--hidden", type=int, default=64, help="hidden units")
parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--decay", type=float, default=1e-4, help="weight decay")
parser.add_argument("--dropout", type=float, default=0.0, help="share of hidden units left out")
parser.add_argument("--batch", type=int, default=32, help="batch size")
parser.add_argument("--epochs", type=int, default=27)
args = parser.parse_args()

path = pathlib.Path(__file__).parent.parent / "digits" / "digits.csv.gz"
with gzip.open(path, "rt") as file:
    rows = np.array([[int(v) for v in row] for row in csv.reader(file)])
random = np.random.default_rng(0)
rows = random.permutation(rows)
x, y = rows[:, :64] / 16, rows[:, 64]
x, x_val, y, y_val = x[:1200], x[1200:], y[:1200], y[1200:]

weights = [random.normal(0, (2 / 64) ** 0.5, (64, args.hidden)), np.zeros(args.hidden),
           random.normal(0, (2 / args.hidden) ** 0.5, (args.hidden, 10)), np.zeros(10)]
speed = [np.zeros_like(w) for w in weights]


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


for epoch in range(1, args.epochs + 1):
    order = random.permutation(len(x))
    for start in range(0, len(x), args.batch):
        rows = order[start:start + args.batch]
        kept = (random.random((len(rows), args.hidden)) >= args.dropout) / (1 - args.dropout)
        h = np.maximum(x[rows] @ weights[0] + weights[1], 0) * kept
        d = softmax(h @ weights[2] + weights[3])
        d[np.arange(len(rows)), y[rows]] -= 1
        d /= len(rows)
        back = (d @ weights[2].T) * kept * (h > 0)
        gradients = [x[rows].T @ back, back.sum(axis=0), h.T @ d, d.sum(axis=0)]
        for w, v, g in zip(weights, speed, gradients):
            v *= args.momentum
            v -= args.lr * (g + args.decay * w)
            w += v
    with np.errstate(all="ignore"):
        p = softmax(np.maximum(x_val @ weights[0] + weights[1], 0) @ weights[2] + weights[3])
        loss = -np.log(np.maximum(p[np.arange(len(y_val)), y_val], 1e-15)).mean()
    # A training that has diverged counts as a loss of 10.
    print(f"epoch {epoch}: val_loss={min(float(np.nan_to_num(loss, nan=10)), 10):.5f}", flush=True)
