"""Groups whose ranks share a host do their operations over a board, memory that all of them have
mapped, with the results and the errors that they have over nodes."""

import subprocess
import unittest

from harness import TRIB, Fabric, Ranks

#: TRIB_ERR_TIMEOUT.
TIMEOUT = -8
#: Lengths below and above a cell, a page, a piece, a share and a window of pieces.
COUNTS = [1, 12, 13, 700, 5000, 8192, 40_000, 100_000]


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

    def test_every_length_is_right_on_hosts_of_many_ranks(self):
        with Fabric(shared_host=True) as fabric:
            for ranks in ("8", "20"):
                command = [TRIB, "bench", "--ranks", ranks, "--max", "16K", "--iterations", "20", "--manager", fabric.manager]
                done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_who_computes_holds_nobody_up(self):
        results = run(2, "boards_worker", "computing", {"count": 500_000, "iterations": 5, "limit": 20})
        for result in results:
            self.assertLess(max(result["took"]), 20)
            self.assertEqual(result["counters"]["operations_board"], 10)

    def test_a_wait_for_a_long_operation_has_its_limit_and_calls_back(self):
        """Pieces come all the time, so that none of these waits sleeps."""
        for result in run(2, "boards_worker", "long_waits", {"count": 24 << 20}):
            self.assertEqual(result["status"], TIMEOUT)
            self.assertGreater(result["progress"], 1)

    def test_short_operations_on_a_host_do_not_hold_up_those_of_several(self):
        results = run(3, "boards_worker", "short_ones_beside", {"count": 500_000, "limit": 20})
        for result in results[:2]:
            self.assertTrue(result["in_time"])
            self.assertGreater(result["counters"]["operations_board"], 2)

    def test_a_thread_that_sleeps_is_woken_for_what_another_has_posted(self):
        for ranks, count in ((2, 1), (2, 100_000), (3, 1)):
            argument = {"turns": 10, "count": count, "seconds": 3, "pause": 0.02}
            took = run(ranks, "boards_worker", "beside_a_sleeper", argument)[0]
            for half in (took[:10], took[10:]):
                self.assertLess(sorted(half)[5], 0.08, took)

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

    def test_who_left_because_the_group_had_failed_is_not_what_others_hear_of(self):
        results = run(16, "boards_worker", "hears_first")
        for text in results[:-1]:
            self.assertRegex(text, r"^group of ranks 0-15: rank 15 on .* died", results)

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


