"""The evaluator, and the smallest comparison from programs to tables.

Needs bin/fantasia and the Python of `research/benchmarks/setup tasks`; the unit tests, test_*.py, need neither.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy
from sklearn.datasets import load_boston
from sklearn.model_selection import train_test_split

from fantasia_bench import definitions, runner
from fantasia_bench.evaluator import Evaluator
from fantasia_bench.space import sample

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FANTASIA = os.path.join(HERE, "..", "..", "bin", "fantasia")
TASK = "kNN_wine_nll"


class EvaluatorTest(unittest.TestCase):
    def test_ridge_by_its_normal_equations(self):
        alpha = 3.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # load_boston is deprecated
            x, _, y, _ = train_test_split(*load_boston(return_X_y=True), test_size=0.2, random_state=0)
        errors = []
        for held in numpy.array_split(numpy.arange(len(y)), 5):
            rest = numpy.setdiff1d(numpy.arange(len(y)), held)
            weights = numpy.linalg.solve(x[rest].T @ x[rest] + alpha * numpy.eye(x.shape[1]), x[rest].T @ y[rest])
            errors.append(numpy.mean((x[held] @ weights - y[held]) ** 2))
        point = {"alpha": alpha, "fit_intercept": False, "normalize": False, "max_iter": 100, "tol": 1e-3}
        self.assertAlmostEqual(Evaluator(definitions.task("linear_boston_mse")).loss(point), numpy.mean(errors), places=8)

    def test_noise_is_the_seeds(self):
        evaluator = Evaluator(definitions.task("RF_wine_nll"))
        point = sample(definitions.task("RF_wine_nll").space, random.Random(4))
        first, again, other = (evaluator.loss(point, seed) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_every_model_takes_its_space(self):
        for name in [n for n in definitions.select("*_wine_nll,*_boston_mae") if "MLP" not in n]:
            task, rng = definitions.task(name), random.Random(3)
            self.assertGreater(Evaluator(task).loss(sample(task.space, rng), 1), 0, name)


class EndToEndTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.runs = os.path.join(self.folder.name, "runs.jsonl")

    def compare(self, *arguments):
        done = subprocess.run([sys.executable, os.path.join(HERE, "compare.py"), *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_from_runs_to_tables(self):
        run = ["run", "--tuners", "random,fantasia:gp", "--tasks", TASK, "--seeds", "0", "--modes", "batch,async", "--trials", "24", "--out", self.runs]
        self.compare(*run)
        with open(self.runs) as lines:
            runs = [json.loads(line) for line in lines]
        self.assertEqual({(r["optimizer"], r["mode"]) for r in runs}, {(t, m) for t in ("random", "fantasia:gp") for m in ("batch", "async")})
        for r in runs:
            self.assertNotIn("error", r)
            self.assertEqual((len(r["losses"]), len(r["times"])), (24, 24))
            # k nearest neighbours draw nothing: three equal losses, and none better than the best seen.
            mean, deviation, number = r["fresh"]["24"]
            self.assertEqual((deviation, number), (0, 3))
            self.assertGreaterEqual(mean, min(r["losses"]))
        self.assertIn("4 of 4 runs are in", self.compare(*run).stderr)

        document = os.path.join(self.folder.name, "document.md")
        with open(document, "w") as file:
            file.write("before\n<!-- compare scores-batch -->\nold\n<!-- end -->\nafter\n")
        plots = os.path.join(self.folder.name, "plots")
        self.compare("report", self.runs, "--at", "24", "--into", document, "--plots", plots)
        with open(document) as file:
            text = file.read()
        self.assertRegex(text, r"(?s)^before\n<!-- compare scores-batch -->\n\n\| tuner .*\| `random` .*\n\n<!-- end -->\nafter\n$")
        self.assertNotIn("old", text)
        self.assertEqual(sorted(os.listdir(plots)), ["differences-async.svg", "differences-batch.svg", "scores-async.svg", "scores-batch.svg"])

    def test_a_study_of_a_task(self):
        """`fantasia run` takes the study that tasks.py writes, and comes to the losses that the evaluator gives."""
        python, script = runner.tasks_python(), os.path.join(HERE, "tasks.py")
        study = os.path.join(self.folder.name, "study.yaml")
        with open(study, "w") as file:
            subprocess.run([python, script, "study", TASK, "--algorithm", "random", "--trials", "4", "--parallelism", "2"], stdout=file, check=True)
        done = subprocess.run([FANTASIA, "run", study], cwd=self.folder.name, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(self.folder.name, ".fantasia", definitions.study(TASK, "random")["metadata"]["name"], "result.json")) as file:
            result = json.load(file)
        self.assertEqual(result["trials"]["completed"], 4)
        request = {"fantasia": {"trial": 1, "seed": 5, "parameters": result["best"]["parameters"]}}
        served = subprocess.run([python, script, "serve", TASK], input=json.dumps(request) + "\n", capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(served.stdout), {"fantasia": {"trial": 1, "metrics": {"loss": result["best"]["value"]}, "done": True}})

    def test_what_is_missing_is_said(self):
        for tuner, want in (("nosuch", "no tuner is named 'nosuch'"), ("ax", "run `research/benchmarks/setup peers`")):
            done = subprocess.run([runner.tasks_python(), os.path.join(HERE, "compare.py"), "run", "--tuners", tuner, "--out", self.runs], capture_output=True, text=True)
            self.assertIn(want, done.stderr)
            self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
