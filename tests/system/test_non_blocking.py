"""Many operations at once, streams in crossing order, and ranks that disagree."""

import pathlib
import tempfile
import unittest

from harness import Fabric, Ranks


class NonBlocking(unittest.TestCase):
    def test_512_outstanding_with_at_most_two_library_threads(self):
        with Fabric() as fabric:
            for ranks_number, counts in ((8, [1, 30, 3000]), (3, [200, 20_000])):
                argument = {"number": 512, "counts": counts}
                with Ranks(fabric, ranks_number, "loop_worker", "outstanding", argument) as ranks:
                    for result in ranks.results():
                        # One thread is Python's own; numpy's BLAS is told to start none.
                        self.assertLessEqual(result["with_library"] - 1, 2)
                        self.assertEqual(result["after"], 1, "a thread outlives finalize")

    def test_crossing_order_on_two_groups(self):
        with Fabric() as fabric:
            for streams in (4, 1):
                argument = {"iterations": 10, "count": 50_000}
                quota = {"streams": streams}
                with Ranks(fabric, 8, "loop_worker", "crossing", argument, quota) as ranks:
                    for counters in ranks.results():
                        self.assertEqual(counters["operations_sat"], 20)

    def test_a_rank_that_computes_gives_its_lease_back(self):
        """Nothing but the lease's return wakes the rank: the heartbeat is longer than the test. The
        pauses end before and after the library's own thread has begun to watch."""
        quota = {"streams": 1, "heartbeat_ms": 60_000, "dead_after_ms": 600_000}
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            argument = {"count": 20_000, "turns": 8, "pauses": [0, 0.5], "limit": 20, "done": str(pathlib.Path(folder) / "done")}
            with Ranks(fabric, 4, "loop_worker", "computes", argument, quota) as ranks:
                for turn, (done, woke) in enumerate(ranks.results()[0]):
                    self.assertTrue(done, f"turn {turn}: the others wait until the program calls again")
                    self.assertLess(woke, 20, f"turn {turn}")

    def test_ranks_that_disagree_are_named_on_every_rank(self):
        with Fabric() as fabric:
            for even, odd in ((8, 9), (50_000, 60_000), (8, 60_000)):
                argument = {"rank": 5, "even": even, "odd": odd}
                with Ranks(fabric, 8, "loop_worker", "disagree", argument) as ranks:
                    for rank, result in enumerate(ranks.results()):
                        with self.subTest(rank=rank, even=even, odd=odd):
                            self.assertEqual(result["status"], -6, result)
                            self.assertIn("rank 5", result["text"])
                            self.assertGreaterEqual(result["text"].count("rank "), 2, result["text"])


if __name__ == "__main__":
    unittest.main()
