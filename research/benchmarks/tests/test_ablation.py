import unittest

from fantasia_bench import ablation


class VariantsTest(unittest.TestCase):
    def test_every_setting_is_documented(self):
        known = ablation.defaults()
        self.assertLessEqual({k for settings, _ in ablation.variants({}) for k in settings}, set(known))

    def test_defaults_are_no_variants(self):
        known = {"warp": "true", "transform": "true", "kernel": "matern32", "linear": "true"}
        known |= {"acquisition": "mace", "robust": "true", "replicate": "true", "plateaus": "true"}
        self.assertEqual([name for _, name in ablation.variants(known)], [
            "as it is", "no input warping", "no output transform", "Matérn-5/2 kernel", "no linear kernel",
            "LogEI", "MACE, not robust", "16 initial points", "no replication", "plateaus not left",
        ])  # fmt: skip

    def test_names_are_distinct(self):
        names = ablation.names()
        self.assertEqual(len(names), len(set(names.values())))


if __name__ == "__main__":
    unittest.main()
