import random
import unittest

import pairs


class HypervolumeTest(unittest.TestCase):
    def test_by_hand(self):
        self.assertEqual(pairs.hypervolume([(1, 2), (2, 1)], (3, 3)), 3)
        self.assertEqual(pairs.hypervolume([(1, 2), (2, 1), (2, 2), (0, 3), (4, 0)], (3, 3)), 3)  # dominated, or beyond the reference
        self.assertEqual(pairs.hypervolume([], (3, 3)), 0)

    def test_counts_the_dominated_cells_of_a_grid(self):
        rng = random.Random(1)
        for _ in range(50):
            points = [(rng.randrange(12), rng.randrange(12)) for _ in range(rng.randrange(1, 9))]
            cells = sum(any(x <= i and y <= j for x, y in points) for i in range(10) for j in range(10))
            self.assertEqual(pairs.hypervolume(points, (10, 10)), cells)

    def test_the_front(self):
        rng = random.Random(2)
        for _ in range(50):
            points = [(rng.randrange(6), rng.randrange(6)) for _ in range(8)]
            on = {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
            self.assertEqual([points[i] for i in pairs.front(points)], sorted(on))


class Grid:
    """A table of 16 points: the loss falls and the cost rises with x + y, and both have noise in the repetitions."""

    bound, floats, names = None, {}, {}
    space = grids = {"x": [0, 1, 2, 3], "y": [0, 1, 2, 3]}

    def __init__(self):
        self.looks = []

    def look(self, point):
        self.looks.append(point)
        s = point["x"] + point["y"]
        return (6 - s, s), 1.0 + s

    def lacking(self, points):
        return float(16 - len({tuple(p.values()) for p in points}))

    def incumbents(self, seen):
        return [seen[0][0]]


class Player:
    """Asks for random points, and recommends nothing, or its trials 0 and 1."""

    def __init__(self, recommended=None):
        self.rng, self.asked, self.told, self.recommended = random.Random(1), 0, [], recommended

    def ask(self, n):
        self.asked += n
        return [(self.asked - n + i, {"x": self.rng.randrange(4), "y": self.rng.randrange(4)}) for i in range(n)]

    def tell(self, told):
        self.told += told

    def recommend(self):
        return self.recommended


class PlayTest(unittest.TestCase):
    def test_tells_every_evaluation_once(self):
        for mode in ("batch", "async"):
            grid, player = Grid(), Player()
            missing = pairs.play(player, grid, mode)
            self.assertEqual(sorted(handle for handle, _, _ in player.told), list(range(128)))
            for _, point, values in player.told:
                self.assertEqual(values, grid.look(point)[0])
            self.assertEqual(missing["seen"][-1], grid.lacking(grid.looks))
            self.assertEqual(missing["recommended"], [15.0] * 3)  # a single point, as the task would take it

    def test_takes_what_is_recommended(self):
        grid, player = Grid(), Player(recommended=[0, 1])
        self.assertEqual(pairs.play(player, grid, "batch")["recommended"], [grid.lacking(grid.looks[:2])] * 3)


def table(kind, loss, cost):
    """A task over a table that has these means."""
    made = kind.__new__(kind)
    made.means = {str(i): pair for i, pair in enumerate(zip(loss, cost))}
    made.key = lambda point: str(point)
    return made


class MissingTest(unittest.TestCase):
    def test_of_two_objectives(self):
        task = table(pairs.TablePair, [0, 1, 2, 2], [2, 1, 0, 2])
        task.measure()
        self.assertEqual(task.reference, (2.2, 2.2))
        self.assertEqual(task.lacking([0, 1, 2, 3]), 0)
        self.assertAlmostEqual(task.lacking([1, 3]), 100 * (1 - 1.44 / (2.2 * 0.2 + 1.2 * 1 + 0.2 * 1)))
        self.assertEqual(task.lacking([]), 100)

    def test_with_a_limit(self):
        task = table(pairs.Limited, [9, 5, 3, 1, 0, 0, 0], [1, 2, 2, 2, 3, 4, 5])
        task.measure()
        self.assertEqual((task.bound, task.best, task.median), (2, 1, 4))
        self.assertEqual(task.lacking([1, 4]), 100 * (5 - 1) / (4 - 1))
        self.assertEqual(task.lacking([0, 3]), 0)
        self.assertEqual(task.lacking([4, 5]), 200)

    def test_what_is_taken_without_a_recommendation(self):
        seen = [("a", (3, 1), 0), ("b", (2, 2), 1), ("c", (4, 4), 2), ("d", (1, 3), 3)]
        task = table(pairs.TablePair, [], [])
        self.assertEqual(task.incumbents(seen), ["d", "b", "a"])
        task = table(pairs.Limited, [], [])
        task.bound = 2
        self.assertEqual(task.incumbents(seen), ["b"])
        task.bound = 0
        self.assertEqual(task.incumbents(seen), [])


class TablesTest(unittest.TestCase):
    """Two tuners of which `a` is always ahead by 1 on one task, and 0.5 ahead on average, with luck, on the other."""

    def setUp(self):
        self.rows, (one, two) = {}, pairs.TASKS["development"][:2]
        for seed in range(4):
            for tuner, task, seen in (("a", one, 1), ("b", one, 2), ("a", two, 3), ("b", two, 3 + (-1, 1, 0, 2)[seed])):
                for mode in ("batch", "async"):
                    missing = [9, 8, seen + (mode == "async")]
                    self.rows[tuner, task, mode, seed] = {"seen": missing, "recommended": [9, 8, 5]}

    def test_beside(self):
        lines = pairs.beside(self.rows, ["a", "b"], "tables", "a").split("\n")
        self.assertEqual(lines[2], "| development | `a` | 16 | 9.00 | 8.00 | 2.50 | 5.00 |  |  |")
        self.assertRegex(lines[3], r"^\| development \| `b` \| 16 \| 9.00 \| 8.00 \| 3.25 \| 5.00 \| \+0.00 \(\+0.00 to \+0.00\) \| \+0.75 \(\+0\.\d\d to \+1\.\d\d\) \|$")

    def test_bold_are_those_that_may_be_first(self):
        lines = pairs.by_task(self.rows, ["a", "b"]).split("\n")
        self.assertTrue(lines[2].endswith("| **1.50** | 2.50 |"), lines[2])
        self.assertTrue(lines[3].endswith("| **3.50** | **4.00** |"), lines[3])

    def test_asynchronous_less_batches(self):
        lines = pairs.asynchronous(self.rows, ["a"]).split("\n")
        self.assertEqual(lines[2], "| `a` | +0.00 (+0.00 to +0.00) | +1.00 (+1.00 to +1.00) |")


if __name__ == "__main__":
    unittest.main()
