"""A rank is 120 s late: no rank fails, and waiting costs next to nothing."""

import os
import unittest

from harness import Fabric, Ranks

SECONDS = int(os.environ.get("TRIB_TEST_LATE_SECONDS", "120"))


class LateRank(unittest.TestCase):
    def test_waiting_is_cheap(self):
        argument = {"rank": 3, "seconds": SECONDS}
        with Fabric() as fabric, Ranks(fabric, 8, "loop_worker", "late", argument) as ranks:
            results = ranks.results(timeout=SECONDS + 60)
        for rank, result in enumerate(results):
            self.assertGreater(result["elapsed"], SECONDS - 1)
            if not result["late"]:
                self.assertLess(result["packets"] / result["elapsed"], 50, f"rank {rank}: packets a second")
                self.assertLess(result["cpu"] / result["elapsed"], 0.01, f"rank {rank}: share of a CPU")
        waiters = [r for r in results if not r["late"]]
        packets = max(r["packets"] / r["elapsed"] for r in waiters)
        cpu = max(r["cpu"] / r["elapsed"] for r in waiters)
        print(f"waiting costs at most {packets:.1f} packets/s and {cpu:.2%} of a CPU")

    def test_a_rank_that_has_waited_for_seconds_does_its_other_work(self):
        """Waiting lasts until its own runtime has done 4,000 pieces of work, each of which comes with a
        call of its progress function. A rank with a pause of 20 ms before each call would sleep for 80 s."""
        with Fabric() as fabric, Ranks(fabric, 2, "loop_worker", "late_with_work", {"after": 5, "pieces": 4000}) as ranks:
            slept = ranks.results(timeout=300)[0]["slept"]
        print(f"a rank slept for {slept:.2f} s beside 0.4 s of its other work")
        self.assertLess(slept, 40)


if __name__ == "__main__":
    unittest.main()
