"""The table of curves that make_curves.py made: read by early.py and by research/stopping.

It is compressed with gzip: a line of JSON, then the losses. The line has `data`, `seeds`, `epochs`, `grid` (the values of each
hyperparameter, in the order of the axes), and `seconds`, what an epoch of each network of each data set takes. The losses are
unsigned little-endian 16-bit numbers, in ten-thousandths and at most 65535, by data set, hyperparameters, seed and epoch.
"""

import array
import gzip
import json
import math


class Table:
    def __init__(self, path):
        with gzip.open(path) as file:
            head = json.loads(file.readline())
            self.losses = array.array("H", file.read())
        self.data, self.seeds, self.epochs, self.grid = head["data"], head["seeds"], head["epochs"], head["grid"]
        self.seconds = head["seconds"]
        self.networks = math.prod(map(len, self.grid.values()))

    def network(self, point):
        """The number of the network that has the point's hyperparameters, each an index into its values."""
        number = 0
        for name, values in self.grid.items():
            number = number * len(values) + point[name]
        return number

    def curve(self, data, network, seed):
        start = ((self.data.index(data) * self.networks + network) * self.seeds + seed) * self.epochs
        return [loss / 1e4 for loss in self.losses[start : start + self.epochs]]

    def target(self, data, seed):
        """Within 1% of the table's best loss, where 100% is the loss of guessing one of two classes, or of ten digits."""
        best = min(min(self.curve(data, network, seed)) for network in range(self.networks))
        return best + 0.01 * (math.log(10 if data == "digits" else 2) - best)


def write(path, head, losses):
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(head, separators=(",", ":")).encode() + b"\n" + losses.astype("<u2").tobytes())
