"""The interval of a ratio that pairs of runs of an application have measured (tests/apps/intervals.py)."""

import random
import sys
import unittest

from harness import ROOT

sys.path.insert(0, str(ROOT / "tests/apps"))
import intervals  # noqa: E402


class Interval(unittest.TestCase):
    def test_it_leaves_out_as_many_averages_as_the_tables_of_the_signed_rank_test_say(self):
        critical = {5: None, 6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52}
        for pairs, largest in critical.items():
            self.assertEqual(intervals.cut(pairs), 0 if largest is None else largest + 1, pairs)

    def test_five_pairs_tell_no_interval(self):
        self.assertEqual(intervals.of_ratio([1, 2, 3, 4, 5]), (3, None, None))

    def test_six_pairs_tell_the_smallest_and_the_largest(self):
        median, low, high = intervals.of_ratio([1.0, 1.1, 0.9, 1.2, 0.8, 1.3])
        self.assertAlmostEqual(median, 1.05)
        self.assertAlmostEqual(low, 0.8)
        self.assertAlmostEqual(high, 1.3)

    def test_nineteen_of_twenty_intervals_have_the_true_ratio(self):
        draw = random.Random(1)
        held = 0
        for _ in range(1000):
            _, low, high = intervals.of_ratio([0.9 * draw.lognormvariate(0, 0.3) for _ in range(10)])
            held += low <= 0.9 <= high
        self.assertGreater(held, 925)
        self.assertLess(held, 975)


if __name__ == "__main__":
    unittest.main()
