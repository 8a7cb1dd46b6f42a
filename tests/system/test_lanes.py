"""Several lanes of one job: channels along one tree, by one port or by two, and two rails of every
host."""

import json
import pathlib
import tempfile
import time
import unittest

from carried import ONCE
from harness import TRIB, Fabric, Ranks, RanksOnHosts
from test_lab import Lab

MISMATCH, NODE, PEER, QUOTA = -6, -3, -7, -5
CUT = {"stripe_threshold": 4096}


def bytes_carried(lab, *arguments):
    """What one allreduce of four ranks puts on every link: {(link, way): bytes}."""
    return {link: count for link, (count, _) in lab.carried(4, *arguments).items()}


def sums(lab, quota, per_host=1):
    """What the ranks say, with so many of them on each of four hosts."""
    argument = {"seed": 5, "counts": [7, 3_000, 40_000], "iterations": 3}
    with RanksOnHosts(lab.name, 4 * per_host, "lanes_worker", "sums", argument, quota, per_host) as ranks:
        return ranks.results(60)


def bits(lab, quotas):
    """The results of the ranks with each of these quotas."""
    return {result["bits"] for quota in quotas for result in sums(lab, quota)}


class Channels(unittest.TestCase):
    def test_any_number_of_lanes_gives_the_same_bits(self):
        argument = {"seed": 3, "counts": [1, 900, 5_000, 70_000, 3], "iterations": 4}
        with Fabric() as fabric:
            said = {}
            for lanes in (1, 2, 3):
                with Ranks(fabric, 6, "lanes_worker", "sums", argument, {"lanes": lanes, **CUT}) as ranks:
                    said[lanes] = ranks.results()
        self.assertEqual(len({rank["bits"] for results in said.values() for rank in results}), 1)
        # Two of the five operations are cut, and every part counts as one.
        for lanes, results in said.items():
            counters = results[0]["counters"]
            operations = counters["operations_llt"] + counters["operations_sat"]
            self.assertEqual(operations, 4 * (3 + 2 * lanes), counters)
            # Joining the job takes one group of its own.
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
        # A local fabric has only one tree, which is the manager's to say; no job has nine lanes,
        # which the program says by itself.
        by_manager = f"{QUOTA}: the manager refused the job"
        for quota, *reasons in (({"lanes": 9}, "lanes = 9 is out of range"), ({"lanes": 2, "trees": 2}, "trees = 2", by_manager)):
            with Fabric() as fabric, Ranks(fabric, 2, "lanes_worker", "sums", {}, quota) as ranks:
                with self.assertRaises(AssertionError) as failed:
                    ranks.results(30)
                for reason in reasons:
                    self.assertIn(reason, str(failed.exception))


class Rails(unittest.TestCase):
    SIZE = 4 << 20

    def test_both_rails_carry_half_and_a_broken_one_is_everybodys_error(self):
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rails", "2", "--rate", "1gbit") as lab:
            self.each_carries_half(lab)
            self.same_bits(lab)
            self.same_bits_of_hosts_with_several_ranks(lab)
            self.broken(lab)

    def each_carries_half(self, lab):
        took = bytes_carried(lab, self.SIZE, {"lanes": 2, "trees": 2})
        half = self.SIZE / 2
        links = [f"{place}{rail}" for place in ("h0", "h1", "h2", "h3", "leaf0", "leaf1") for rail in ("", ".1")]
        for link in links:
            for way in ("up", "down"):
                self.assertGreater(took[link, way], half, (link, way))
                self.assertLess(took[link, way], ONCE * half, (link, way))
        # Between the rails there is nothing but what nodes say to the manager.
        self.assertLess(took["spine.1", "up"], 0.01 * half)

    def same_bits(self, lab):
        self.assertEqual(len(bits(lab, ({"lanes": 1}, {"lanes": 2}, {"lanes": 4, "stripe_threshold": 100}))), 1)

    def same_bits_of_hosts_with_several_ranks(self, lab):
        """On one lane these have boards; on several, a node of each lane's tree folds them."""
        quotas = ({}, {"lanes": 2, "trees": 2}, {"lanes": 4, "trees": 2, "stripe_threshold": 100}, {"recovery": "strict"})
        said = [sums(lab, quota, 2) for quota in quotas]
        self.assertEqual(len({result["bits"] for results in said for result in results}), 1)
        over_boards = [sum(result["counters"]["operations_board"] for result in results) for results in said]
        self.assertEqual([count > 0 for count in over_boards], [True, False, False, False], over_boards)

    def broken(self, lab):
        with tempfile.TemporaryDirectory() as folder:
            signal = pathlib.Path(folder, "killed")
            argument = {"signal": str(signal), "counts": [5, 60_000, 400_000]}
            with RanksOnHosts(lab.name, 4, "lanes_worker", "until_error", argument, {"lanes": 2, "deputies": 0}) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 3 for r in range(4)), 30, "operations run")
                lab.fault("kill", "--process", "leaf1.1")
                signal.touch()
                began = time.monotonic()
                results = ranks.results(60)
        self.assertLess(time.monotonic() - began, 20)
        for rank, result in enumerate(results):
            self.assertEqual((result["status"], result["again"], result["group"][0]), (NODE, NODE, NODE), (rank, result))
            self.assertIn("node leaf1.1", result["text"], (rank, result))


class Ports(unittest.TestCase):
    SIZE = 4 << 20

    def test_each_of_two_ports_carries_half_into_one_tree(self):
        with Lab("--hosts", "4", "--leaf-ports", "2", "--ports", "2", "--rate", "1gbit") as lab:
            took = bytes_carried(lab, self.SIZE, {"lanes": 2}, lambda: self.shown(lab))
            half = self.SIZE / 2
            for host in ("h0", "h1", "h2", "h3"):
                for link in (host, f"{host}.1"):
                    for way in ("up", "down"):
                        self.assertGreater(took[link, way], half, (link, way))
                        self.assertLess(took[link, way], ONCE * half, (link, way))
            # Both lanes fold in the same node, so that the vector goes on once.
            for leaf in ("leaf0", "leaf1"):
                for way in ("up", "down"):
                    self.assertGreater(took[leaf, way], self.SIZE, (leaf, way))
                    self.assertLess(took[leaf, way], ONCE * self.SIZE, (leaf, way))
            self.assertEqual(len(bits(lab, ({"lanes": 1}, {"lanes": 2}, {"lanes": 3, "stripe_threshold": 100}))), 1)

    def shown(self, lab):
        def tool(*words):
            return lab.run("exec", "h0", "--", TRIB, *words).stdout

        status = json.loads(tool("status", "--json"))
        (job,) = status["jobs"]
        self.assertEqual([lane["tree"] for lane in job["lanes"]], [0, 0])
        self.assertEqual([lane["from"] for lane in job["lanes"]], ["10.77.128.1", "10.78.128.1"])
        self.assertEqual([lane["to"] for lane in job["lanes"]], ["10.77.2.1", "10.78.2.1"])
        ports = {node["name"]: [node["address"], *node["further"]] for node in status["nodes"]}
        self.assertEqual([address.split(":")[0] for address in ports["spine"]], ["10.77.0.1", "10.78.0.1"])
        words = tool("explain", str(job["id"]))
        self.assertIn("which lanes 0, 1 share, 3 logical nodes; rank 0 goes from 10.78.128.1 to 10.78.2.1", words)


if __name__ == "__main__":
    unittest.main()
