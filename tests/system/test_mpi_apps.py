"""What applications have shown of Open MPI's component and the preloaded library: how long calls
take, and communicators that go early."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD, PYTHON, ROOT, Fabric

LATE = 0.5
#: The last rank comes late to a barrier, which the tree may take, and to an alltoallv, which it
#: does not; then a tree is made. A loaded machine may hold up the others, too, so the last one
#: begins to be late when they have come.
PROGRAM = f"""
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
last = world.size - 1
for call in (world.Barrier, lambda: world.Alltoallv([bytes(world.size), MPI.BYTE], [bytearray(world.size), MPI.BYTE]), lambda: world.Dup().Barrier()):
    if world.rank == last:
        for other in range(last):
            world.recv(source=other)
        time.sleep({LATE})
    else:
        world.send(None, dest=last)
    call()
"""
#: The last rank comes late to communicators that live one after the other, and to one of two ranks.
#: Then an operator is slow, which is no waiting.
PROFILED = f"""
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
for _ in range(2):
    dup = world.Dup()
    time.sleep({LATE} if world.rank == 2 else 0)
    dup.Barrier()
    dup.Free()
pair = world.Split(world.rank == 0)
time.sleep({LATE} if world.rank == 2 else 0)
if world.rank > 0:
    pair.Alltoall([bytes(2), MPI.BYTE], [bytearray(2), MPI.BYTE])
