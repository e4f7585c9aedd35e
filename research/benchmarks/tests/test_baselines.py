import math
import types
import unittest

import baselines
import numpy


def task(floats=None, grids=None, names=None):
    return types.SimpleNamespace(floats=floats or {}, grids=grids or {}, names=names or {})


def minimise(name, loss, of, evaluations=128, seed=0):
    tuner, best, asked = baselines.Baseline(of, seed, name, evaluations, 8), math.inf, []
    for _ in range(evaluations // 8):
        batch = tuner.ask()
        told = [(handle, point, loss(point)) for handle, point in batch]
        tuner.tell(told)
        asked += [point for _, point in batch]
        best = min([best, *(y for _, _, y in told)])
    return best, asked


class Interpolation(unittest.TestCase):
    def test_passes_through_the_values_and_keeps_a_plane(self):
        rng = numpy.random.default_rng(1)
        x, y = rng.random((30, 3)), rng.random(30)
        numpy.testing.assert_allclose(baselines.Interpolant(x, y)(x), y, atol=1e-3)
        new = rng.random((10, 3))

        def plane(at):
            return 2 + at @ numpy.array([1.0, -3.0, 0.5])

        numpy.testing.assert_allclose(baselines.Interpolant(x, plane(x))(new), plane(new), atol=1e-6)

    def test_in_one_dimension_it_is_the_natural_cubic_spline(self):
        # Through (0, 0), (1/2, 1), (1, 0): s(1/4) = 11/16 by hand, from the second derivatives 0, −12, 0.
        model = baselines.Interpolant(numpy.array([[0.0], [0.5], [1.0]]), numpy.array([0.0, 1.0, 0.0]))
        self.assertAlmostEqual(model(numpy.array([[0.25]]))[0], 11 / 16, places=4)


class Designs(unittest.TestCase):
    def test_is_a_symmetric_latin_hypercube(self):
        for count in (6, 22):
            x = baselines.design(count, [0] * 4, numpy.random.default_rng(2))
            for column in x.T:
                self.assertEqual(sorted(int(v * count) for v in column), list(range(count)))
            half = count // 2
            numpy.testing.assert_allclose(x[:half] + x[half:], 1)


class Steps(unittest.TestCase):
    def test_the_one_fifth_rule(self):
        es = baselines.Evolution(baselines.Cube(task({"x": (0, 1)})), baselines.History(), None)
        es.tell(3, math.inf)
        self.assertEqual(es.step, 0.2)
        es.tell(2, 3)
        self.assertAlmostEqual(es.step, 0.2 * math.exp(1 / 3))
        for _ in range(4):  # one success in five keeps the step
            es.tell(9, 2)
        self.assertAlmostEqual(es.step, 0.2)

    def test_the_share_of_coordinates_falls(self):
        rbf = baselines.Dycors(baselines.Cube(task({str(i): (0, 1) for i in range(40)})), baselines.History(), numpy.random.default_rng(1), 182, 8)
        self.assertAlmostEqual(rbf.share(1), 0.5)  # 20/d
        self.assertAlmostEqual(rbf.share(10), 0.25)  # a budget of 100 beyond the design: half of the way in logarithms
        self.assertAlmostEqual(rbf.share(100), 1 / 40)

    def test_the_step_follows_batches(self):
        rbf = baselines.Dycors(baselines.Cube(task({"x": (0, 1)})), baselines.History(), numpy.random.default_rng(1), 128, 8)
        rbf.ask(8)
        rbf.told(1)  # of a design
        rbf.designed, steps = False, []
        for best in (5, 5, 4.999, 4, 3, 2, 2):  # first a success, two failures, three successes, a failure
            rbf.told(best)
            steps.append(rbf.step)
        self.assertEqual(steps, [0.2, 0.1, 0.05, 0.05, 0.05, 0.1, 0.05])


class Bandit(unittest.TestCase):
    def test_credit_is_the_area_under_the_curve(self):
        bandit = baselines.Credit(["a", "b"], numpy.random.default_rng(1))
        for success in (False, True, True):
            bandit.learn("a", success)
        bandit.learn("b", True)
        self.assertAlmostEqual(bandit.credit("a"), 5 / 6)  # (2 + 3) of 1 + 2 + 3
        self.assertAlmostEqual(bandit.score("a"), 5 / 6 + 0.05 * math.sqrt(2 * 2 / 3))
        self.assertAlmostEqual(bandit.score("b"), 1 + 0.05 * math.sqrt(2 * 2))
        self.assertEqual(bandit.choose(), "b")
        bandit.past = bandit.past * 200
        bandit.learn("a", True)
        self.assertEqual(len(bandit.past), 500)

    def test_an_arm_that_was_never_played_is_next(self):
        bandit = baselines.Credit(["a", "b"], numpy.random.default_rng(1))
        bandit.learn("a", True)
        self.assertEqual(bandit.choose(), "b")


class Searches(unittest.TestCase):
    def test_finds_the_bottom_of_a_bowl(self):
        # The best of 128 random points is about 0.5 in the mean.
        of = task({"x": (-5, 5), "y": (0, 10)})
        for name, most in (("es", 1e-2), ("rbf", 1e-2), ("opentuner", 1e-2)):
            best, asked = minimise(name, lambda p: (p["x"] - 1) ** 2 + (p["y"] - 8) ** 2, of)
            self.assertLess(best, most, name)
            self.assertTrue(all(-5 <= p["x"] <= 5 and 0 <= p["y"] <= 10 for p in asked), name)

    def test_finds_the_best_of_grids_and_names(self):
        of = task(grids={"a": list(range(20)), "b": [0.1, 0.2, 0.4]}, names={"c": ["u", "v", "w"]})
        for name in ("es", "rbf", "opentuner"):
            best, asked = minimise(name, lambda p: abs(p["a"] - 13) + 10 * p["b"] + 3 * (p["c"] != "v"), of)
            self.assertAlmostEqual(best, 1, msg=name)
            self.assertEqual({p["c"] for p in asked}, {"u", "v", "w"}, name)

    def test_a_seed_repeats_its_points(self):
        of, loss = task({"x": (0, 1)}, {"a": [1, 2, 3]}), lambda p: p["x"] * p["a"]
        for name in ("es", "rbf", "opentuner"):
            self.assertEqual(minimise(name, loss, of, 40, 3)[1], minimise(name, loss, of, 40, 3)[1])

    def test_names_what_it_knows(self):
        with self.assertRaisesRegex(ValueError, "es, rbf or opentuner"):
            baselines.Baseline(task({"x": (0, 1)}), 0, "nelder-mead", 128, 8)


if __name__ == "__main__":
    unittest.main()
