"""The comparison on a tiny fabric: every system has its rows, even one that hangs or fails."""

import json
import os
import pathlib
import subprocess
import unittest

from harness import TRIB

ROW_KEYS = {
    "scenario", "system", "collective", "bytes", "mode", "ranks", "hosts", "status", "rounds", "latency_us", "mbit_s",
    "share_of_link", "spread", "cpu_us", "context_switches",
}


def processes():
    """Command lines of everything that runs."""
    lines = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                pass  # It ended meanwhile.
    return lines


class Compared(unittest.TestCase):
    """One comparison on two hosts; a class below says of which systems."""

    @classmethod
    def compare(cls, systems, *words):
        command = [
            TRIB, "bench", "compare", "--json", "--only", "allreduce,cost", "--hosts", "2", "--leaf-ports", "1", "--rate", "200mbit",
            "--patience", "0", "--sizes", "8,64K", "--rounds", "2", "--budget", "0.02", "--systems", systems, *words,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        if done.returncode == 3 and "namespace" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip().splitlines()[-1])
        if done.returncode != 0:
            raise AssertionError(f"compare failed with {done.returncode}:\n{done.stderr}")
        cls.outcome, cls.progress = json.loads(done.stdout), done.stderr

    def rows(self, **wanted):
        return [row for row in self.outcome["results"] if all(row[k] == v for k, v in wanted.items())]

    def check_rows(self, systems):
        self.assertEqual({row["system"] for row in self.outcome["results"]}, systems)
        for row in self.outcome["results"]:
            self.assertLessEqual(ROW_KEYS, row.keys())
            self.assertEqual((row["ranks"], row["hosts"]), (2, 2))


class Measured(Compared):
    @classmethod
    def setUpClass(cls):
        cls.compare("tributary,pingpong")

    def test_every_row_has_what_it_must(self):
        self.check_rows({"tributary", "pingpong"})
        self.assertLessEqual({"processor", "cores", "kernel", "scenarios"}, self.outcome["fabric"].keys())
        self.assertTrue(all({"what", "required", "measured", "met"} <= target.keys() for target in self.outcome["targets"]))

    def test_ours_is_measured(self):
        for size in (8, 65536):
            (row,) = self.rows(scenario="allreduce", system="tributary", bytes=size, mode="sustained")
            self.assertEqual((row["status"], row["rounds"], row["failures"]), ("ok", 2, 0))
            self.assertGreater(row["latency_us"], 0)
            self.assertAlmostEqual(row["mbit_s"], 8 * size / row["latency_us"], places=3)
            self.assertAlmostEqual(row["share_of_link"], row["mbit_s"] / 200, places=6)

    def test_bytes_on_the_links_are_counted(self):
        (row,) = self.rows(scenario="cost", system="tributary", bytes=65536)
        for way in ("host_up", "host_down"):
            self.assertGreater(row["wire_bytes_per_byte"][way], 1.0)
            # Not twice; a slow machine sends a segment again now and then.
            self.assertLess(row["wire_bytes_per_byte"][way], 1.8)
        self.assertGreater(row["cpu_ns_per_byte"]["leaf0"], 0)
        self.assertGreater(row["context_switches"], 0)


class Failing(Compared):
    """Peers of which nothing comes, with limits that are too short for others on a busy machine."""

    @classmethod
    def setUpClass(cls):
        cls.mark = f"86{os.getpid()}"
        peers = ["--peer", f"hangs=sleep {cls.mark}; :", "--peer", "fails=echo out of luck >&2; false"]
        cls.compare("hangs,fails", "--start-limit", "3", "--cell-limit", "1.5", *peers)

    def test_peers_that_hang_or_fail_are_reported(self):
        self.check_rows({"hangs", "fails"})
        for row in self.rows(system="hangs"):
            self.assertRegex(row["status"], "timeout after")
            self.assertIsNone(row["latency_us"])
        for row in self.rows(system="fails"):
            self.assertEqual(row["status"], "failed: out of luck")
        self.assertIn("gave no result", self.progress)

    def test_nothing_stays_behind(self):
        self.assertEqual([line for line in processes() if f"sleep {self.mark}" in line], [])


if __name__ == "__main__":
    unittest.main()
