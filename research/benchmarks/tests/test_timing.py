import re
import unittest

from fantasia_bench import publish, timing


class TableTest(unittest.TestCase):
    def test_medians_and_ratios(self):
        made = {
            120: {"fantasia:hebo": [0.070, 0.072, 0.060], "hebo": [5.0, 5.2, 6.0], "optuna-tpe": [0.14, 0.144, 0.12]},
            1000: {"fantasia:hebo": [0.9, 0.92, 1.0]},
        }
        self.assertEqual(timing.table(made, "fantasia:hebo").split("\n"), [
            "| tuner | observations | median | times `fantasia:hebo` |",
            "| --- | ---: | ---: | ---: |",
            "| `fantasia:hebo` | 120 | 70 ms | 1.0 |",
            "| `optuna-tpe` | 120 | 140 ms | 2.0 |",
            "| `hebo` | 120 | 5,200 ms | 72 |",
            "| `fantasia:hebo` | 1,000 | 920 ms |  |",
        ])  # fmt: skip

    def test_the_pages_have_a_table_of_this_layout(self):
        published = publish.places(publish.published())["timing"].split("\n")
        head = timing.table({}, "fantasia:hebo").split("\n")
        self.assertEqual(published[:2], head)
        self.assertGreater(len(published), len(head))
        for row in published[2:]:
            self.assertRegex(row, re.compile(r"^\| `[a-z:-]+` \| [\d,]+ \| [\d,]+ ms \| [\d.]* \|$"))


if __name__ == "__main__":
    unittest.main()
