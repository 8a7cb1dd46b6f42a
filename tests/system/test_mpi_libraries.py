"""One libtrib_mpi.so for every MPI: it loads what fits the program's, or says what is missing and steps aside."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import test_mpi
from harness import BUILD, ROOT, Fabric, send, wait_until
from test_jobs import listed
from test_mpi_failures import ENDS, has_folded

setUpModule, tearDownModule = test_mpi.setUpModule, test_mpi.tearDownModule

MPICH = shutil.which("mpicc.mpich") and shutil.which("mpirun.mpich")


def make(folder, name, **variables):
    words = [f"{key}={value}" for key, value in variables.items()]
    subprocess.run(["make", "-s", "-C", ROOT / folder, *words, *([name] if name else [])], check=True, timeout=240)


def libraries(folder, *names):
    """A folder with copies of these libraries alone, and what they need."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    for name in names:
        shutil.copy(BUILD / name, folder)
    for needed in BUILD.glob("libtributary.so*"):
        (folder / needed.name).symlink_to(needed.resolve())
    return folder


#: Blocking collectives that the tree takes, and that `every_collective` does not count on.
TAKEN = (
    "Bcast", "Allgather", "Reduce_scatter_block", "Gather", "Scatter", "Alltoall", "Allgatherv", "Reduce_scatter", "Scan", "Exscan",
)

STAY = "the collectives of this program stay with the MPI"


