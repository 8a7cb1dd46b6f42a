"""The modes of the data path: what each lets an attacker on the path do, and right sums in all of them, with
groups, datagrams and streams, and after a node is killed."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hostile"))

import on_path  # noqa: E402
from harness import TRIB, Fabric, Ranks, RanksOnHosts, rank_env  # noqa: E402
from test_lab import Lab  # noqa: E402
from test_mpi import PROGRAMS, Mpi, Programs, setUpModule, tearDownModule  # noqa: E402, F401
from test_random_collectives import RANKS, expected  # noqa: E402
from test_sharp_coll_test import mpirun  # noqa: E402

MODES = ["checked", "signed", "encrypted"]
SEALING = MODES[1:]
#: All edges over the network: those between nodes of a local fabric are anyway.
APART = {"TRIB_SHARED_MEMORY": "off"}


def quota(mode, **more):
    return {"data_path": mode, "levels": "none", **more}


@unittest.skipUnless(os.geteuid() == 0, "a network namespace and a packet filter take root")
class OnPath(unittest.TestCase):
    """An attacker between rank 0 and its node, who has no key."""

    @classmethod
    def setUpClass(cls):
        on_path.apart()

    def attacked(self, mode, change, **more):
        """What each rank says of one sum; what the node's log says; what has passed. A rank without its
        edge waits for others as long as a silent one may be."""
        patience = {"heartbeat_ms": 500, "dead_after_ms": 2000}
        argument = {"text": on_path.TEXT.decode(), "bytes": 1 << 20}
        with Fabric() as fabric, on_path.OnPath(on_path.port_of(fabric, "leaf0"), change) as proxy:
            with Ranks(fabric, 2, "on_path_worker", "sums", argument, quota(mode, **patience, **more), APART) as ranks:
                told = ranks.results()
            log = (fabric.folder() / "leaf0.log").read_text()
        return told, log, proxy

    def test_a_flipped_bit_of_a_stream_is_a_wrong_sum_at_every_rank_in_checked(self):
        # The weakness of this mode, as docs/security.md tells it.
        change = on_path.Flip()
        told, log, _ = self.attacked("checked", change)
        self.assertTrue(change.done)
        self.assertEqual(told, [{"wrong": 1, "error": None}] * 2)
        self.assertNotIn("bad frame", log)

    def test_a_flipped_bit_or_a_recorded_frame_ends_the_connection_and_no_wrong_sum_is_delivered(self):
        for mode in SEALING:
            for change in (on_path.Flip(), on_path.Replay()):
                with self.subTest(mode=mode, change=type(change).__name__):
                    told, log, _ = self.attacked(mode, change)
                    self.assertTrue(change.done)
                    for rank in told:
                        self.assertIsNone(rank["wrong"], "no sum at all")
                        self.assertIn("died or lost its connection", rank["error"])
                    self.assertIn("bad frame", log)

    def test_what_is_encrypted_cannot_be_read_on_the_way(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                told, _, proxy = self.attacked(mode, None)
                self.assertEqual(told, [{"wrong": 0, "error": None}] * 2)
                passed = proxy.read()
                self.assertGreaterEqual(len(passed), 2 << 20, "the vector has passed, up and down")
                self.assertEqual(on_path.TEXT in passed, mode != "encrypted")


class Sums(unittest.TestCase):
    ARGUMENT = {"counts": [1, 300, 5000, 300_000], "iterations": 6}

    def test_sums_are_right_and_their_bits_the_same_in_all_modes(self):
        argument = {"seed": 5, "counts": [3, 700, 9000, 200_000], "iterations": 4}
        with Fabric() as fabric:
            digests = set()
            for mode in MODES:
                with Ranks(fabric, 4, "loop_worker", "floats", argument, quota(mode), APART) as ranks:
                    digests.update(result["digest"] for result in ranks.results())
                with Ranks(fabric, 4, "loop_worker", "loop", self.ARGUMENT, quota(mode), APART) as ranks:
                    counters = [result["counters"] for result in ranks.results()]
                self.assertTrue(all(count["operations_llt"] > 0 and count["operations_sat"] > 0 for count in counters))
            self.assertEqual(len(digests), 1)

    def test_every_collective_with_groups_and_random_vectors(self):
        for mode in SEALING:
            with self.subTest(mode=mode), Fabric() as fabric:
                argument = {"seed": 21, "number": 60, "most": 4000, "shuffled": False, "shuffle_seed": 21}
                words = [str(TRIB), "bench", "--ranks", "5", "--collective", "all", "--max", "300K", "--factor", "7", "--iterations", "3"]
                done = subprocess.run(words, env=rank_env(fabric, quota(mode), APART), capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                with Ranks(fabric, RANKS, "random_worker", "run", argument, quota(mode), APART) as ranks:
                    results = ranks.results()
                for want, result in zip(expected(21, 60, 4000), results):
                    self.assertEqual({call: result["digests"].get(call) for call in want}, want)

    def test_a_killed_node_is_replaced_and_the_sums_stay_right(self):
        for mode in SEALING:
            with self.subTest(mode=mode), Fabric() as fabric:
                argument = {"counts": [40, 100_000], "iterations": 1 << 30, "stop": str(fabric.folder() / "stop"), "pause": 0.01}
                with Ranks(fabric, 4, "loop_worker", "loop", argument, quota(mode), APART) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 3, 60, "operations go on")
                    os.kill(fabric.processes()["leaf0"], signal.SIGKILL)
                    at = ranks.progress(0)
                    ranks.reach(lambda: ranks.progress(0) > at + 10, 60, "operations go on elsewhere")
                    pathlib.Path(argument["stop"]).touch()
                    results = ranks.results()
                self.assertEqual(len({result["digest"] for result in results}), 1)
                self.assertTrue(any(result["counters"]["epochs"] > 0 for result in results))

    def test_explain_tells_the_mode_and_what_each_edge_does(self):
        # The ranks of each host are below a node in one of them, and share its memory.
        with Fabric(shared_host=True) as fabric:
            argument = {"counts": [40], "iterations": 1 << 30, "stop": str(fabric.folder() / "stop"), "pause": 0.02}
            with Ranks(fabric, 4, "loop_worker", "loop", argument, {"data_path": "encrypted"}, hosts=["a", "b"]) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 1, 60, "operations go on")
                job = str(fabric.status()["jobs"][0]["id"])

                def explained(*more):
                    env = {**os.environ, "TRIB_MANAGER": fabric.manager}
                    return subprocess.run([TRIB, "explain", job, *more], env=env, capture_output=True, text=True, timeout=30).stdout

                text, told = explained(), json.loads(explained("--json"))
                pathlib.Path(argument["stop"]).touch()
                ranks.results()
        self.assertIn("data path encrypted: 4 edges encrypted, 4 edges in memory of the host", text)
        self.assertEqual(told["job"]["limits"]["mode"], "encrypted")
        ways = sorted(child["protection"] for hosted in told["parts"] for child in hosted["part"]["children"])
        self.assertEqual(ways, ["encrypted"] * 4 + ["memory"] * 4)

    def test_a_mode_that_does_not_exist_is_refused_with_those_that_do(self):
        with Fabric() as fabric:
            env = rank_env(fabric, {"data_path": "secret"})
            done = subprocess.run([TRIB, "bench", "--ranks", "2", "--max", "8"], env=env, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("checked, signed or encrypted", done.stderr)


class Clients(Programs):
    """Who asks by the environment, through other interfaces."""

    def asked(self, mode):
        return {"TRIB_QUOTA": f"data_path={mode},levels=none", **APART}

    def test_libsharp_coll(self):
        options = ["-m", "basic", "-c", "all", "-T", "float", "-s", "8:65536", "-i", "3", "--json"]
        with Fabric() as fabric:
            for mode in SEALING:
                with self.subTest(mode=mode):
                    done = mpirun(3, *options, fabric=fabric, env=self.asked(mode))
                    self.assertEqual(done.returncode, 0, done.stderr[-2000:])
                    found = json.loads(done.stdout.splitlines()[0])
                    self.assertEqual((found["wrong"], found["through"]), (0, "libsharp_coll"))
            refused = mpirun(3, *options, fabric=fabric, env=self.asked("secret"))
            self.assertIn("checked, signed or encrypted", refused.stderr)

    def test_mpi(self):
        with Fabric() as fabric:
            for mode in SEALING:
                with self.subTest(mode=mode):
                    mpi = Mpi(fabric, 4, PROGRAMS / "collectives_check", env=self.asked(mode), through="component")
                    _, _, report = self.good(mpi)
                    self.assertGreater(self.tree(report), 0)


class OverNetwork(unittest.TestCase):
    """Nodes that reach each other over a network, too."""

    def test_edges_between_nodes_are_sealed(self):
        with Lab("--hosts", "4", "--leaf-ports", "2") as lab:
            for mode in MODES:
                with self.subTest(mode=mode):
                    argument = {"seed": 5, "counts": [3, 700, 200_000], "iterations": 3}
                    with RanksOnHosts(lab.name, 4, "loop_worker", "floats", argument, quota(mode)) as ranks:
                        self.assertEqual(len({result["digest"] for result in ranks.results()}), 1)


if __name__ == "__main__":
    unittest.main()
