"""Datagrams of real processes are lost, doubled and reordered: the bits are right, and nothing
hangs."""

import unittest

from harness import Fabric, Ranks

from test_random_collectives import RANKS

FAULTS = {"TRIB_FAULT_UDP": "loss=0.10,dup=0.05,reorder=0.05,seed=7"}


class LossyNetwork(unittest.TestCase):
    def test_right_bits(self):
        argument = {"seed": 3, "number": 60, "most": 1 << 14, "shuffled": True, "shuffle_seed": 5}
        quota = {"stream_threshold": 1 << 40}
        runs = []
        for env in ({}, FAULTS):
            with Fabric(env=env) as fabric, Ranks(fabric, RANKS, "random_worker", "run", argument, quota, env) as ranks:
                runs.append(ranks.results(timeout=180))
        clean, faulty = runs
        for rank in range(RANKS):
            self.assertEqual(faulty[rank]["digests"], clean[rank]["digests"], f"rank {rank}")
        self.assertGreater(sum(r["counters"]["retransmissions"] for r in faulty), 50)


if __name__ == "__main__":
    unittest.main()