class Libraries(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="trib-test-")))

    def openmpi(self, fabric, program, *arguments, library, ranks=2, env=None):
        """(exit code, stdout, stderr, report or None) of a program under Open MPI."""
        mpi = test_mpi.Mpi(fabric, ranks, program, *arguments, through=None,
                           env={"LD_PRELOAD": library, "TRIB_MPI_REPORT": "1", **(env or {})})
        return mpi.end(60)

    def mpich(self, fabric, *program, library, ranks=2, env=None, meanwhile=lambda: None):
        """(exit code, stderr, report) of a program under MPICH, whose MPI_Finalize may hang (the exit code is None then);
        everything is said by then."""
        report = self.folder / "report.json"
        env = {**os.environ, "TRIB_MANAGER": fabric.manager, "TRIB_MPI": "force", "TRIB_MPI_REPORT": "1",
               "TRIB_MPI_REPORT_FILE": str(report), **(env or {})}
        with open(self.folder / "said", "w+") as said:
            command = ["mpirun.mpich", "-np", str(ranks), "-genv", "LD_PRELOAD", str(library), *map(str, program)]
            process = subprocess.Popen(command, env=env, stdout=said, stderr=said, start_new_session=True)
            text = lambda: (self.folder / "said").read_text()
            try:
                meanwhile()
                wait_until(lambda: process.poll() is not None or "tributary:   trees" in text(), 60, "a word about itself")
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        code = process.returncode if process.returncode != -signal.SIGKILL else None
        return code, text(), json.loads(report.read_text()) if report.exists() else None

    def build_mpich(self, name="two_hosts"):
        """The library for MPICH, and a program that uses it."""
        if not MPICH:
            self.skipTest("MPICH is not installed (Debian: mpich, libmpich-dev)")
        both = libraries(self.folder / "both", "libtrib_mpi.so", "libtrib_mpi_openmpi.so")
        before = (both / "libtrib_mpi_openmpi.so").read_bytes()
        make("mpi", "", MPICC="mpicc.mpich", LIBDIR=both, BUILD=self.folder / "objects")
        make("tests/mpi", self.folder / "programs" / name, MPICC="mpicc.mpich", BUILD=self.folder / "programs")
        self.assertEqual((both / "libtrib_mpi_openmpi.so").read_bytes(), before, "Open MPI's library stays")
        return both, self.folder / "programs" / name

    def test_under_mpich_a_node_that_nothing_may_replace_ends_the_program(self):
        both, grid = self.build_mpich("grid")
        with Fabric() as fabric:
            def kill_node():
                has_folded(fabric, "leaf0")
                send(fabric.processes()["leaf0"], signal.SIGKILL)

            code, said, _ = self.mpich(
                fabric, grid, self.folder / "never", library=both / "libtrib_mpi.so", ranks=4,
                env={"TRIB_QUOTA": "deputies=0"}, meanwhile=kill_node)
        self.assertNotIn(code, (0, None), said)
        self.assertEqual(said.count("ends the program"), 1, said)
        self.assertRegex(said, f"(?m){ENDS}.*node leaf0 of the reduction tree is gone")

    def test_both_mpis_with_one_library(self):
        both, program = self.build_mpich()
        with Fabric() as fabric:
            code, said, report = self.mpich(fabric, program, library=both / "libtrib_mpi.so")
            self.assertIn(code, (0, None), said)
            self.assertEqual(report["collectives"]["MPI_Allreduce"]["tree"], 80, said)
            self.assertIn("tributary: report: MPI_COMM_WORLD of 2 ranks", said)
            code, _, err, report = self.openmpi(fabric, test_mpi.PROGRAMS / "two_hosts", library=both / "libtrib_mpi.so")
        self.assertEqual(code, 0, err)
        self.assertEqual(report["collectives"]["MPI_Allreduce"]["tree"], 80, err)

    def test_under_mpich_what_ranks_did_before_a_barrier_is_seen_after_it(self):
        both, program = self.build_mpich("seen_after_barrier")
        with Fabric() as fabric:
            code, said, report = self.mpich(fabric, program, library=both / "libtrib_mpi.so")
        self.assertIn(code, (0, None), said)
        self.assertEqual(report["collectives"]["MPI_Barrier"]["tree"], 2 * 3 * 100, said)

    def test_threads_in_collectives_at_the_same_time_under_mpich(self):
        both, program = self.build_mpich("threads")
        with Fabric() as fabric:
            code, said, report = self.mpich(fabric, program, "30", "3", library=both / "libtrib_mpi.so")
        self.assertIn(code, (0, None), said)
        for name in ("Allreduce", "Reduce", "Bcast", "Barrier", "Allgather", "Alltoall", "Scan", "Gather", "Scatter"):
            self.assertGreater(report["collectives"][f"MPI_{name}"]["tree"], 0, name)

    def test_the_other_mpis_library_alone_steps_aside(self):
        both, program = self.build_mpich()
        with Fabric() as fabric:
            (both / "libtrib_mpi_openmpi.so").rename(both / "kept")
            code, _, err, report = self.openmpi(fabric, test_mpi.PROGRAMS / "two_hosts", library=both / "libtrib_mpi.so")
            self.assertEqual((code, report), (0, None), err)
            self.assertEqual(err.count("tributary:"), 1, err)
            self.assertIn("Open MPI", err)
            self.assertIn(f"needs {both}/libtrib_mpi_openmpi.so", err)
            # The file of that name is for another MPI.
            (both / "libtrib_mpi_mpich.so").rename(both / "libtrib_mpi_openmpi.so")
            code, _, err, report = self.openmpi(fabric, test_mpi.PROGRAMS / "two_hosts", library=both / "libtrib_mpi.so")
            self.assertEqual((code, report), (0, None), err)
            self.assertEqual(err.count("tributary:"), 1, err)
            self.assertIn("was built for another library of the MPI", err)
            code, said, report = self.mpich(fabric, program, library=both / "libtrib_mpi.so")
        self.assertIn(code, (0, None), said)
        self.assertIsNone(report)
        self.assertEqual(said.count("tributary:"), 1, said)
        self.assertIn(f"needs {both}/libtrib_mpi_mpich.so", said)

    def test_without_a_library_for_its_mpi_a_program_runs_as_before(self):
        alone = libraries(self.folder / "alone", "libtrib_mpi.so")
        with Fabric() as fabric:
            for mode, lines in (("on", 1), ("off", 0)):
                code, _, err, report = self.openmpi(
                    fabric, test_mpi.PROGRAMS / "constructors", library=alone / "libtrib_mpi.so", ranks=4, env={"TRIB_MPI": mode})
                self.assertEqual((code, report), (0, None), err)
                self.assertEqual(err.count("tributary:"), lines, err)
            for required in ({"TRIB_MPI": "require"}, {"TRIB_MPI": "", "HCOLL_ENABLE_SHARP": "3"}):
                code, _, err, report = self.openmpi(
                    fabric, test_mpi.PROGRAMS / "constructors", library=alone / "libtrib_mpi.so", ranks=4, env=required)
                self.assertNotEqual(code, 0, err)
                self.assertIsNone(report)
                self.assertRegex(err, f"tributary: {STAY}, and TRIB_MPI=require ends it: .*libtrib_mpi_openmpi.so")

    def test_a_fortran_program_is_told(self):
        program = test_mpi.PROGRAMS / "fortran_init"
        with Fabric() as fabric:
            for how in ("init", "init_thread"):
                code, _, err, _ = self.openmpi(fabric, program, how, library=BUILD / "libtrib_mpi.so")
                self.assertEqual(code, 0, err)
                self.assertEqual(err.count("tributary:"), 1, err)
                self.assertIn("initialised MPI in Fortran", err)
            code, _, err, _ = self.openmpi(fabric, program, "init", library=BUILD / "libtrib_mpi.so", env={"TRIB_MPI": "require"})
            self.assertNotEqual(code, 0, err)
            self.assertRegex(err, f"tributary: {STAY}, and TRIB_MPI=require ends it: it initialised MPI in Fortran")
            off = {"TRIB_MPI": "", "HCOLL_ENABLE_SHARP": "3", "OMPI_MCA_coll_hcoll_enable": "0"}
            code, _, err, _ = self.openmpi(fabric, program, "init", library=BUILD / "libtrib_mpi.so", env=off)
        self.assertEqual((code, err.count("tributary:")), (0, 0), err)

    def test_what_c_has_begun_fortran_may_end(self):
        """Open MPI's Fortran passes C's functions by, and the job has to hear of the end all the same."""
        program = test_mpi.PROGRAMS / "fortran_init"
        with Fabric() as fabric:
            ends = {how: self.openmpi(fabric, program, how, library=BUILD / "libtrib_mpi.so", env={"TRIB_MPI": "force"})
                    for how in ("finalize", "abort")}
        code, _, err, report = ends["finalize"]
        self.assertEqual(code, 0, err)
        self.assertEqual(report["collectives"]["MPI_Allreduce"]["tree"], 2, err)
        code, _, err, _ = ends["abort"]
        self.assertEqual(code, 7, err)
        self.assertRegex(err, "tributary: report: MPI_Abort on rank")

    def test_a_negative_length_is_reported_by_the_mpi(self):
        with Fabric() as fabric:
            code, _, err, report = self.openmpi(
                fabric, test_mpi.PROGRAMS / "negative_counts", library=BUILD / "libtrib_mpi.so", env={"TRIB_MPI": "force"})
        self.assertEqual(code, 0, err)
        self.assertEqual(report["collectives"]["MPI_Reduce_scatter"]["mpi"], {"argument": 2}, err)

    def test_a_fortran_library_that_a_program_loads_for_itself_finds_its_mpi(self):
        """The program that calls it is linked with no MPI, and what the library is linked with is seen by nobody else."""
        with Fabric() as fabric:
            code, _, err, _ = self.openmpi(fabric, test_mpi.PROGRAMS / "local_solver", test_mpi.PROGRAMS / "liblocal_solver.so",
                                           library=BUILD / "libtrib_mpi.so")
        self.assertEqual(code, 0, err)
        self.assertEqual(err.count("tributary:"), 1, err)
        self.assertIn("initialised MPI in Fortran", err)

    def test_a_tool_behind_the_library_sees_what_stays_with_the_mpi(self):
        """It stands there as it would without the library, and its names in PMPI_ are not the MPI's."""
        library = f"{BUILD}/libtrib_mpi.so:{test_mpi.PROGRAMS}/libcounting_tool.so"
        with Fabric() as fabric:
            code, _, err, report = self.openmpi(fabric, test_mpi.PROGRAMS / "every_collective", "end", library=library, ranks=4)
            self.assertEqual(code, 0, err)
            self.assertNotIn("stay with the MPI", err)
            self.assertEqual(report["collectives"]["MPI_Allreduce"]["tree"], 4, err)
            self.assertEqual(report["collectives"]["MPI_Gatherv"]["mpi"], {"not_taken": 4}, err)
            self.assertEqual(re.findall(r"tool: (\d+) initialisations, (\d+) allreduces, (\d+) gathers", err), [("1", "0", "1")] * 4, err)
            python = ("/usr/bin/python3", "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Dup().Barrier()")
            code, _, err, report = self.openmpi(fabric, *python, library=library)
        self.assertEqual(code, 0, err)
        self.assertTrue(report["job"], err)
        self.assertEqual(re.findall(r"tool: .*", err), ["tool: 0 initialisations, 0 allreduces, 0 gathers, 1 copies"] * 2, err)

    def test_a_tool_that_asks_for_threads_and_a_second_copy_make_no_second_job(self):
        own = BUILD / "libtrib_mpi.so"
        copy = libraries(self.folder / "copy", "libtrib_mpi.so", "libtrib_mpi_openmpi.so")
        beside = ((test_mpi.PROGRAMS / "libcounting_tool.so", {"TOOL_THREADS": "1"}), (copy / "libtrib_mpi.so", {}))
        for other, env in beside:
            with Fabric() as fabric:
                code, _, err, report = self.openmpi(
                    fabric, test_mpi.PROGRAMS / "every_collective", "end", library=f"{own}:{other}", env=env)
                self.assertEqual(code, 0, err)
                self.assertGreater(report["collectives"]["MPI_Allreduce"]["tree"], 0, err)
                self.assertEqual(err.count("tributary: report:"), 1, err)
                wait_until(lambda: not listed(fabric)["live"], 10, "the end of what there was")
                self.assertEqual(len(listed(fabric, "--ended")["past"]), 1, other)

    def test_a_tool_that_initialises_mpi_past_the_library_is_told(self):
        library = f"{test_mpi.PROGRAMS}/libcounting_tool.so:{BUILD}/libtrib_mpi.so"
        with Fabric() as fabric:
            code, _, err, report = self.openmpi(fabric, test_mpi.PROGRAMS / "every_collective", "end", library=library, ranks=4)
            self.assertEqual((code, report), (0, None), err)
            self.assertEqual(err.count("tributary:"), 1, err)
            self.assertIn(f"tributary: {STAY}: MPI was initialised past libtrib_mpi.so", err)
            code, _, err, _ = self.openmpi(fabric, test_mpi.PROGRAMS / "every_collective", "end", library=library, ranks=4,
                                           env={"TRIB_MPI": "require"})
        self.assertNotEqual(code, 0, err)

    def test_every_collective_is_counted_and_an_abort_reports_once(self):
        with Fabric() as fabric:
            code, out, err, report = self.openmpi(
                fabric, test_mpi.PROGRAMS / "every_collective", "end", library=BUILD / "libtrib_mpi.so", ranks=4)
            self.assertEqual(code, 0, err)
            counted = {name: figures["mpi"] for name, figures in report["collectives"].items() if "not_taken" in figures["mpi"]}
            names = json.loads(next(line for line in out.splitlines() if line.startswith("[")))
            self.assertEqual(len(names), 41)
            taken = {f"MPI_{kind}" for kind in TAKEN}
            self.assertEqual(counted, {name: {"not_taken": 4} for name in names if name not in taken})
            for name in ("MPI_Allreduce", *taken):
                self.assertEqual(report["collectives"][name]["tree"], 4, name)
            self.assertIn("44 short operations by datagrams", err)
            self.assertNotIn("operations_", err)
            code, _, err, _ = self.openmpi(
                fabric, test_mpi.PROGRAMS / "every_collective", "abort", library=BUILD / "libtrib_mpi.so", ranks=8)
            self.assertNotEqual(code, 0)
            self.assertEqual(err.count("tributary: report:"), 1, err)


if __name__ == "__main__":
    unittest.main()
