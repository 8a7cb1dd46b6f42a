"""Groups whose ranks share a host do their operations over a board, memory that all of them have
mapped, with the results and the errors that they have over nodes."""

import unittest

from harness import Fabric, Ranks

#: Lengths below and above a cell, a page, a piece, a share and a window of pieces.
COUNTS = [1, 13, 14, 700, 5000, 8192, 40_000, 100_000]


def run(ranks, worker, function, argument=None, timeout=120, **options):
    with Fabric(shared_host=True) as fabric, Ranks(fabric, ranks, worker, function, argument, **options) as running:
        return running.results(timeout)


class Boards(unittest.TestCase):
    def test_operations_of_all_kinds_are_right_however_many_are_under_way(self):
        for ranks in (2, 3, 5):
            results = run(ranks, "boards_worker", "many_under_way", {"turns": 16, "counts": COUNTS})
            for counters in results:
                self.assertEqual(counters["operations_board"], 2 * 16 * 7)
                # What goes over the tree makes the groups.
                self.assertEqual(counters["operations_llt"] + counters["operations_sat"], 2 * 2)

    def test_who_computes_holds_nobody_up(self):
        results = run(2, "boards_worker", "computing", {"count": 500_000, "iterations": 5, "limit": 20})
        for result in results:
            self.assertLess(max(result["took"]), 20)
            self.assertEqual(result["counters"]["operations_board"], 10)

    def test_short_operations_on_a_host_do_not_hold_up_those_of_several(self):
        results = run(3, "boards_worker", "short_ones_beside", {"count": 500_000, "limit": 20})
        for result in results[:2]:
            self.assertTrue(result["in_time"])
            self.assertGreater(result["counters"]["operations_board"], 2)

    def test_one_rank_that_shares_no_memory_takes_all_to_the_tree(self):
        apart = ["sh", "-c", '[ $TRIB_RANK != 2 ] || export TRIB_SHARED_MEMORY=off; exec "$@"', "sh"]
        for counters in run(3, "boards_worker", "many_under_way", {"turns": 8, "counts": COUNTS}, through=apart):
            self.assertEqual(counters["operations_board"], 0)
            self.assertGreater(counters["operations_sat"], 0)

    def test_ranks_that_disagree_are_told_what_each_called(self):
        for odd in (1, 13, 100_000):
            results = run(4, "loop_worker", "disagree", {"rank": 2, "even": 7, "odd": odd})
            for result in results:
                self.assertEqual(result["status"], -6, result)
                self.assertRegex(result["text"], rf"rank 0 .* called allreduce of 7 float32 .*, rank 2 .* called allreduce of {odd} float32")
                self.assertEqual(result["group"][0], -6, result)

    def test_nobody_waits_for_a_rank_that_has_left(self):
        for count in (1, 100_000):
            results = run(3, "boards_worker", "leaves", {"rank": 1, "count": count})
            for rank in (0, 2):
                self.assertEqual(results[rank]["status"], -7, results)
                self.assertRegex(results[rank]["text"], "rank 1 .* left the group")

    def test_who_waits_long_sleeps_and_is_woken(self):
        results = run(4, "boards_worker", "late_ones", {"turns": 8, "seconds": 0.5})
        for result in results:
            self.assertLess(result["share"], 0.2, results)
            # Without a bell it is the next heartbeat that wakes.
            self.assertLess(sorted(result["after"])[len(result["after"]) // 2], 1, results)

    def test_a_board_goes_with_its_group(self):
        for result in run(3, "boards_worker", "boards", {"groups": 5}):
            self.assertEqual(result["mapped"], [0, 5, 0])
            self.assertEqual(result["descriptors"][0], result["descriptors"][1], "none is kept open")


if __name__ == "__main__":
    unittest.main()
