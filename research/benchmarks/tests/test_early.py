import array
import math
import os
import tempfile
import unittest
from unittest import mock

from fantasia_bench import curves, early


class Fixed:
    """Suggests network after network, and stops those with odd numbers after their second epoch."""

    def __init__(self):
        self.ended = []

    def ask(self, number):
        return {"lr": (number - 1) % 10}

    def stops(self, number, step, _):
        return number % 2 == 1 and step == 2

    def end(self, number, completed, least):
        self.ended.append((number, completed, least))


class EarlyTest(unittest.TestCase):
    def setUp(self):
        # Ten networks of four epochs, of one second each. Network 9 is the best at its end.
        head = {"data": ["digits"], "seeds": 1, "epochs": 4, "grid": {"lr": list(range(10))}, "seconds": [[1.0]]}
        losses = [20000 - 1000 * network - 100 * epoch for network in range(10) for epoch in range(4)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "curves.gz")
            writable = mock.Mock(astype=lambda _: array.array("H", losses))
            curves.write(path, head, writable)
            self.table = curves.Table(path)

    def test_the_table_is_what_was_written(self):
        self.assertEqual(self.table.curve("digits", 3, 0), [1.7, 1.69, 1.68, 1.67])
        self.assertAlmostEqual(self.table.target("digits", 0), 1.07 + 0.01 * (math.log(10) - 1.07))

    def test_play(self):
        # Eight trials start; the odd ones stop after 2 s, then trials 9 and 10 start. Trial 10, the best network,
        # ends at 2 + 4 s; its loss is within the target of 1.0823 one epoch earlier.
        tuner = Fixed()
        with mock.patch.dict(early.TUNERS, {"fixed": lambda grid, seed: tuner}):
            run = early.play("fixed", self.table, "digits", 0)
        self.assertEqual((run["seconds"], run["reached"]), (5.0, True))
        self.assertEqual(tuner.ended[:2], [(1, False, 1.99), (3, False, 1.79)])

    def test_speedups_count_what_was_not_reached(self):
        run = lambda seed, seconds, reached: {"data": "digits", "seed": seed, "seconds": seconds, "reached": reached}
        base = [run(0, 6, True), run(1, 6, True), run(2, 6, False), run(3, 6, False)]
        mine = [run(0, 3, True), run(1, 3, False), run(2, 3, True), run(3, 3, False)]
        self.assertEqual(early.speedups(mine, base), [2, 0, math.inf, 1])


if __name__ == "__main__":
    unittest.main()
