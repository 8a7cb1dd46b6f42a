"""Links that carry streams and short datagrams, but not every datagram: no operation hangs, and the
error names both ends of the way."""

import json
import pathlib
import re
import tempfile
import unittest

from harness import RanksOnHosts
from test_lab import Lab

LONG = "datagrams of this job's length do not get through between {} and node {}, shorter ones do"
BLOCKED = "node {1} answers {0} on its connection, but not by datagram: is UDP blocked between them"
LOST = "{} asks node {} by datagram for a result that never gets there, however often the node sends it"
RANK_3 = r"rank 3 on h3 \(PID \d+\)"
#: Two ranks are below leaf1.
LEAF_1 = r"the node above rank 2 on h2 \(PID \d+\) to rank 3"


class NarrowNetwork(unittest.TestCase):
    def ends(self, lab, place, *change):
        """The errors of the ranks when `change` is made at a place after the first operation."""
        with tempfile.TemporaryDirectory() as folder:
            go = pathlib.Path(folder) / "go"
            with RanksOnHosts(lab.name, 4, "narrow_worker", "allreduce", {"go": str(go)}) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) == 1 for r in range(4)), 30, "a short operation")
                lab.run("exec", place, "--", *change)
                go.touch()
                return [(end["error"], end["seconds"]) for end in ranks.results(60)]

    def assert_named(self, ends, words, lower, upper):
        pattern = re.escape(words).replace(r"\{\}", "{}").replace(r"\{0\}", "{0}").replace(r"\{1\}", "{1}")
        for error, _ in ends:
            self.assertRegex(error or "no error", pattern.format(lower, upper))

    def test_the_errors_name_the_way(self):
        with Lab("--hosts", "4", "--leaf-ports", "2") as lab:
            device = json.loads(lab.run("exec", "h3", "--", "ip", "-j", "link", "show", "type", "veth").stdout)[0]["ifname"]
            # The kernel of h3 knows that the way is short.
            ends = self.ends(lab, "h3", "ip", "link", "set", "dev", device, "mtu", "1400")
            self.assert_named(ends, LONG, RANK_3, "leaf1")
            # At once; the others wait 5 or 10 s for what they see.
            self.assertLess(max(seconds for _, seconds in ends), 4)
            lab.run("exec", "h3", "--", "ip", "link", "set", "dev", device, "mtu", "9000")
            # A switch drops long frames between two nodes, and tells nobody.
            trunk = "leaf1"
            ends = self.ends(lab, "spine", "ip", "link", "set", "dev", trunk, "mtu", "1400")
            self.assert_named(ends, LONG, LEAF_1, "spine")
            lab.run("exec", "spine", "--", "ip", "link", "set", "dev", trunk, "mtu", "9000")
            # A firewall on a host: nothing gets out.
            lab.run("exec", "h3", "--", "nft", "add table inet wall; add chain inet wall out { type filter hook output priority 0; }")
            ends = self.ends(lab, "h3", "nft", "add rule inet wall out meta l4proto udp drop")
            self.assert_named(ends, BLOCKED, RANK_3, "leaf1")
            # Nothing gets in. The others have their results by then.
            lab.run("exec", "h3", "--", "nft", "flush table inet wall; add chain inet wall in { type filter hook input priority 0; }")
            ends = self.ends(lab, "h3", "nft", "add rule inet wall in meta l4proto udp drop")
            self.assert_named(ends[3:], LOST, RANK_3, "leaf1")


if __name__ == "__main__":
    unittest.main()
