"""Writes what PyTorch computes from weights, for the tests of the network in Go.

golden.py WEIGHTS... writes, for each file, points, outcomes and predictions as JSON to stdout. The
computation is in double precision. The files are those of train.py or of shrink.py.
"""

import json
import pathlib
import sys

import torch
from safetensors import safe_open

from network import Transformer


def load(path: str) -> Transformer:
    with safe_open(path, "pt") as f:
        tensors = {name: f.get_tensor(name).double() for name in f.keys()}
        heads = int(f.metadata()["heads"])
    for name in [name for name in tensors if name.endswith(".scale")]:
        tensors[name.removesuffix(".scale")] *= tensors.pop(name).unsqueeze(1)
    width, columns = tensors["point1.weight"].shape
    layers = sum(name.endswith(".near.bias") for name in tensors)
    model = Transformer(columns, width, heads, len(tensors["blocks.0.up.bias"]), layers).double()
    model.load_state_dict(tensors)
    return model


def main() -> None:
    cases = []
    for path in sys.argv[1:]:
        model = load(path)
        columns = model.point1.in_features
        for observed, queries in ((1, 2), (30, 3)):
            rng = torch.Generator().manual_seed(observed)
            x = torch.rand(1, observed + queries, columns, generator=rng, dtype=torch.double)
            y = torch.randn(1, observed, generator=rng, dtype=torch.double)
            with torch.no_grad():
                predicted = model(x, y)
            cases.append({
                "weights": pathlib.Path(path).name, "observed": x[0, :observed].tolist(), "outcomes": y[0].tolist(),
                "queries": x[0, observed:].tolist(),
                "components": torch.stack([predicted.log_weight.exp(), predicted.mean, predicted.log_sd.exp()], -1)[0].tolist(),
            })
    json.dump(cases, sys.stdout)
    print()


if __name__ == "__main__":
    main()
