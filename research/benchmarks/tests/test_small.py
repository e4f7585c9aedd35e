import unittest

import small


class TableTest(unittest.TestCase):
    def test_shares_of_the_way_from_the_best_to_the_tenth_trial(self):
        rows = [
            {"task": "forest", "tuner": "hebo", "seed": 0, "best": [3, 2, 1]},
            {"task": "forest", "tuner": "optuna-tpe", "seed": 0, "best": [5, 3, 2]},
            {"task": "forest", "tuner": "hebo", "seed": 1, "best": [5, 3, 3]},
            {"task": "forest", "tuner": "optuna-tpe", "seed": 1, "best": [5, 4, 3]},
            {"task": "forest", "tuner": "hebo", "seed": 2, "best": [5, 5, 5]},
        ]
        # The best is 1 and the median after ten trials 5, so that a unit is 4. The third seed has no pair.
        lines = small.table(rows)[2:]
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith("| forest | 2 | `hebo` | 0.38 | 0.25 | 0.62 | 0.38 | +0.25 (+0.25 to +0.25) | +0.12 (+0.00 to +0.25)"), lines[0])
        self.assertEqual(lines[1], lines[0].replace("forest", "all"))

    def test_no_two_tasks_share_a_seed(self):
        seeds = [small.seed_of(task, seed) for task in small.TASKS for seed in range(100)]
        self.assertEqual(len(set(seeds)), len(seeds))


class RecorderTest(unittest.TestCase):
    def test_the_best_of_trials_in_their_order(self):
        values = iter([3, 1, 2])
        recorder = small.Recorder(lambda _: next(values))
        self.assertEqual([recorder(None) for _ in range(3)], [3, 1, 2])
        self.assertEqual(recorder.best, [3, 1, 1])
