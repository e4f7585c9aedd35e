import unittest

import define
import spaces


class Trial:
    """A trial that gives what it is told to, and notes what it was asked for."""

    def __init__(self, **values):
        self.values, self.asked = values, []

    def suggest(self, name, *declared, **options):
        self.asked.append((name, *declared, *options.values()))
        return self.values[name]

    suggest_float = suggest_int = suggest_categorical = suggest


class AskForTest(unittest.TestCase):
    def test_asks_for_what_is_active(self):
        trial = Trial(solver="sgd", lr=0.1, momentum=0.9, nesterov="no", layers=2, width=64, dropout=0.5, activation="relu")
        point = define.ask_for(trial, spaces.Pipeline(0).parameters)
        self.assertEqual(point, trial.values)  # no beta2
        self.assertEqual(trial.asked[1:3], [("lr", 1e-5, 1, True), ("momentum", 0, 0.99, False)])
        self.assertEqual(trial.asked[3], ("nesterov", ["yes", "no"]))
        self.assertIn(("width", 8, 512, True), trial.asked)

    def test_conditions_of_conditions(self):
        trial = Trial(a="y", c=1.0)
        a = spaces.choice("a", ["x", "y"])
        b = spaces.choice("b", ["x", "y"], when={"a": ["x"]})
        parameters = [a, b, spaces.number("d", 0, 1, when={"b": ["y"]}), spaces.number("c", 0, 1, when={"a": ["y"]})]
        self.assertEqual(define.ask_for(trial, parameters), {"a": "y", "c": 1.0})


if __name__ == "__main__":
    unittest.main()
