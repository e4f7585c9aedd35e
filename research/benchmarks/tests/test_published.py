import json
import lzma
import os
import unittest

import methods
import pairs
import steps

from fantasia_bench import diagnoses, early, equation, publish, report, results, score

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class PublishedTest(unittest.TestCase):
    """The pages say what the runs say that are kept."""

    def setUp(self):
        self.document = publish.published()

    def made(self, name, scale, at=(48, 128)):
        runs = results.load(os.path.join(BENCHMARKS, "runs", name))
        return publish.sections(*publish.comparisons(runs, scale(runs), mixed=True), at)

    def holds(self, name, scale, tables, prefix="", at=(48, 128)):
        made, places = self.made(name, scale, at), publish.places(self.document)
        self.assertLessEqual(set(tables), set(made))
        for table in (t for t in made if prefix + t in places):
            self.assertEqual(made[table], places[prefix + table], f"{prefix}{table} of {name}")

    def published(self, _):
        return score.Scale.load(os.path.join(BENCHMARKS, "scale.json"))

    def test_open_tasks(self):
        tables = ("scores-batch", "differences-batch", "models-batch", "scores-async", "differences-async", "async-batch")
        self.holds("open.jsonl.xz", self.published, tables)

    def test_plots_of_the_open_tasks(self):
        runs = results.load(os.path.join(BENCHMARKS, "runs", "open.jsonl.xz"))
        made = publish.pictures(*publish.comparisons(runs, self.published(runs), mixed=True), [48, 128])
        for name in ("scores-batch.svg", "scores-async.svg"):
            with open(os.path.join(BENCHMARKS, "..", "..", "docs", "images", name)) as file:
                self.assertTrue(made[name] == file.read(), f"docs/images/{name} is not that of the kept runs: run research/benchmarks/plots")

    def test_tasks_that_were_left_aside(self):
        for name in ("others", "others-second"):
            self.holds(f"{name}.jsonl.xz", score.Scale.of, ("scores-batch", "differences-batch"), f"{name}-")

    def test_escape(self):
        self.holds("escape.jsonl.xz", self.published, ("scores-batch", "ablation"), "escape-")
        self.assertIn(self.made("escape-open.jsonl.xz", self.published)["ablation"], self.document)

    def test_hebo_s_diagnoses(self):
        kept = [results.load(os.path.join(BENCHMARKS, "runs", f"{name}.jsonl.xz")) for name in ("noise", "diagnoses")]
        for name, lines in diagnoses.tables(*kept).items():
            self.assertEqual("\n".join(lines), publish.places(self.document)[name], name)

    def test_hebo_one_at_a_time(self):
        self.holds("hebo-sequential.jsonl.xz", self.published, ("scores-sequential",), "hebo-", at=(24, 48))

    def test_the_scale_of_hebo_s_paper(self):
        scale = self.published(None)
        compared = report.Comparison(results.load(os.path.join(BENCHMARKS, "runs", "open.jsonl.xz")), scale, "batch", mixed=True)
        self.assertEqual(equation.table(compared, scale), publish.places(self.document)["hebo-scales"])

    def test_early_stopping(self):
        made = early.tables(early.load([os.path.join(BENCHMARKS, "runs", "stopping.jsonl.xz")]))
        for name, table in made.items():
            self.assertEqual(table, publish.places(self.document)[name], name)

    def test_hebo_as_its_paper_has_it(self):
        made = methods.paper_hebo(methods.read([os.path.join(BENCHMARKS, "runs", "paper-hebo.jsonl.xz")]))
        for name, lines in made.items():
            self.assertEqual("\n".join(lines), publish.places(self.document)[name], name)

    def test_the_steps_of_hebo_paper(self):
        with lzma.open(os.path.join(BENCHMARKS, "runs", "steps.jsonl.xz"), "rt") as file:
            made = steps.table([json.loads(line) for line in file])
        self.assertEqual(made, publish.places(self.document)["hebo-reference-steps"])

    def test_two_objectives_and_limits(self):
        made = pairs.sections(pairs.read([os.path.join(BENCHMARKS, "runs", "pairs.jsonl.xz")]))
        for name, table in made.items():
            self.assertEqual(table, publish.places(self.document)[name], name)


if __name__ == "__main__":
    unittest.main()
