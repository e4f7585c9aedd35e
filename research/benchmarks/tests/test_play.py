import unittest

from fantasia_bench import play
from fantasia_bench.tuners.base import Tuner


class Counter(Tuner):
    """Suggests x = 0, 1, 2, ..., up to a number of points."""

    def __init__(self, points=10**9, recommended=None):
        super().__init__([], 0)
        self.points, self.recommended, self.asked, self.told = points, recommended, 0, []

    def ask(self, n):
        n = min(n, self.points - self.asked)
        first, self.asked = self.asked, self.asked + n
        return [(f"key {x}", {"x": x}) for x in range(first, first + n)]

    def tell(self, told):
        self.told += told

    def recommend(self):
        return self.recommended


class Valley:
    """|x − 30|, and failing at x = 2. It keeps the seeds of its noise."""

    def __init__(self):
        self.seeds, self.looked = [], []

    def loss(self, point, seed):
        self.seeds.append(seed)
        return None if point["x"] == 2 else float(abs(point["x"] - 30))

    def again(self, point):
        self.looked.append(point["x"])
        return [point["x"], 0, 3]


class PlayTest(unittest.TestCase):
    def test_batches(self):
        tuner, valley = Counter(), Valley()
        run = play.play(tuner, valley, "batch", "a task", 2, trials=128)
        self.assertEqual(run["losses"][:4], [30, 29, None, 27])
        self.assertEqual(tuner.told[:3], [("key 0", 30), ("key 1", 29), ("key 2", None)])
        self.assertEqual((len(run["losses"]), len(run["asks"]), len(set(run["times"]))), (128, 16, 16))
        # The best x is the last of 24, then 30.
        self.assertEqual(run["fresh"], {24: [23, 0, 3], 48: [30, 0, 3], 128: [30, 0, 3]})
        self.assertEqual(valley.seeds[:2] + valley.seeds[-1:], [2_000_006, 2_000_007, 2_000_133])

    def test_asynchronously(self):
        run = play.play(Counter(), Valley(), "async", "a task", 0, trials=40)
        self.assertEqual((len(run["asks"]), sorted(run["fresh"])), (40, [24, 40]))
        self.assertEqual(run["times"], sorted(run["times"]))
        self.assertNotEqual(run["losses"][:8], [30, 29, None, 27, 26, 25, 24, 23])

    def test_a_recommendation_is_the_incumbent(self):
        valley = Valley()
        play.play(Counter(recommended={"x": 5}), valley, "batch", "a task", 0, trials=24)
        self.assertEqual(valley.looked, [5])

    def test_a_run_that_ends_early_is_looked_at(self):
        self.assertEqual(sorted(play.play(Counter(points=30), Valley(), "batch", "a task", 0)["fresh"]), [24, 30])

    def test_nothing_but_failures(self):
        class Broken(Valley):
            def loss(self, point, seed):
                return None

        run = play.play(Counter(), Broken(), "sequential", "a task", 0, trials=24)
        self.assertEqual((run["losses"], run["fresh"]), ([None] * 24, {}))

    def test_noise_of_incumbents_is_no_runs(self):
        seen = {play.noise_seed(seed, n) for seed in range(20) for n in range(128)}
        self.assertFalse(seen & {play.fresh_seed(n) for n in range(play.REPEATS)})


if __name__ == "__main__":
    unittest.main()
