"""The network plugin for NCCL, with ranks that play NCCL's part: messages between two ranks over
TCP, allreduces of all ranks through the tree, and what can go wrong. `make test-gpu` has NCCL itself."""

import contextlib
import pathlib
import re
import signal
import tempfile
import unittest

from harness import BUILD, Fabric, Ranks, send
from nccl_plugin import ARGUMENT, INTERNAL, OPTIONAL, REMOTE, USAGE, VERSIONS

LIBRARY = str(BUILD / "libnccl-net-tributary.so")
LOOPBACK = {"NCCL_SOCKET_IFNAME": "lo"}


@contextlib.contextmanager
def started(function, ranks, fabric=None, version=11, env=None):
    with tempfile.TemporaryDirectory(prefix="trib-nccl-") as folder:
        argument = {"library": LIBRARY, "folder": folder, "version": version}
        with Ranks(fabric, ranks, "nccl_worker", function, argument, env={**LOOPBACK, **(env or {})}) as running:
            running.argument = argument
            yield running


def run(*arguments, **named):
    with started(*arguments, **named) as ranks:
        return ranks.results()


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric()
        cls.addClassCleanup(cls.fabric.__exit__)

    def test_every_version_describes_the_same_device(self):
        (found,) = run("described", 1, self.fabric)
        self.assertEqual(len(found), 2 * len(VERSIONS))
        for which, table in found.items():
            self.assertEqual(table["name"], "tributary", which)
            self.assertLessEqual(set(table["absent"]), OPTIONAL, which)
            told = table["properties"]
            wanted = {
                "name": "lo", "pciPath": None, "guid": 0, "ptrSupport": 1, "regIsGlobal": 0, "forceFlush": 0, "port": 0,
                "latency": 0.0, "maxComms": 65536, "maxRecvs": 1, "netDeviceType": 0, "ndevs": 1, "maxP2pBytes": 1 << 30,
                "maxCollBytes": 512 << 20, "maxMultiRequestSize": 1, "railId": -1, "planeId": -1,
            }
            self.assertEqual({field: told[field] for field in wanted if field in told}, {k: v for k, v in wanted.items() if k in told}, which)
            self.assertGreater(told["speed"], 0)
            self.assertIn(told["devs"], (None, [0] * 4, [0] * 8))

    def test_messages(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                for found in run("messages", 2, self.fabric, version):
                    self.assertGreater(found["moved"], 5 << 20)
                    self.assertIn("messages between ranks go by TCP over lo 127.0.0.1", " ".join(found["log"]))

    def test_messages_round_three_ranks(self):
        self.assertEqual(len(run("messages", 3, self.fabric)), 3)

    def test_messages_that_fail(self):
        first, second = run("broken_messages", 2, self.fabric)
        for found in (first, second):
            self.assertEqual(found["garbage"][0], USAGE, found)
            self.assertIn("all ranks have to use the same network plugin", found["garbage"][1])
            self.assertEqual(found["no_device"][0], INTERNAL, found)
            self.assertEqual(found["gpu"][0], INTERNAL, found)
            self.assertEqual(found["two_buffers"][0], INTERNAL, found)
            self.assertEqual(found["too_long"][0], REMOTE, found)
            self.assertIn("sends 9 bytes into a buffer of 8", found["too_long"][1])
            self.assertEqual(found["afterwards"][0], REMOTE, found)
        self.assertEqual(second["gone"][0], REMOTE)
        self.assertIn("closed the connection", second["gone"][1])
        self.assertEqual(second["cut_off"][0], REMOTE)

    def test_allreduces(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                before = self.folded()
                for found in run("allreduces", 2, self.fabric, version):
                    self.assertEqual((found["done"], found["again"]), (10 * 4 + 32, 1))
                    self.assertEqual(found["gpu"][0], INTERNAL, found)
                    self.assertEqual(found["fp8"][0], ARGUMENT, found)
                    self.assertIn("CollNet: 72 allreduces of ", " ".join(found["log"]))
                # The 32 float vectors of each rank alone are this many bytes.
                self.assertGreater(self.folded() - before, 2 * 4 * 4 * 700_000)

    def test_allreduces_of_three_ranks(self):
        self.assertEqual([found["done"] for found in run("allreduces", 3, self.fabric)], [72] * 3)

    def test_sums_that_depend_on_no_order_leave_products_of_floats_to_nccl(self):
        without = [[1, int(dtype < 6), 1, 1] for dtype in range(10)]
        for sums in ("fixed", "exact"):
            for found in run("sums", 2, self.fabric, env={"TRIB_SUMS": sums}):
                self.assertEqual((found["supported"], found["is_right"]), (without, True), sums)

    def test_sums_are_never_quantised(self):
        for found in run("sums", 2, self.fabric, env={"TRIB_SUMS": "int8"}):
            self.assertEqual((found["supported"], found["is_right"]), ([[1] * 4] * 10, True))
            self.assertIn("TRIB_SUMS=int8 is not for CollNet", " ".join(found["log"]))

    def test_an_abort_touches_no_memory_that_was_given_back(self):
        first, *others = run("aborted", 3, self.fabric)
        self.assertTrue(first["untouched"])
        self.assertNotEqual(first["failure"][0], 0, first)
        self.assertEqual([found["failure"][0] for found in others], [REMOTE] * 2, others)

    def test_memory_without_a_handle(self):
        for found in run("unregistered", 2, self.fabric):
            self.assertEqual(found["failure"][0], ARGUMENT, found)
            self.assertIn("NCCL_GRAPH_REGISTER=0", found["failure"][1])
            self.assertTrue(found["is_right"])

    def test_ranks_of_one_host(self):
        """Heads of hosts never share one, but what names hosts may say so."""
        with Fabric(shared_host=True) as fabric:
            for found in run("allreduces", 2, fabric):
                self.assertEqual(found["done"], 72)
            first, *others = run("aborted", 3, fabric)
            self.assertTrue(first["untouched"])
            self.assertTrue(all(found["failure"][0] for found in others), others)

    def test_a_node_that_dies_is_not_noticed(self):
        for victim, number in (("leaf0", signal.SIGKILL), ("root", signal.SIGKILL)):
            with self.subTest(victim=victim), Fabric(backups=1) as fabric:
                with started("endless", 2, fabric) as ranks:
                    ranks.reach(lambda: all(ranks.progress(rank) > 20 for rank in range(2)), 60, "first sums")
                    send(fabric.processes()[victim], number)
                    (pathlib.Path(ranks.argument["folder"]) / "stop").touch()
                    for found in ranks.results():
                        self.assertGreater(found["done"], 20)
                        self.assertRegex(" ".join(found["log"]), "it went on without a node [1-9]")

    def test_without_a_manager_there_is_no_collnet(self):
        for found in run("without_fabric", 2, env={"TRIB_MANAGER": ""}):
            self.assertEqual(found["devices"], 0)
            self.assertIn("CollNet is absent, because TRIB_MANAGER is not set", " ".join(found["log"]))

    def test_a_manager_that_is_not_there_is_told(self):
        # Nobody listens at this port.
        manager = re.sub(r"//[^?]*", "//127.0.0.1:9", self.fabric.manager)
        for found in run("without_fabric", 2, env={"TRIB_MANAGER": manager, "TRIB_TIMEOUT_MS": "1500"}):
            self.assertEqual(found["devices"], 1)
            self.assertNotEqual(found["join"][0], 0, found)
            self.assertIn("127.0.0.1:9", found["join"][1])

    def folded(self):
        return sum(counters["payload_bytes_folded"] for counters in self.fabric.node_counters().values())


if __name__ == "__main__":
    unittest.main()
