import os
import unittest

from fantasia_bench import publish, results, score

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class PublishedTest(unittest.TestCase):
    def test_tables_are_those_of_the_runs(self):
        runs = results.load(os.path.join(BENCHMARKS, "runs", "others.jsonl.xz"))
        made = publish.sections(*publish.comparisons(runs, score.Scale.of(runs)), [48, 128])
        with open(os.path.join(BENCHMARKS, "..", "docs", "benchmarks.md")) as file:
            document = file.read()
        for name in ("scores-batch", "differences-batch"):
            self.assertIn(made[name], document, f"docs/benchmarks.md: {name} of the tasks that were left aside")


if __name__ == "__main__":
    unittest.main()
