import unittest

import wall


class TableTest(unittest.TestCase):
    def test_ratios_are_of_seeds_that_all_have_played(self):
        rows = []
        for seed, seconds in enumerate(((4, 2, 8), (3, 3, 6), (9, 1, 1))):
            for tuner, s in zip(wall.TUNERS, seconds):
                rows.append({"task": "xgboost", "tuner": tuner, "seed": seed, "seconds": s, "best": s / 10})
        rows.append({"task": "xgboost", "tuner": "fantasia", "seed": 3, "seconds": 100, "best": 0})
        lines = wall.table(rows)[2:]
        self.assertEqual(lines[0], "| xgboost | 3 | `fantasia` | 4.0 | 0.4000 |  |")
        self.assertEqual(lines[1], "| xgboost | 3 | `optuna-tpe` | 2.0 | 0.2000 | 2.00 (1.00 to 9.00) |")
        self.assertEqual(lines[2], "| xgboost | 3 | `optuna-gp` | 6.0 | 0.6000 | 0.50 (0.50 to 9.00) |")
        self.assertEqual(len(lines), 3)

    def test_quick_trials_are_compared_with_tpe_only(self):
        rows = [{"task": "quick-500", "tuner": t, "seed": 0, "seconds": s, "best": b} for t, s, b in (("fantasia", 6, 3e-7), ("optuna-tpe", 2, 1e-3))]
        lines = wall.table(rows)[2:]
        self.assertEqual(lines, ["| quick-500 | 1 | `fantasia` | 6.0 | 3.0e-07 |  |", "| quick-500 | 1 | `optuna-tpe` | 2.0 | 1.0e-03 | 3.00 (3.00 to 3.00) |"])


if __name__ == "__main__":
    unittest.main()
