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


if __name__ == "__main__":
    unittest.main()
