import pathlib
import statistics
import unittest

import methods


class GoptunaTest(unittest.TestCase):
    def test_the_page_has_the_kept_runs(self):
        here = pathlib.Path(methods.__file__).parent
        page = (here.parent / "results" / "methods.md").read_text()
        rows = methods.read([str(here / "runs" / "goptuna.jsonl.xz")])
        for tuner in ("goptuna:tpe", "goptuna:cmaes", "fantasia:tpe", "fantasia:cmaes", "fantasia:hebo"):
            runs = [regret for key, regret in rows.items() if key[0] == tuner]
            self.assertEqual(len(runs), 60, tuner)
            cells = [f"{statistics.fmean(r[n] for r in runs):.3f}".replace("-", "\u2212") for n in methods.CHECKPOINTS]
            self.assertIn(f"| `{tuner}` | {' | '.join(cells)} | ", page)


class BesideTest(unittest.TestCase):
    """Two tuners with three runs each, of which they share two; the functions' runs are left out."""

    def setUp(self):
        table, regrets = methods.TABLES[0], {}
        for tuner, seeds, after in (("a", (0, 1, 2), (0.5, 0.25)), ("b", (1, 2, 3), (0.25, 0.125))):
            regrets |= {(tuner, table, s): {"24": 1, "48": after[0], "128": after[1]} for s in seeds}
            regrets[tuner, "branin", 0] = {"24": 9, "48": 9, "128": 9}
        self.rows = regrets

    def test_less_one(self):
        lines = methods.beside(self.rows, ["a", "b"], "a")
        self.assertEqual(lines[2], "| `a` | 3 | 0.500 | 0.250 |  |  |")
        self.assertEqual(lines[3], "| `b` | 3 | 0.250 | 0.125 | -0.250 (-0.250 to -0.250) | -0.125 (-0.125 to -0.125) |")

    def test_less_the_row_above(self):
        lines = methods.beside(self.rows, ["b", "a", "b"], methods.ABOVE)
        self.assertEqual([line.split(" | ")[-1] for line in lines[2:]], [" |", "+0.125 (+0.125 to +0.125) |", "-0.125 (-0.125 to -0.125) |"])

    def test_shorter_runs(self):
        """They count for the evaluations that they have."""
        del self.rows["b", methods.TABLES[0], 1]["128"]
        lines = methods.beside(self.rows, ["a", "b"], "a")
        self.assertEqual(lines[3], "| `b` | 3 | 0.250 | 0.125 | -0.250 (-0.250 to -0.250) | -0.125 (-0.125 to -0.125) |")
        for seed in (2, 3):
            del self.rows["b", methods.TABLES[0], seed]["128"]
        self.assertEqual(methods.beside(self.rows, ["a", "b"], "a")[3], "| `b` | 3 | 0.250 |  | -0.250 (-0.250 to -0.250) |  |")
        early = methods.beside(self.rows, ["a", "b"], "a", ("48",))
        self.assertEqual(early[0], "| | runs | after 48 | after 48, less `a` |")
        self.assertEqual(early[3], "| `b` | 3 | 0.250 | -0.250 (-0.250 to -0.250) |")


class PlayTest(unittest.TestCase):
    def test_ends_at_a_checkpoint(self):
        class Middle(methods.Tuner):
            def ask(self):
                return [(None, {"p0": 0.0, "p1": 0.0})] * methods.BATCH

            def tell(self, told):
                self.told = getattr(self, "told", 0) + len(told)

        tuner = Middle()
        regret = methods.play(tuner, methods.Function("rastrigin-2", 0), 48)
        self.assertEqual((regret, tuner.told), ({"24": -9.0, "48": -9.0}, 48))


if __name__ == "__main__":
    unittest.main()