slow = MPI.Op.Create(lambda give, take, _: time.sleep({LATE}))
world.Allreduce([bytes(1), MPI.BYTE], [bytearray(1), MPI.BYTE], slow)
"""
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
COMPONENT = {
    "OMPI_MCA_mca_base_component_path": f"SYSTEM_DEFAULT:{BUILD / 'tributary/openmpi'}:USER_DEFAULT", "OMPI_MCA_coll_tributary_enable": "1",
}
PROGRAMS = pathlib.Path(tempfile.gettempdir()) / f"trib-tests-mpi-{os.getpid()}"


def setUpModule():
    make = ["make", "-s", "-C", ROOT / "tests/mpi", f"BUILD={PROGRAMS}", *(PROGRAMS / name for name in ("comm_churn", "early_free", "unused"))]
    subprocess.run(make, check=True, timeout=120)


def tearDownModule():
    shutil.rmtree(PROGRAMS, ignore_errors=True)


class Program(unittest.TestCase):
    def report(self, env, ranks, *program, shared_host=False):
        with Fabric(shared_host=shared_host) as fabric, tempfile.TemporaryDirectory(prefix="trib-test-") as folder:
            file = pathlib.Path(folder) / "report.json"
            given = {
                **os.environ, **ENV,
                "TRIB_MANAGER": fabric.manager, "TRIB_MPI": "force", "TRIB_MPI_REPORT": "1", "TRIB_MPI_REPORT_FILE": str(file), **env,
            }
            words = ["mpirun", "--oversubscribe", "-np", str(ranks), "-x", "LD_PRELOAD", *map(str, program)]
            done = subprocess.run(words, env={"LD_PRELOAD": "", **given}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"in the tree +bytes +seconds +by the MPI +seconds\n")
            return json.loads(file.read_text())

    def component(self, mode, ranks, *program, **fabric):
        return self.report({**COMPONENT, "TRIB_MPI": mode}, ranks, *program, **fabric)


class EarlyFree(Program):
    def test_a_rank_may_free_a_communicator_whose_tree_others_still_make(self):
        for shared_host in (True, False):
            report = self.component("force", 4, PROGRAMS / "early_free", 40, shared_host=shared_host)
            # The four ranks' trees of MPI_COMM_WORLD are there to the end.
            self.assertEqual(report["groups"]["refused"], 0)
            self.assertGreaterEqual(report["groups"]["freed"], 4 * 40)


class Unused(Program):
    def test_a_program_may_end_before_its_trees_are_made(self):
        """With memory that ranks share it takes a while until all know that a tree is made. A report would give them that time."""
        with Fabric(shared_host=True) as fabric:
            env = {**os.environ, **ENV, **COMPONENT, "TRIB_MANAGER": fabric.manager, "TRIB_MPI": "force"}
            for _ in range(4):
                done = subprocess.run(["mpirun", "--oversubscribe", "-np", "16", PROGRAMS / "unused"], env=env, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)


class Times(Program):
    LATE = (3, PYTHON, "-c", PROGRAM)

    def is_of_two_ranks(self, seconds):
        """Two of the three ranks waited for the third, each for almost as long as it was late."""
        self.assertGreater(seconds, LATE)

    def test_the_component_times_calls_in_the_tree_and_of_the_mpi(self):
        report = self.component("force", *self.LATE)
        barrier, alltoallv = (report["collectives"][name]["seconds"] for name in ("MPI_Barrier", "MPI_Alltoallv"))
        self.is_of_two_ranks(barrier["tree"])
        self.assertEqual(barrier["mpi"], 0)
        self.is_of_two_ranks(alltoallv["mpi"])
        self.assertEqual(alltoallv["tree"], 0)
        self.assertLess(report["groups"]["seconds"], 10)

    def test_the_component_times_what_would_have_gone_through_the_tree(self):
        report = self.component("report", *self.LATE)
        seconds = report["collectives"]["MPI_Barrier"]["seconds"]
        self.assertEqual(seconds["tree"], 0)
        self.is_of_two_ranks(seconds["mpi"])

    def test_the_preloaded_library_times_the_tree_alone(self):
        report = self.report({"LD_PRELOAD": str(BUILD / "libtrib_mpi.so")}, *self.LATE)
        self.is_of_two_ranks(report["collectives"]["MPI_Barrier"]["seconds"]["tree"])
        self.assertEqual(sum(figures["seconds"]["mpi"] for figures in report["collectives"].values()), 0)
        self.assertGreater(report["groups"]["seconds"], 0)

    def test_the_profile_tells_waiting_for_the_last_rank_from_the_rest(self):
        profiled = (3, PYTHON, "-c", PROFILED)
        for mode, doer in (("force", "tree"), ("report", "mpi")):
            env = {**COMPONENT, "TRIB_MPI": mode, "TRIB_MPI_PROFILE": "1"}
            collectives = self.report(env, *profiled)["collectives"]
            for name, figures in collectives.items():
                for by in ("tree", "mpi"):
                    parts = figures["waiting"][by] + figures["rest"][by]
                    self.assertAlmostEqual(parts, figures["seconds"][by], places=6, msg=name)
            barrier, alltoall, allreduce = (collectives[f"MPI_{name}"] for name in ("Barrier", "Alltoall", "Allreduce"))
            # Two of three ranks waited, twice; then one of two; if not from the first moment.
            self.assertGreater(barrier["waiting"][doer], 3 * LATE)
            self.assertGreater(alltoall["waiting"][doer], 0.9 * LATE)
            self.assertGreater(allreduce["rest"]["mpi"], LATE)
            self.assertLess(allreduce["waiting"]["mpi"], allreduce["rest"]["mpi"])
            self.assertEqual(allreduce["mpi_bytes"], 3)
            self.assertGreater(alltoall[f"{doer}_bytes"], 0)

    def test_the_profile_splits_the_calls_of_communicators_that_have_the_number_of_earlier_ones(self):
        report = self.report({**COMPONENT, "TRIB_MPI_PROFILE": "1"}, 4, PROGRAMS / "comm_churn", 60)
        figures = report["collectives"]["MPI_Allreduce"]
        self.assertEqual(figures["tree"], 4 * 60)
        parts = sum(figures["waiting"].values()) + sum(figures["rest"].values())
        self.assertAlmostEqual(parts, sum(figures["seconds"].values()), places=6)

    def test_a_program_without_collectives_has_an_empty_profile(self):
        report = self.report({**COMPONENT, "TRIB_MPI": "report", "TRIB_MPI_PROFILE": "1"}, 2, PROGRAMS / "unused")
        self.assertEqual(sum(sum(figures["waiting"].values()) for figures in report["collectives"].values()), 0)

    def test_without_a_profile_the_report_has_no_parts(self):
        self.assertNotIn("waiting", self.component("report", *self.LATE)["collectives"]["MPI_Barrier"])


if __name__ == "__main__":
    unittest.main()
