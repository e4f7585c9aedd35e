import os
import re
import unittest

from fantasia_bench import claims

PAGE = os.path.join(os.path.dirname(claims.RUNS), "..", "results", "papers.md")

# What each paper claims, by where it does so: the table has a row for all of it.
ITEMS = {
    "HEBO": "abstract|Table 1|Table 4|Tables 5 to 10|Tables 4 and 11|Tables 12 to 119|Figure 1|Figures 2 and 3|Figure 4a|Figure 4b|Figures 7 to 12|"
    "first version, Figure 6|theorem|GP-Hedge|NeurIPS 2020|random search|Hyperopt|Nevergrad|pySOT|TuRBO |TuRBO+|SkOpt|OpenTuner|BOHB|Dragonfly",
    "LGP": "Table 1|Tables 1 and 6|Figure 4|Figure 5|Figure 6|Figures 1, 2, 3 and 7|Ackley|exponential|Hölder|Shubert|Weierstrass|spring|confidence bound|"
    "warped model|eight functions|Boston|climate|robot",
    "UHE": "h1|Branin|Hartmann|Deceptive|three real tasks|Figure 1|Figure 2|Figure 3|Figure 4|Figure 5|Propositions 6.4 and 6.7|Theorems 6.5, 6.6 and 6.8|"
    "random points predict best|bandit|as fast as",
    "PT": "Table 2|Table 3|Tables 5 and 6|Figures 1 and 2|Figures 3 to 11|Figure 12|Figure 13|(ν)|(Rε)|both together|lemma 7.1",
}


def row(verdict, check="", figure=""):
    return dict(zip(claims.COLUMNS, ("P", "a claim", verdict, "", figure, check)))


class Published(unittest.TestCase):
    """The page."""

    @classmethod
    def setUpClass(cls):
        with open(PAGE) as file:
            cls.text = file.read()
        cls.rows, cls.known = claims.rows(cls.text), claims.checks(claims.Kept())

    def test_every_verdict_is_that_of_the_kept_runs(self):
        self.assertGreater(len(self.rows), 60)
        for r in self.rows:
            self.assertEqual(claims.faults(r, self.known), [], f"{r['paper']}: {r['claim']}")

    def test_every_claim_has_a_row(self):
        for paper, items in ITEMS.items():
            said = "\n".join(r["claim"] + " " for r in self.rows if r["paper"] == paper)
            self.assertEqual([i for i in items.split("|") if i not in said], [], paper)

    def test_what_was_not_played_says_how_or_why_not(self):
        for r in self.rows:
            if r["verdict"] in ("not played", "not tested"):
                self.assertTrue(r["figure"] or r["tested"], r["claim"])

    def test_the_sections_do_not_say_otherwise(self):
        """They leave the verdicts to the table: none says that a claim was reproduced."""
        self.assertEqual(re.findall(r"\*\*[^*]*reproduced[^*]*\*\*", self.text), [])


class RuleTest(unittest.TestCase):
    """What the rule refuses."""

    def found(self, n, shift, spread=1.0, side=-1, margin=None):
        a = {("t", seed): shift + spread * (-1) ** seed for seed in range(n)}
        return claims.paired(a, dict.fromkeys(a, 0.0), side, margin=margin)

    def test_five_seeds(self):
        """Of four seeds, a difference that is the same in all proves nothing here; of five it does."""
        for n, word in ((4, "inconclusive"), (5, "yes")):
            found = self.found(n, -3.0, 0.01)
            self.assertEqual(claims.word([found]), word)
            self.assertEqual(claims.faults(row("yes", "c", found.figure), {"c": lambda f=found: f}) == [], n == 5)

    def test_pairs_of_one_seed_are_one_seed(self):
        a = {(f"task {i}", 0): -3.0 - i for i in range(40)}
        found = claims.paired(a, dict.fromkeys(a, 0.0), -1)
        self.assertIsNone(found.holds)
        self.assertIn("1 seed", found.figure)

    def test_both_sides_of_the_interval(self):
        """Six differences of d ± 1 have the standard deviation √1.2, so the 95% interval is d ± 2.571·√0.2 = d ± 1.150."""
        for shift, holds in ((-1.2, True), (-1.1, None), (1.1, None), (1.2, False)):
            self.assertIs(self.found(6, shift).holds, holds, shift)
            self.assertIs(self.found(6, -shift, side=1).holds, holds, shift)
        self.assertEqual(self.found(6, -1.2).figure, "−1.200 (−2.350 to −0.050), 6 seeds")

    def test_level_within_a_margin(self):
        for shift, margin, holds in ((0, 1.2, True), (0, 1.1, None), (3, 1.2, False), (-3, 1.2, False), (2, 1.2, None)):
            self.assertIs(self.found(6, shift, margin=margin).holds, holds, (shift, margin))

    def test_only_common_seeds_are_pairs(self):
        a, b = {("t", s): -2.0 for s in range(8)}, {("t", s): 0.01 * s for s in range(5, 12)}
        self.assertIn("3 seeds", claims.paired(a, b, -1).figure)

    def test_several_rivals(self):
        true, false, open_ = claims.Found(True, "t"), claims.Found(False, "f"), claims.Found(None, "o")
        for named, holds, figure in (
            ({"a": true, "b": claims.Found(True, "near", 1.0)}, True, "less `b` near"),
            ({"a": true, "b": open_}, None, "less `b` o"),
            ({"a": open_, "b": true, "c": false}, False, "less `c` f"),
        ):
            found = claims.together(named)
            self.assertEqual((found.holds, found.figure), (holds, figure))

    def test_what_a_row_may_not_say(self):
        known = {
            "holds": lambda: claims.Found(True, "3 of 4"), "against": lambda: claims.Found(False, "1 of 4"), "open": lambda: claims.Found(None, "0 (−1 to +1)"),
        }
        for refused in (
            row("yes"), row("no"), row("maybe"), row("partly"), row("yes", "missing"), row("yes", "`holds`", "2 of 4"), row("no", "holds", "3 of 4"),
            row("yes", "holds, open", "3 of 4, 0 (−1 to +1)"), row("inconclusive", "holds", "3 of 4"), row("yes", "against", "1 of 4"),
            row("conditional", "holds", "3 of 4"), row("conditional", "open, against", "0 (−1 to +1), 1 of 4"), row("conditional"),
        ):
            self.assertNotEqual(claims.faults(refused, known), [], refused)
        for accepted in (
            row("yes", "`holds`", "found 3 of 4 here"), row("no", "`holds`, `against`", "3 of 4 and 1 of 4"), row("inconclusive", "open", "0 (−1 to +1)"),
            row("conditional", "holds, open", "3 of 4; 0 (−1 to +1)"), row("not played"), row("inconclusive", figure="not kept"),
        ):
            self.assertEqual(claims.faults(accepted, known), [], accepted)

    def test_rows_of_a_page(self):
        page = "text\n\n| " + " | ".join(claims.COLUMNS) + " |\n| --- | --- | --- | --- | --- | --- |\n| A | x | yes | | 1 of 1 | `c` |\n| | y | not played | | | |\n\n| B | z |\n"
        self.assertEqual([(r["paper"], r["claim"], r["check"]) for r in claims.rows(page)], [("A", "x", "`c`"), ("A", "y", "")])


if __name__ == "__main__":
    unittest.main()
