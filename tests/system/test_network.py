"""Hosts with links of their own: what travels on them, and what does not travel between ranks.
This runs inside `trib lab up`."""

import json
import os
import subprocess
import sys
import unittest

from carried import ONCE, least_carried
from harness import PYTHON, TRIB, RanksOnHosts

S = 16 << 20


class Lab:
    """What the laboratory around this process offers."""

    @staticmethod
    def call(*words):
        return subprocess.run([TRIB, "lab", *words], check=True, capture_output=True, text=True, timeout=30).stdout

    @staticmethod
    def counters():
        """{(link, direction): (bytes on the wire,)}."""
        links = json.loads(Lab.call("counters", "--json"))["links"]
        return {(link["link"], link["direction"]): (link["wire_bytes"],) for link in links}

    @staticmethod
    def isolated():
        """Packets between hosts that switches have dropped."""
        faults = json.loads(Lab.call("fault", "list", "--json"))["faults"]
        return sum(fault["packets"] for fault in faults if fault["kind"] == "isolate_hosts")


class Network(unittest.TestCase):
    def carried(self, function, argument):
        """The least that each host's link carries for one operation: (sent, received) by host."""
        least = least_carried(None, Lab.counters, 4, function, argument)
        return [tuple(least[f"h{host}", way][0] for way in ("up", "down")) for host in range(4)]

    def test_collectives_go_on_while_nothing_travels_between_hosts(self):
        Lab.call("fault", "isolate-hosts")
        try:
            call = "import socket; socket.create_connection(('h1', 9), 0.5)"
            refused = subprocess.run([TRIB, "lab", "exec", "h0", "--", PYTHON, "-c", call], capture_output=True, text=True)
            self.assertIn("timed out", refused.stderr, "hosts still reach each other")
            self.assertGreater(Lab.isolated(), 0)
            with RanksOnHosts(None, 4, "loop_worker", "loop", {"counts": [5, 300, 40_000], "iterations": 30}) as ranks:
                results = ranks.results()
            self.assertEqual({r["iterations"] for r in results}, {30})
            self.assertEqual(len({r["digest"] for r in results}), 1)
        finally:
            Lab.call("fault", "clear")

    def test_a_reduce_brings_its_non_roots_next_to_nothing(self):
        for host, (sent, received) in enumerate(self.carried("reduce", {"bytes": S, "root": 1})):
            self.assertGreater(sent, S)
            self.assertLess(sent, ONCE * S)
            if host != 1:
                self.assertLess(received, 0.02 * S, f"host {host} received {received / S:.2%} of S")
            else:
                self.assertGreater(received, S)

    def test_a_bcast_takes_next_to_nothing_from_its_non_roots(self):
        for host, (sent, received) in enumerate(self.carried("bcast", {"bytes": S, "root": 2})):
            if host != 2:
                self.assertLess(sent, 0.02 * S, f"host {host} sent {sent / S:.2%} of S")
                self.assertGreater(received, S)
            else:
                self.assertLess(received, 0.02 * S)

    def test_a_reduce_scatter_brings_one_nth_down(self):
        for host, (sent, received) in enumerate(self.carried("reduce_scatter", {"bytes": S})):
            self.assertGreater(received, S / 4)
            self.assertLess(received, S / 4 + 0.03 * S, f"host {host} received {received / S:.2%} of S")
            self.assertLess(sent, ONCE * S)

    def test_an_allreduce_moves_the_vector_once_each_way(self):
        for host, (sent, received) in enumerate(self.carried("allreduce", {"bytes": S})):
            for what, carried in (("sent", sent), ("received", received)):
                self.assertLess(carried, ONCE * S, f"host {host} {what} {carried / S:.3f} S")
            print(f"host {host}: sent {sent / S:.4f} S, received {received / S:.4f} S (mtu 1500)")


if __name__ == "__main__":
    if "TRIB_LAB" not in os.environ:
        up = [str(TRIB), "lab", "up", "--hosts", "4", "--leaf-ports", "2", "--rate", "10gbit", "--mtu", "1500"]
        name = f"test-network-{os.getpid()}"
        os.execv(up[0], [*up, "--name", name, "--", PYTHON, *sys.argv])
    unittest.main()
