"""Stores weights in 8 bits, as the program contains them.

shrink.py FOLDER WEIGHTS... writes a file of the same name into FOLDER for each file. A row of a large
matrix becomes integers from -127 to 127, times a scale of its own, which is the tensor NAME.scale.
Everything else is in half precision: it is little, and its rounding moves predictions more.
"""

import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

LARGE = 64  # rows and columns from which on a matrix is large
MOST = 127


def shrink(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    stored = {}
    for name, t in tensors.items():
        if t.dim() == 2 and min(t.shape) >= LARGE:
            # A subnormal scale would be imprecise. A row of zeros needs one, too.
            scale = (t.double().abs().amax(1) / MOST).clamp_min(torch.finfo(torch.float16).tiny).half()
            whole = (t.double() / scale.double().unsqueeze(1)).round().clamp(-MOST, MOST)
            stored[name], stored[name + ".scale"] = whole.to(torch.int8), scale
        else:
            stored[name] = t.half().contiguous()
    return stored


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    for path in sys.argv[2:]:
        with safe_open(path, "pt") as f:
            tensors, metadata = {name: f.get_tensor(name) for name in f.keys()}, f.metadata()
        save_file(shrink(tensors), folder / pathlib.Path(path).name, metadata)


if __name__ == "__main__":
    main()
