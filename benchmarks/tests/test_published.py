import os
import unittest

from fantasia_bench import publish, results, score

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class PublishedTest(unittest.TestCase):
    """docs/benchmarks.md says what the runs say that are kept."""

    def holds(self, name, scale, tables):
        runs = results.load(os.path.join(BENCHMARKS, "runs", name))
        made = publish.sections(*publish.comparisons(runs, scale(runs)), [48, 128])
        with open(os.path.join(BENCHMARKS, "..", "docs", "benchmarks.md")) as file:
            document = file.read()
        for table in tables:
            self.assertIn(made[table], document, f"docs/benchmarks.md: {table} of {name}")

    def published(self, _):
        return score.Scale.load(os.path.join(BENCHMARKS, "scale.json"))

    def test_open_tasks(self):
        self.holds("open.jsonl.xz", self.published, (
            "scores-batch", "differences-batch", "models-batch", "scores-async", "differences-async", "async-batch"))

    def test_tasks_that_were_left_aside(self):
        for name in ("others.jsonl.xz", "others-second.jsonl.xz"):
            self.holds(name, score.Scale.of, ("scores-batch", "differences-batch"))

    def test_escape(self):
        self.holds("escape.jsonl.xz", self.published, ("scores-batch", "ablation"))
        self.holds("escape-open.jsonl.xz", self.published, ("ablation",))


if __name__ == "__main__":
    unittest.main()
