"""Fantasia through `fantasia ask-tell`."""

import json
import os
import subprocess
import tempfile

from ..definitions import TRIALS, WORKERS
from ..space import INT
from .base import Tuner

_CHUNK = 500  # observations a line


class Fantasia(Tuner):
    """Any of its algorithms. The study names neither task nor parameters, so that nothing can be recognised."""

    def __init__(self, space, seed, algorithm, binary, settings=None, trials=TRIALS):
        super().__init__(space, seed)
        self.alias = {p.name: f"p{i}" for i, p in enumerate(space)}
        self.names = {alias: name for name, alias in self.alias.items()}
        self.file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        json.dump(self._study(algorithm, settings or {}, trials), self.file)
        self.file.flush()
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([os.path.abspath(binary), "ask-tell", self.file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def _study(self, algorithm, settings, trials):
        parameters = []
        for p in self.space:
            described = {"name": self.alias[p.name], "type": "bool"}
            if p.continuous:
                described |= {"type": "int" if p.kind == INT else "float", "min": p.low, "max": p.high, "scale": p.scale}
            parameters.append(described)
        return {
            "apiVersion": "fantasia.dev/v1",
            "kind": "Study",
            "metadata": {"name": "benchmark"},
            "spec": {
                "objective": {"metric": "loss", "direction": "minimize"},
                "parameters": parameters,
                "algorithm": {"name": algorithm, "seed": self.seed, "settings": settings},
                "budget": {"maxTrials": trials},
                "parallelism": WORKERS,
                "trial": {"command": ["true"]},  # nothing runs it
            },
        }

    def _call(self, request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.log.seek(0)
            raise RuntimeError(f"fantasia ask-tell has ended with {self.process.wait()}: {self.log.read()[-500:].strip() or 'it said nothing'}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"fantasia ask-tell: {answer['error']}")
        return answer

    def _named(self, point):
        return {self.names[alias]: value for alias, value in point.items()}

    def ask(self, n):
        return [(s["trial"], self._named(s["parameters"])) for s in self._call({"ask": n})["suggestions"]]

    def tell(self, told):
        self._call({"tell": [{"trial": key, "failed": True} if loss is None else {"trial": key, "metrics": {"loss": loss}} for key, loss in told]})

    def observe(self, points, losses):
        told = [{"parameters": {self.alias[k]: v for k, v in p.items()}, "metrics": {"loss": y}} for p, y in zip(points, losses)]
        for start in range(0, len(told), _CHUNK):
            self._call({"tell": told[start : start + _CHUNK]})

    def recommend(self):
        best = self._call({"recommend": True})["recommended"]
        return best and self._named(best["parameters"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.file.close()
        self.log.close()
