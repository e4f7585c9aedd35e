import itertools
import unittest

import spaces


class SmallFlags(spaces.Flags):
    count = 6


class Best(unittest.TestCase):
    def test_flags_are_at_least_as_good_as_every_combination(self):
        for seed in range(5):
            task = SmallFlags(seed)
            sizes = {f"n{i}": round(2**s) for i, s in enumerate(task.sizes)}
            every = (
                {"level": level, **{f"f{i}": "on" if on else "off" for i, on in enumerate(flags)}, **sizes}
                for level in task.levels
                for flags in itertools.product([False, True], repeat=task.count)
            )
            self.assertAlmostEqual(task.best, min(map(task.value, every)))

    def test_the_best_points_of_the_others_have_no_regret(self):
        for seed in range(5):
            task = spaces.Cash(seed)
            self.assertEqual(task.regret({"model": "b", **{f"b{i}": o for i, o in enumerate(task.optima["b"])}}), 0)
            task = spaces.Pipeline(seed)
            common = {"layers": 2, "width": 2**task.width, "dropout": task.dropout, "activation": "relu"}
            self.assertAlmostEqual(task.regret({"solver": "adam", "lr": 10**task.rate, "beta2": 0.9, **common}), 0)
            sgd = {"solver": "sgd", "lr": 10 ** (task.rate + 1), "momentum": task.momentum, "nesterov": "yes"}
            self.assertAlmostEqual(task.regret(sgd | common), 0)
            self.assertGreater(task.regret({"solver": "lbfgs"} | common), 0.2)

    def test_a_seed_draws_the_same_task_and_noise(self):
        point = {"level": "O3", **{f"f{i}": "off" for i in range(20)}}
        looks = [spaces.NoisyFlags(3).look(point) for _ in range(2)]
        self.assertEqual(*looks)
        self.assertNotEqual(looks[0], spaces.NoisyFlags(4).look(point))
