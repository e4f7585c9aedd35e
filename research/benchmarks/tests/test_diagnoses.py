import io
import math
import unittest

from fantasia_bench import definitions, diagnoses


def gain(mean, se, alone=0.0):
    return {"predictive": mean, "se": se, "predictiveAlone": -mean, "seAlone": se, "alone": alone}


class DiagnosesTest(unittest.TestCase):
    def test_the_paper_s_tables(self):
        """Section 3.2 has 72 uneven tasks by Levene's test, and 73 by that of Fligner and Killeen."""
        self.assertLessEqual(diagnoses.PAPER_EVEN, set(definitions.TASKS))
        self.assertLessEqual(diagnoses.FLIGNER_UNEVEN, diagnoses.PAPER_EVEN)
        self.assertEqual(len(definitions.TASKS) - len(diagnoses.PAPER_EVEN), 72)
        self.assertEqual(len(definitions.TASKS) - len(diagnoses.PAPER_EVEN - diagnoses.FLIGNER_UNEVEN), 73)

    def test_every_task_has_a_pair(self):
        names = [t.name for pair in diagnoses.pairs() for t in diagnoses.tasks(*pair)]
        self.assertEqual(sorted(names), sorted(definitions.TASKS))

    def test_both_metrics_of_an_evaluation(self):
        found = diagnoses.evaluate("DT", "wine", points=3, repeats=2)
        self.assertEqual({k: [len(y) for y in v] for k, v in found["losses"].items()}, {"nll": [2] * 3, "acc": [2] * 3})
        self.assertEqual(found, diagnoses.evaluate("DT", "wine", points=3, repeats=2))
        self.assertTrue(all(-1 <= y <= 0 for at in found["losses"]["acc"] for y in at))

    def test_points_are_distinct(self):
        """Of kNN's 100 points, 30 draws with replacement would hardly ever be distinct."""
        points = diagnoses.evaluate("kNN", "iris", points=30, repeats=1)["points"]
        self.assertEqual(len({tuple(p.items()) for p in points}), 30)

    def test_levene_by_hand(self):
        """The distances from the means are 2, 1, 3 and 4, 2, 6, so W = 4 · 6 / 10. From the medians 1, 0, 4 and 2, 0, 8: 4 · 4.167 / 43.33."""
        p = diagnoses.tests([[0, 1, 5], [0, 2, 10]])
        for name, w in (("levene", 2.4), ("medians", 4 * (25 / 6) / (130 / 3))):
            # F(1, 4) is the square of Student's t with four degrees of freedom.
            beyond = 1 - 3 / 4 * math.sqrt(w / (1 + w / 4)) * (1 - w / (1 + w / 4) / 12)
            self.assertAlmostEqual(p[name], beyond, places=12)

    def test_a_replayed_loss_is_that_of_the_trial(self):
        out = io.StringIO()
        diagnoses.replay([5.0, 7.0], ['{"fantasia": {"trial": 2, "parameters": {}}}'], out)
        self.assertEqual(out.getvalue(), '{"fantasia": {"trial": 2, "metrics": {"loss": 7.0}, "done": true}}\n')

    def test_gains_are_counted(self):
        """Two better, one of them by more than 1.96 standard errors; one worse, surely; one without a model."""
        found = [{"warp": gain(1.97, 1)}, {"warp": gain(1.95, 1)}, {"warp": gain(-2, 1)}, {"warp": None}]
        self.assertEqual(diagnoses.gains(found, "warp"), (2, 1, 1, 1, 3))
        self.assertEqual(diagnoses.gains(found, "warp", alone=True), (1, 1, 2, 1, 3))

    def test_tables(self):
        """A task of the paper's uneven ones with uneven losses, and one with losses that are even."""
        even, uneven = [[0, 1, 2, 3]] * 4, [[0, 1, 2, 3], [0, 1, 2, 3], [0, 100, 200, 300], [0, 1000, 2000, 3000]]
        pair = {"model": "DT", "data": "wine", "points": [], "losses": {"nll": uneven, "acc": even}}
        conflict = {"pairs": [{"a": "EI", "b": "PI", "spearman": 0.5, "top": 0.4, "rank": 3}]}
        found = [{"transform": gain(1, 0.1, alone=4), "warp": gain(-1, 1, alone=-2), "conflict": conflict}, {"transform": None, "warp": None, "conflict": None}]
        lines = [line for table in diagnoses.tables([pair], found).values() for line in table]
        self.assertIn("| wine | 1 of 2 | 1 of 2 | 1 of 2 | 2 of 2 | 1 of 2 |", lines)
        self.assertIn("| output transform, added to input warping | 1 | 1 | 1 | 0 | 0 |", lines)
        self.assertIn("| output transform alone | 1 | 0 | 0 | 1 | 1 |", lines)
        self.assertIn("| output transform alone, by the likelihood | 1 | 1 | 1 | 0 | 0 |", lines)
        self.assertIn("| input warping, added to output transform | 1 | 0 | 0 | 1 | 0 |", lines)
        self.assertIn("| input warping alone, by the likelihood | 1 | 0 | 0 | 1 | 0 |", lines)
        self.assertIn("| EI and PI | 1 | 1 | 1 | 0.50 |", lines)


if __name__ == "__main__":
    unittest.main()
