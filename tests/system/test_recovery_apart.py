"""Hosts that reach the nodes and not one another: a job goes on at backups, and where only its ranks are
left, which nobody reaches, it ends with a name."""

import os
import pathlib
import tempfile
import unittest

from harness import RanksOnHosts
from test_lab import Lab

#: How long a rank looks for a candidate of a node.
TIMEOUT_MS = 8000


class HostsApart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = cls.enterClassContext(Lab("--hosts", "4", "--leaf-ports", "2", "--backups", "1"))
        cls.lab.fault("isolate-hosts")
        os.environ["TRIB_TIMEOUT_MS"] = str(TIMEOUT_MS)
        cls.addClassCleanup(os.environ.pop, "TRIB_TIMEOUT_MS")

    def test_a_job_goes_on_at_a_backup(self):
        with tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            argument = {"counts": [5, 9000, 100_000], "stop": str(stop)}
            with RanksOnHosts(self.lab.name, 4, "loop_worker", "loop", argument) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                self.lab.fault("kill", "--process", "leaf0")
                before = ranks.progress(0)
                ranks.reach(lambda: ranks.progress(0) > before + 5, 60, "operations after it")
                stop.touch()
                results = ranks.results(60)
        self.lab.fault("start", "--process", "leaf0")
        self.assertEqual(len({result["digest"] for result in results}), 1)
        self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results), results)

    def test_ranks_that_nobody_reaches_are_no_candidates_for_ever(self):
        with tempfile.TemporaryDirectory() as folder:
            signal = pathlib.Path(folder) / "signal"
            argument = {"counts": [5], "signal": str(signal)}
            with RanksOnHosts(self.lab.name, 4, "loop_worker", "until_error", argument, {"dead_after_ms": 5000}) as ranks:
                ranks.reach(lambda: all(ranks.progress(rank) > 5 for rank in range(4)), 30, "first operations")
                for name in ("leaf0", "leaf1", "spine"):
                    self.lab.fault("kill", "--process", name)
                signal.touch()
                ends = ranks.results(90)
        for name in ("spine", "leaf0", "leaf1"):
            self.lab.fault("start", "--process", name)
        for rank, end in enumerate(ends):
            print(f"rank {rank} after {end['after']:.1f} s: {end['text']}")
            self.assertRegex(end["text"], r"leaf[01]|spine", f"rank {rank}")


if __name__ == "__main__":
    unittest.main()
