import math
import unittest

import steps


class Acquisitions(unittest.TestCase):
    def test_values(self):
        """At the threshold, an improvement has the probability ½ and the expectation φ(0)·sd."""
        (bound, other), (ei, _), (pi, far) = steps.acquisitions([-1e-4, 50.0], [2.0, 1.0], 0.0, 3.0)
        self.assertAlmostEqual(bound, 6 + 1e-4)
        self.assertAlmostEqual(other, -47)
        self.assertAlmostEqual(ei, math.log(2 / math.sqrt(2 * math.pi)))
        self.assertAlmostEqual(pi, math.log(0.5))
        self.assertAlmostEqual(far, -1254.836, places=3)  # scipy.stats.norm.logcdf(-50.0001)

    def test_far_away_the_order_stays(self):
        """Beyond what a double holds, a worse mean still has a lower expected improvement."""
        values = steps.acquisitions([40.0, 41.0, 60.0], [1.0] * 3, 0.0, 3.0)[1]
        self.assertEqual(sorted(values, reverse=True), list(values))
        self.assertTrue(all(map(math.isfinite, values)))


if __name__ == "__main__":
    unittest.main()
