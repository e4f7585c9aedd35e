import unittest

from fantasia_bench import equation, report, score


def run(optimizer, task, seed, *losses):
    return {"task": task, "optimizer": optimizer, "mode": "batch", "seed": seed, "program": None, "losses": list(losses), "fresh": {}}


class EquationTest(unittest.TestCase):
    def test_by_hand(self):
        """Random search finds 4 and 6 on one task, 5 on average, and the least loss, 1, on the other, which therefore has no score."""
        scale = score.Scale({t: {"median": 9, "seen": 1, "fresh": 1} for t in ("a", "b")})
        runs = [run("random", "a", 0, 9, 4), run("random", "a", 1, 6), run("random", "b", 0, 1)]
        runs += [run("hebo", "a", 0, 3, 2), run("hebo", "a", 1, 1), run("hebo", "b", 0, 7)]
        compared = report.Comparison(runs, scale, "batch")
        # 1 − (2 − 1) / (5 − 1) is 0.75, and 1 − 0 is 1.
        self.assertEqual(equation.scores(compared, scale), {"random": (0, 0), "hebo": (87.5, 87.5)})
        # After one evaluation it is (9 + 6) / 2 − 1 = 6.5 from which hebo is 2 and 0 away.
        self.assertAlmostEqual(equation.scores(compared, scale, 1)["hebo"][0], 100 * (1 - 1 / 6.5))
        # hebo is better on one task, random search on the other.
        self.assertEqual(equation.firsts(compared), {"random": 1, "hebo": 1})


if __name__ == "__main__":
    unittest.main()