class WideBoards(unittest.TestCase):
    """Groups of several hosts have a board on each. One rank of each host speaks for the others."""

    #: One for each rank: the last is alone on its host.
    HOSTS = ["h0"] * 3 + ["h1"] * 3 + ["h2"]
    RANKS = 7
    FIRST = (0, 3, 6)

    def run_wide(self, worker, function, argument=None, **options):
        return run(self.RANKS, worker, function, argument, hosts=self.HOSTS, **options)

    def test_operations_of_all_kinds_are_right_however_many_are_under_way(self):
        for counters in self.run_wide("boards_worker", "many_under_way", {"turns": 16, "counts": COUNTS}):
            # Of allgathers and reduce-scatters those of 700 elements go over the tree: blocks are
            # neither short nor long enough to take turns.
            self.assertEqual(counters["operations_board"], 2 * (16 * 5 + 2 * 7 * 2))
            self.assertGreaterEqual(counters["operations_llt"] + counters["operations_sat"], 2 * (16 - 2 * 7) * 2)

    def test_short_blocks_of_many_ranks_are_right(self):
        for many, few in ((8, 2), (20, 1)):
            # Below and above what goes over the boards: 4 KiB for all blocks.
            counts = [1, 2, 512 // (many + few), 512 // (many + few) + 1, 0]
            hosts = ["h0"] * many + ["h1"] * few
            ran = run(many + few, "boards_worker", "many_under_way", {"turns": len(counts), "counts": counts}, hosts=hosts)
            self.assertEqual({counters["operations_board"] for counters in ran}, {2 * (5 * 5 + 4 * 2)})

    def test_only_the_first_rank_of_a_host_sends_what_is_on_its_board(self):
        counts = self.run_wide("loop_worker", "loop", {"counts": [100_000], "iterations": 20})
        sent = [counters["counters"]["operations_sat"] for counters in counts]
        # A vector of 800,000 bytes has four pieces.
        self.assertEqual([sent[rank] >= 20 * 4 for rank in range(self.RANKS)], [rank in self.FIRST for rank in range(self.RANKS)])
        self.assertEqual({sent[rank] for rank in range(self.RANKS) if rank not in self.FIRST}, {0})

    def test_one_rank_that_shares_no_memory_takes_all_to_the_tree(self):
        apart = ["sh", "-c", '[ $TRIB_RANK != 4 ] || export TRIB_SHARED_MEMORY=off; exec "$@"', "sh"]
        for counters in self.run_wide("boards_worker", "many_under_way", {"turns": 8, "counts": COUNTS}, through=apart):
            self.assertEqual(counters["operations_board"], 0)

    def test_who_computes_holds_nobody_up(self):
        for result in self.run_wide("boards_worker", "computing", {"count": 300_000, "iterations": 3, "limit": 30}):
            self.assertLess(max(result["took"]), 30)

    def test_ranks_that_disagree_are_told_what_each_called(self):
        # Two ranks of a host, of which the first or the other is the odd one, and a whole host.
        for rank in (3, 4, 6):
            for odd in (1, 100_000):
                for result in self.run_wide("loop_worker", "disagree", {"rank": rank, "even": 7, "odd": odd}):
                    self.assertEqual(result["status"], -6, result)
                    self.assertRegex(result["text"], rf"ranks disagree about the operation: .*rank {rank} on h\d \(PID \d+\) called allreduce of {odd} float32")
                    # The first that called something else, or one that speaks for its host.
                    others = {3: "4", 4: "3", 6: "[03]"}[rank]
                    self.assertRegex(result["text"], rf"rank {others} on h\d \(PID \d+\) called allreduce of 7 float32")
                    self.assertEqual(result["group"][0], -6, result)

    def test_a_call_that_goes_over_the_tree_or_as_another_beside_one_over_the_boards_is_found(self):
        # Rank 4 beside others of its host, and a host against the others.
        for rank in (4, 6):
            for count in (7, 2000):
                for result in self.run_wide("boards_worker", "other_call", {"rank": rank, "count": count}):
                    self.assertEqual(result["status"], -6, result)
                    self.assertRegex(result["text"], rf"rank {rank} on h\d \(PID \d+\) called allgather of blocks of {4 * count} bytes")
                    self.assertRegex(result["text"], rf"rank [03] on h\d \(PID \d+\) called allreduce of {count} float32")

    def test_hosts_that_disagree_are_named_where_no_node_has_seen_what_they_called(self):
        for result in self.run_wide("loop_worker", "disagree", {"rank": 6, "even": 200_000, "odd": 100_000}):
            self.assertEqual(result["status"], -6, result)
            self.assertRegex(result["text"], r"ranks disagree about the operation: (rank [03] on h[01] .* and rank 6|rank 6 on h2 .* and rank [03]) on h")

    def test_nobody_waits_for_a_rank_that_has_left(self):
        # One that speaks for others, and one for which another speaks.
        for rank in (3, 5, 6):
            results = self.run_wide("boards_worker", "leaves", {"rank": rank, "count": 100_000})
            for other in set(range(self.RANKS)) - {rank}:
                self.assertEqual(results[other]["status"], -7, results)
                self.assertRegex(results[other]["text"], f"rank {rank} .* left the group")

    def test_who_waits_long_sleeps_and_is_woken(self):
        for result in self.run_wide("boards_worker", "late_ones", {"turns": 8, "seconds": 0.5}):
            self.assertLess(result["share"], 0.2)
            self.assertLess(sorted(result["after"])[len(result["after"]) // 2], 1)

    def test_short_operations_do_not_wake_the_librarys_thread(self):
        for result in self.run_wide("boards_worker", "helpers", {"iterations": 3000}):
            # It looks every 10 ms whether the program still calls, by itself.
            self.assertLess(result["slept"], 170 * result["took"] + 20, result)


if __name__ == "__main__":
    unittest.main()
