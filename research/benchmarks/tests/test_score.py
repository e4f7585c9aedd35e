import contextlib
import io
import json
import lzma
import os
import tempfile
import unittest

from fantasia_bench import report, results, score


def line(losses, optimizer="random", task="t_a_nll", seed=0, mode="batch", fresh=None, **rest):
    return {"task": task, "optimizer": optimizer, "mode": mode, "seed": seed, "program": None, "losses": losses, "fresh": fresh or {}, "asks": [0.1, 0.3]} | rest


# Median of the random losses 5; least seen 1, by the other tuner; least fresh mean 2, by random.
REFERENCE = [
    line([9, 5, 3, None, 5], fresh={"3": [4, 0, 3], "5": [2, 0, 3]}),
    line([7, 1], optimizer="other", fresh={"2": [2.5, 0, 3]}),
]


class ScaleTest(unittest.TestCase):
    def setUp(self):
        self.scale = score.Scale.of(REFERENCE)

    def test_of_a_reference(self):
        # The failed evaluation counts as infinite: 3, 5, 5, 9, inf.
        self.assertEqual(self.scale.tasks, {"t_a_nll": {"median": 5, "seen": 1, "fresh": 2, "runs": 2}})

    def test_scores_by_hand(self):
        run = line([4, 6, 2, 0.5, -40], fresh={"2": [5, 0, 20], "4": [2.75, 0, 20]})
        for n, kind, want in (
            (1, "seen", 25),  # 1 - (4 - 1) / 4
            (2, "seen", 25),
            (3, "seen", 75),
            (4, "seen", 112.5),  # better than the reference
            (5, "seen", 200),  # clipped
            (1, "fresh", 0),  # nothing was looked at yet: as bad as a random point
            (3, "fresh", 0),  # 1 - (5 - 2) / 3
            (128, "fresh", 75),
        ):
            self.assertEqual(self.scale.score(run, n, kind), want, f"{kind} after {n}")

    def test_failures(self):
        self.assertEqual(self.scale.score(line([None, None]), 2, "seen"), 0)
        self.assertEqual(self.scale.score(line([], error="it broke"), 2, "fresh"), 0)
        self.assertEqual(self.scale.score(line([900.0]), 2, "seen"), 0)

    def test_unknown_tasks(self):
        flat = score.Scale.of([line([3, 3, 3], fresh={"3": [3, 0, 3]})])
        self.assertFalse(flat.knows("t_a_nll"))
        self.assertFalse(self.scale.knows("another"))

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scale.json")
            self.scale.save(path, "a note")
            self.assertEqual(score.Scale.load(path).tasks, self.scale.tasks)


class MeansTest(unittest.TestCase):
    def test_tasks_weigh_the_same(self):
        grouped = score.by_task({("a", 0): 10, ("a", 1): 20, ("b", 0): 55})
        self.assertEqual(score.mean(grouped), 35)  # (15 + 55) / 2

    def test_interval(self):
        self.assertEqual(score.interval({"a": [3, 3], "b": [3]}), (3, 3))
        # A mean of 400 draws from {0, 1} has a standard deviation of 0.025 and 95% of it within 1.96 of these.
        low, high = score.interval({f"t{i}": [i % 2] for i in range(400)})
        self.assertAlmostEqual(low, 0.5 - 1.96 * 0.025, delta=0.006)
        self.assertAlmostEqual(high, 0.5 + 1.96 * 0.025, delta=0.006)

    def test_differences_are_paired(self):
        self.assertEqual(score.differences({("a", 0): 5, ("b", 0): 7}, {("a", 0): 3, ("a", 1): 9}), {("a", 0): 2})


class ResultsTest(unittest.TestCase):
    def test_a_torn_line_costs_itself_only(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            path = os.path.join(folder, "runs.jsonl")
            self.assertEqual(results.done(path), set())
            with results.append(path) as out:
                results.write(out, line([1]))
                results.write(out, line([], seed=1, error="it broke"))
                out.write(b'{"task": "t_a')
            with results.append(path) as out:
                results.write(out, line([2], seed=2))
            self.assertEqual([r["seed"] for r in results.load(path)], [0, 1, 2])
            self.assertEqual({key[3] for key in results.done(path)}, {0, 2})
            self.assertIn("runs.jsonl:3 is no run", said.getvalue())

    def test_compressed_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "runs.jsonl.xz")
            with lzma.open(path, "wt") as out:
                out.write(json.dumps(line([1])) + "\n")
            self.assertEqual(results.load(path), [line([1])])

    def test_programs_are_not_mixed(self):
        runs = [line([s], "fantasia:gp", seed=s, program=p) for p, s in (("old", 0), ("old", 1), ("new", 0))] + [line([3])]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual([r["program"] for r in results.latest(runs).values()], ["new", None])
        self.assertIn("1 runs of Fantasia are of an older program", said.getvalue())
        self.assertEqual([r["program"] for r in results.latest(runs, mixed=True).values()], ["new", "old", None])

    def test_labels(self):
        self.assertEqual(results.label("fantasia:hebo", {"b": 1, "a": "x"}), 'fantasia:hebo{"a":"x","b":1}')
        self.assertEqual(results.label("hebo"), "hebo")


class ReportTest(unittest.TestCase):
    def test_tables(self):
        compared = report.Comparison(REFERENCE, score.Scale.of(REFERENCE), "batch")
        # After 2 evaluations random has seen 5 and was not looked at; the other has seen 1 and was looked at with 2.5.
        self.assertIn("| `other` | 83.3 (83.3 to 83.3) | 100.0 (100.0 to 100.0) | 1 | 1 | 0 |", report.scores(compared, [2]))
        self.assertIn("| `random` | +83.3 (+83.3 to +83.3) | +100.0 (+100.0 to +100.0) | 1 |", report.differences(compared, "other", [2]))
        self.assertIn("| tuner | t |\n| --- | ---: |\n| `other` | 83.3 |", report.models(compared, 2))
        self.assertIn("| `random` | 0.40 | 0.40 | 0.40 |", report.asking(compared))


if __name__ == "__main__":
    unittest.main()
