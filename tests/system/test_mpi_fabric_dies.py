"""The fabric dies in the middle of an application, a node, the manager or all nodes, under the component for Open MPI and under the
preloaded library: every solution of the application has the bits of the first."""

import json
import pathlib
import signal
import tempfile
import unittest

import test_mpi
from harness import Fabric, send, wait_until
from test_mpi import COMPONENT, PROGRAMS

setUpModule, tearDownModule = test_mpi.setUpModule, test_mpi.tearDownModule

RANKS = 4
WAYS = ("component", "preload") if (COMPONENT / "mca_coll_tributary.so").exists() else ("preload",)
#: Collectives of each rank that are done before the fabric dies, and after that.
BEFORE, AFTER = 300, 600


class FabricDies(test_mpi.Programs):
    def play(self, victims):
        """The reports of an application, one for each way, while those of the fabric's processes that `victims` names die."""
        for through in WAYS:
            with self.subTest(through=through), Fabric() as fabric, tempfile.TemporaryDirectory(prefix="trib-test-") as name:
                folder = pathlib.Path(name)
                mpi = test_mpi.Mpi(fabric, RANKS, PROGRAMS / "conjugate_gradient", folder, through=through)
                self.await_collectives(folder, BEFORE)
                processes = fabric.processes()
                for process in victims(processes):
                    send(processes[process], signal.SIGKILL)
                self.await_collectives(folder, self.done(folder) + AFTER)
                (folder / "stop").touch()
                _, err, report = self.good(mpi, 120)
                for rank in range(RANKS):
                    self.assertEqual(json.loads((folder / f"{rank}.json").read_text())["wrong"], 0, err)
                for call in ("Allreduce", "Reduce", "Bcast", "Allgather", "Barrier", "Reduce_scatter_block"):
                    self.assertEqual(report["collectives"][f"MPI_{call}"]["mpi"], {}, err)
                yield report

    def done(self, folder):
        file = folder / "progress"
        return int.from_bytes(file.read_bytes(), "little") if file.exists() else 0

    def await_collectives(self, folder, count):
        wait_until(lambda: self.done(folder) >= count, 100, f"{count} collectives")

    def test_a_node_dies(self):
        for report in self.play(lambda processes: ["leaf0"]):
            self.assertGreater(report["counters"]["epochs"], 0, report)

    def test_all_nodes_die(self):
        for report in self.play(lambda processes: [name for name in processes if name != "manager"]):
            self.assertGreater(report["counters"]["epochs"], 0, report)

    def test_the_manager_dies(self):
        for report in self.play(lambda processes: ["manager"]):
            self.assertEqual(report["counters"]["epochs"], 0, report)


if __name__ == "__main__":
    unittest.main()
