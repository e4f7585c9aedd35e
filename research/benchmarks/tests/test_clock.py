import statistics
import unittest

from fantasia_bench import clock


class Script:
    """A tuner and its workers in one: suggestions 1, 2, ... that take the given times. It notes what it was asked and told."""

    def __init__(self, *times, points=99):
        self.times, self.points, self.made, self.log = list(times), points, 0, []

    def ask(self, n):
        self.log.append(f"ask {n}")
        n = min(n, self.points - self.made)
        first, self.made = self.made + 1, self.made + n
        return list(range(first, first + n))

    def tell(self, batch):
        self.log.append(f"tell {batch}")

    def draw(self):
        return self.times.pop(0)

    def play(self, mode, trials, workers):
        return list(clock.turns(mode, self.ask, self.tell, self.draw, trials, workers))


class TurnsTest(unittest.TestCase):
    def test_batches_wait_for_the_slowest(self):
        script = Script(1, 3, 2, 4, 5)
        self.assertEqual(script.play("batch", 5, 2), [(3, [1, 2]), (7, [3, 4]), (12, [5])])
        self.assertEqual(script.log, ["ask 2", "tell [1, 2]", "ask 2", "tell [3, 4]", "ask 1", "tell [5]"])

    def test_sequential(self):
        self.assertEqual(Script(1, 3, 2).play("sequential", 3, 8), [(1, [1]), (4, [2]), (6, [3])])

    def test_a_free_worker_starts_at_once(self):
        # Worker A runs 1 until 4; B runs 2 until 1, 3 until 2.5, 4 until 3.5, 5 until 8.5. Nothing starts after the fifth.
        script = Script(4, 1, 1.5, 1, 5)
        self.assertEqual(script.play("async", 5, 2), [(1, [2]), (2.5, [3]), (3.5, [4]), (4, [1]), (8.5, [5])])
        self.assertEqual(script.log, ["ask 1", "ask 1", "tell [2]", "ask 1", "tell [3]", "ask 1", "tell [4]", "ask 1", "tell [1]", "tell [5]"])

    def test_ties_end_in_the_order_of_starts(self):
        self.assertEqual([told for _, told in Script(2, 2, 2).play("async", 3, 3)], [[1], [2], [3]])

    def test_a_tuner_may_run_out_of_points(self):
        self.assertEqual(Script(1, 1, 1, points=3).play("batch", 8, 2), [(1, [1, 2]), (2, [3])])
        self.assertEqual(Script(1, 2, 3, points=3).play("async", 8, 2), [(1, [1]), (2, [2]), (4, [3])])


class DurationsTest(unittest.TestCase):
    def test_mean_and_seed(self):
        draw, again, other = clock.durations("a", 1), clock.durations("a", 1), clock.durations("a", 2)
        drawn = [draw() for _ in range(100_000)]
        # The standard error of the mean is sqrt((e - 1) / 100,000) = 0.004.
        self.assertAlmostEqual(statistics.fmean(drawn), 1, delta=0.02)
        self.assertEqual(drawn[:3], [again() for _ in range(3)])
        self.assertNotEqual(drawn[0], other())


if __name__ == "__main__":
    unittest.main()
