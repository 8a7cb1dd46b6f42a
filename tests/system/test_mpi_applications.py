"""MPI programs in which not every rank comes through libtrib_mpi.so: several applications, of which
some preload nothing or initialise MPI in Fortran, and ranks that lack the library."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import test_mpi
from harness import BUILD, Fabric
from test_mpi_libraries import MPICH, libraries, make

setUpModule, tearDownModule = test_mpi.setUpModule, test_mpi.tearDownModule

LIBRARY = BUILD / "libtrib_mpi.so"
#: Only one of the ranks has the library; the launcher knows nothing about it.
ONE_HAS_IT = 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = %d ]; then export LD_PRELOAD=%s; fi; exec %s'


class Applications(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="trib-test-")))
        self.report = self.folder / "report.json"
        self.fabric = self.enterContext(Fabric())

    def run_words(self, *words, env=None, launcher=("mpirun", "--oversubscribe")):
        """(exit code, stdout and stderr)"""
        given = {
            **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1", "TRIB_MANAGER": self.fabric.manager, "TRIB_MPI": "force",
            "TRIB_MPI_REPORT_FILE": str(self.report), **(env or {}),
        }
        with open(self.folder / "said", "w+") as said:
            process = subprocess.Popen(
                [*launcher, *map(str, words)], env=given, stdout=said, stderr=said, start_new_session=True)
            try:
                code = process.wait(90)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = "it hangs"
        return code, (self.folder / "said").read_text()

    def application(self, *program, preload=True):
        return ("-np", "2", *(("-x", f"LD_PRELOAD={LIBRARY}") if preload else ()), *program)

    def test_the_library_steps_aside_from_a_program_of_several_applications(self):
        mine, fortran = test_mpi.PROGRAMS / "first_calls", (test_mpi.PROGRAMS / "fortran_init", "init")
        with_it, without = self.application(mine), self.application(mine, preload=False)
        sums, sums_in_fortran = self.application(test_mpi.PROGRAMS / "sums"), self.application(*fortran)
        for first, second, lines in (
            (with_it, without, 1), (without, with_it, 1), (with_it, with_it, 2), (sums, sums_in_fortran, 2),
        ):
            code, said = self.run_words(*first, ":", *second)
            self.assertEqual(code, 0, said)
            told = [line for line in said.splitlines() if line.startswith("tributary: ")]
            self.assertEqual(len(told), lines, said)
            for line in told:
                self.assertRegex(line, r"^tributary: the collectives of this program stay with the MPI: it is application [12] of 2")
                self.assertIn("TRIB_MPI_APPS=all", line)
            self.assertFalse(self.report.exists())
            code, said = self.run_words(*first, ":", *second, env={"TRIB_MPI": "off"})
            self.assertEqual(code, 0, said)
            self.assertNotIn("tributary:", said)

    def test_where_the_user_says_that_all_preload_it_the_tree_is_used(self):
        mine = self.application(test_mpi.PROGRAMS / "first_calls")
        code, said = self.run_words(*mine, ":", *mine, env={"TRIB_MPI_APPS": "all"})
        self.assertEqual(code, 0, said)
        self.assertEqual(json.loads(self.report.read_text())["collectives"]["MPI_Allreduce"]["tree"], 80, said)

    def ends_with_a_word(self, *words, **how):
        code, said = self.run_words(*words, env={"TRIB_TIMEOUT_MS": "1500", "TRIB_MPI_APPS": "all"}, **how)
        self.assertNotIn(code, (0, "it hangs"), said)
        self.assertRegex(said, r"tributary: rank \d waited in MPI_Init for 1500 ms for ranks of this program that did not come")
        self.assertNotIn("first_calls.c", said, "no call of the program met one of the library's")

    def test_a_rank_without_the_library_ends_the_program_with_a_word(self):
        for rank in (0, 1):
            script = ONE_HAS_IT % (rank, LIBRARY, test_mpi.PROGRAMS / "first_calls")
            self.ends_with_a_word("-np", "3", "sh", "-c", script)

    def test_a_wrong_word_of_the_users_ends_the_program_with_a_word(self):
        mine = test_mpi.PROGRAMS / "first_calls"
        self.ends_with_a_word(*self.application(mine, preload=False), ":", *self.application(mine))

    def test_under_mpich_too(self):
        if not MPICH:
            self.skipTest("MPICH is not installed (Debian: mpich, libmpich-dev)")
        both = libraries(self.folder / "both", "libtrib_mpi.so")
        make("mpi", "", MPICC="mpicc.mpich", LIBDIR=both, BUILD=self.folder / "objects")
        program = self.folder / "programs/first_calls"
        make("tests/mpi", program, MPICC="mpicc.mpich", BUILD=self.folder / "programs")
        preload = ("-env", "LD_PRELOAD", both / "libtrib_mpi.so")
        launcher = (shutil.which("mpiexec.mpich"),)
        self.ends_with_a_word("-np", "1", *preload, program, ":", "-np", "2", program, launcher=launcher)
        self.ends_with_a_word("-np", "1", program, ":", "-np", "2", *preload, program, launcher=launcher)


if __name__ == "__main__":
    unittest.main()
