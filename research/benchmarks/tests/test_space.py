import math
import random
import unittest

from fantasia_bench import definitions
from fantasia_bench.space import BOOL, INT, REAL, Parameter, sample


class ParameterTest(unittest.TestCase):
    def test_coordinates_by_hand(self):
        for parameter, value, coordinate in (
            (Parameter("a", REAL, "linear", 0.0, 0.5), 0.25, 0.25),
            (Parameter("a", REAL, "log", 1e-5, 1e-1), 1e-3, math.log(1e-3)),
            (Parameter("a", REAL, "logit", 0.1, 0.9), 0.5, 0.0),
            (Parameter("a", REAL, "logit", 0.1, 0.9), 0.8, math.log(4)),
            (Parameter("a", INT, "log", 10, 5000), 100, math.log(100)),
        ):
            self.assertAlmostEqual(parameter.encode(value), coordinate, places=14)
            self.assertAlmostEqual(parameter.decode(coordinate), value, places=14)

    def test_integers_have_equal_shares(self):
        parameter = Parameter("a", INT, "linear", 1, 4)
        self.assertEqual(parameter.coordinates(), (0.5, 4.5))
        self.assertEqual([parameter.decode(z) for z in (0.5, 1.49, 1.51, 4.49, 4.5)], [1, 1, 2, 4, 4])

    def test_values_stay_in_range(self):
        self.assertEqual(Parameter("a", REAL, "log", 1.0, 1e3).decode(math.log(1e3) + 1e-9), 1e3)
        self.assertEqual(Parameter("a", INT, "log", 10, 5000).decode(math.log(9.5)), 10)

    def test_every_value_comes_back(self):
        rng = random.Random(1)
        for name, task in definitions.TASKS.items():
            for _ in range(20):
                for key, value in sample(task.space, rng).items():
                    parameter = next(p for p in task.space if p.name == key)
                    if parameter.kind == BOOL:
                        self.assertIsInstance(value, bool)
                        continue
                    self.assertTrue(parameter.low <= value <= parameter.high, f"{name} {key} {value}")
                    again = parameter.decode(parameter.encode(value))
                    self.assertLessEqual(abs(again - value), 1e-12 * abs(value), f"{name} {key}")


class DefinitionsTest(unittest.TestCase):
    def test_numbers(self):
        # 9 models, on 4 classification and 2 regression sets with two metrics each.
        self.assertEqual(len(definitions.TASKS), 9 * (4 + 2) * 2)
        self.assertEqual(len(definitions.select("open")), 36)
        self.assertEqual(len(definitions.select("other")), 72)
        self.assertFalse(set(definitions.select("open")) & set(definitions.select("other")))

    def test_dimensions(self):
        for name, dimension in (("MLP-adam_wine_nll", 9), ("MLP-sgd_boston_mse", 8), ("RF_iris_acc", 6), ("lasso_wine_nll", 2), ("lasso_boston_mse", 6), ("linear_boston_mse", 5)):
            self.assertEqual(len(definitions.task(name).space), dimension, name)

    def test_groups(self):
        self.assertEqual(definitions.select("kNN_wine_nll,kNN_wine_*"), ["kNN_wine_nll", "kNN_wine_acc"])
        some = definitions.select("other:12")
        self.assertEqual((len(some), some), (12, definitions.select("other:12")))
        self.assertEqual(sorted(some + definitions.select("other:12-24")), sorted(definitions.select("other:24")))
        self.assertLessEqual(set(some), set(definitions.select("other")))
        with self.assertRaisesRegex(SystemExit, "want open, other"):
            definitions.select("kNN_wine")

    def test_study(self):
        spec = definitions.study("linear_boston_mse", "gp", seed=3, trials=16, parallelism=2)["spec"]
        self.assertEqual(spec["parameters"][1:4], [
            {"name": "fit_intercept", "type": "bool"},
            {"name": "normalize", "type": "bool"},
            {"name": "max_iter", "type": "int", "min": 10, "max": 5000, "scale": "log"},
        ])
        self.assertEqual(spec["trial"]["command"][-2:], ["serve", "linear_boston_mse"])


if __name__ == "__main__":
    unittest.main()
