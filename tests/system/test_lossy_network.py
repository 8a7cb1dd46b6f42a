"""Datagrams of real processes are lost, doubled and reordered: the bits are right, and nothing
hangs."""

import json
import subprocess
import unittest

from daemons import TWO_LEVELS, Watched
from harness import TRIB, Ranks

from test_random_collectives import RANKS

ALLOWED = TWO_LEVELS.replace('name = "watched"', 'name = "lossy"\nfaults = true')
FAULTS = {"TRIB_FAULT_UDP": "loss=0.10,dup=0.05,reorder=0.05,seed=7"}


class LossyNetwork(unittest.TestCase):
    def run_with(self, topology, env, number):
        """What the ranks say, and the datagrams that the nodes lost on purpose."""
        argument = {"seed": 3, "number": number, "most": 1 << 14, "shuffled": True, "shuffle_seed": 5}
        quota = {"stream_threshold": 1 << 40}
        with Watched(topology=topology, env=env) as fabric:
            fabric.manager = fabric.url
            with Ranks(fabric, RANKS, "random_worker", "run", argument, quota, env) as ranks:
                results = ranks.results(timeout=180)
            status = [TRIB, "status", "--json", "--manager", fabric.url]
            nodes = json.loads(subprocess.run(status, capture_output=True, text=True, timeout=60, check=True).stdout)["nodes"]
        return results, sum(node["counters"].get("datagram_fault_lost", 0) for node in nodes)

    def test_right_bits(self):
        clean, none = self.run_with(ALLOWED, {}, 60)
        faulty, lost = self.run_with(ALLOWED, FAULTS, 60)
        for rank in range(RANKS):
            self.assertEqual(faulty[rank]["digests"], clean[rank]["digests"], f"rank {rank}")
        self.assertEqual(none, 0)
        self.assertGreater(lost, 50)
        self.assertGreater(sum(r["counters"]["retransmissions"] for r in faulty), 50)

    def test_where_the_operator_does_not_say_so_nothing_is_lost_on_purpose(self):
        _, lost = self.run_with(TWO_LEVELS, FAULTS, 10)
        self.assertEqual(lost, 0)


if __name__ == "__main__":
    unittest.main()
