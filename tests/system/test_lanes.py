"""Several lanes of one job: channels along one tree, two roots, and two rails of every host."""

import os
import pathlib
import tempfile
import time
import unittest

from harness import Fabric, Ranks, RanksOnHosts, wait_until
from test_lab import Lab

MISMATCH, NODE, PEER, QUOTA = -6, -3, -7, -5
CUT = {"stripe_threshold": 4096}


class Channels(unittest.TestCase):
    def test_any_number_of_lanes_gives_the_same_bits(self):
        argument = {"seed": 3, "counts": [1, 900, 5_000, 70_000, 3], "iterations": 4}
        with Fabric() as fabric:
            said = {}
            for lanes in (1, 2, 3):
                with Ranks(fabric, 6, "lanes_worker", "sums", argument, {"lanes": lanes, **CUT}) as ranks:
                    said[lanes] = ranks.results()
        self.assertEqual(len({rank["bits"] for results in said.values() for rank in results}), 1)
        # Two of the five are cut, and every part counts.
        for lanes, results in said.items():
            counters = results[0]["counters"]
            operations = counters["operations_llt"] + counters["operations_sat"]
            self.assertEqual(operations, 4 * (3 + 2 * lanes), counters)
            # Joining takes one of its own.
            self.assertEqual(counters["groups_created"], 2)

    def test_random_collectives_over_three_lanes(self):
        argument = {"seed": 11, "number": 80, "most": 1 << 13, "shuffled": True, "shuffle_seed": 2}
        with Fabric() as fabric:
            digests = []
            for quota in ({}, {"lanes": 3, "stripe_threshold": 1000}):
                with Ranks(fabric, 8, "random_worker", "run", argument, quota) as ranks:
                    digests.append([result["digests"] for result in ranks.results(90)])
        self.assertEqual(*digests)

    def test_ranks_that_disagree_are_told_even_if_a_part_looks_like_a_whole(self):
        with Fabric() as fabric:
            for count in (1 << 10, 1 << 16):
                quota = {"lanes": 2, "stripe_threshold": 8 * count}
                with Ranks(fabric, 4, "lanes_worker", "halves", {"count": count, "rank": 2}, quota) as ranks:
                    for result in ranks.results(60):
                        self.assertIn(result["status"], (MISMATCH, PEER), result)
                        self.assertNotEqual(result["group"][0], 0, result)

    def test_more_than_there_is_is_refused_with_the_reason(self):
        # The tree of a local fabric is given: there is no other.
        for quota, reason in (({"lanes": 9}, "lanes = 9"), ({"lanes": 2, "trees": 2}, "trees = 2")):
            with Fabric() as fabric, Ranks(fabric, 2, "lanes_worker", "sums", {}, quota) as ranks:
                with self.assertRaises(AssertionError) as failed:
                    ranks.results(30)
                self.assertIn(reason, str(failed.exception))
                self.assertIn(f"{QUOTA}: the manager refused the job", str(failed.exception))


class Rails(unittest.TestCase):
    SIZE = 4 << 20

    def test_both_rails_carry_half_and_a_broken_one_is_everybodys_error(self):
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rails", "2", "--rate", "1gbit") as lab:
            self.each_carries_half(lab)
            self.same_bits(lab)
            self.broken(lab)

    def each_carries_half(self, lab):
        with tempfile.TemporaryDirectory() as folder:
            gates = {name: os.path.join(folder, name) for name in ("go", "end")}
            argument = {"bytes": self.SIZE, **gates}
            with RanksOnHosts(lab.name, 4, "network_worker", "allreduce", argument, {"lanes": 2, "trees": 2}) as ranks:
                wait_until(lambda: all(ranks.progress(r) == 1 for r in range(4)), 30, "ranks ready")
                before = lab.counters()
                pathlib.Path(gates["go"]).touch()
                wait_until(lambda: all(ranks.progress(r) == 2 for r in range(4)), 60, "operation done")
                after = lab.counters()
                pathlib.Path(gates["end"]).touch()
                ranks.results()
        half = self.SIZE / 2
        links = [f"{place}{rail}" for place in ("h0", "h1", "h2", "h3", "leaf0", "leaf1") for rail in ("", ".1")]
        for link in links:
            for way in ("up", "down"):
                carried = after[link, way][0] - before[link, way][0]
                self.assertGreater(carried, half, (link, way))
                self.assertLess(carried, 1.03 * half, (link, way))
        # Between the rails there is only what nodes say to the manager.
        self.assertLess(after["spine.1", "up"][0] - before["spine.1", "up"][0], 0.01 * half)

    def same_bits(self, lab):
        argument = {"seed": 5, "counts": [7, 3_000, 40_000], "iterations": 3}
        bits = set()
        for quota in ({"lanes": 1}, {"lanes": 2}, {"lanes": 4, "stripe_threshold": 100}):
            with RanksOnHosts(lab.name, 4, "lanes_worker", "sums", argument, quota) as ranks:
                bits |= {result["bits"] for result in ranks.results(60)}
        self.assertEqual(len(bits), 1)

    def broken(self, lab):
        with tempfile.TemporaryDirectory() as folder:
            signal = pathlib.Path(folder, "killed")
            argument = {"signal": str(signal), "counts": [5, 60_000, 400_000]}
            with RanksOnHosts(lab.name, 4, "lanes_worker", "until_error", argument, {"lanes": 2}) as ranks:
                wait_until(lambda: all(ranks.progress(r) > 3 for r in range(4)), 30, "operations run")
                lab.fault("kill", "--process", "leaf1.1")
                signal.touch()
                began = time.monotonic()
                results = ranks.results(60)
        self.assertLess(time.monotonic() - began, 20)
        for rank, result in enumerate(results):
            self.assertIn(result["status"], (NODE, PEER), (rank, result))
            self.assertIn(result["again"], (NODE, PEER), (rank, result))
            self.assertEqual(result["group"][0], result["again"], (rank, result))
        # Who was below the node knows which it was.
        self.assertIn(NODE, {result["status"] for result in results[2:]})


if __name__ == "__main__":
    unittest.main()
