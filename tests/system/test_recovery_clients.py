"""A node dies or stops under programs that know nothing of us: users of libsharp_coll, and MPI
programs. With backups they notice nothing: right results, no abort, exit code 0."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import test_mpi
from harness import BUILD, ROOT, Fabric, send, wait_until
from test_mpi_libraries import make

#: One of each level, and each way to go away.
LOSSES = [("leaf0", signal.SIGKILL), ("root", signal.SIGKILL), ("leaf1", signal.SIGSTOP)]

setUpModule, tearDownModule = test_mpi.setUpModule, test_mpi.tearDownModule


class Recovery(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="trib-test-")))

    def test_users_of_libsharp_coll(self):
        program, sources = self.folder / "faults", ROOT / "sharp-coll"
        includes = [f"-I{sources / 'include'}", f"-I{sources / 'conformance'}"]
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *includes, "-o", program,
                        sources / "misuse" / "faults.c", f"-L{BUILD}", "-lsharp_coll"], check=True)
        for victim, number in LOSSES:
            with self.subTest(victim=victim, signal=number.name), Fabric(backups=1) as fabric:
                figures = self.folder / f"{victim}.figures"
                env = {**fabric.env, "TRIB_MANAGER": fabric.manager, "LD_LIBRARY_PATH": str(BUILD),
                       "SHARP_COLL_STATS_DUMP_MODE": "2", "SHARP_COLL_STATS_FILE": str(figures)}
                pid = fabric.processes()[victim]
                with subprocess.Popen([program, "4", "node"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True) as running:
                    self.assertEqual(running.stdout.readline(), "ready\n")
                    send(pid, number)
                    said, errors = running.communicate("x", timeout=120)
                self.assertEqual((running.returncode, said), (0, "ok node\n"), errors)
                epochs = [int(line.split()[-1]) for line in figures.read_text().splitlines() if line.startswith("epochs ")]
                self.assertGreater(sum(epochs), 0, figures.read_text())

    def hurt(self, fabric, victim, number, stop):
        """Once the program's sums have begun, and before it hears that it is to end: its last sum
        goes through a tree that has lost the node."""
        wait_until(lambda: fabric.node_counters()[victim].get("fragments_folded", 0) > 50, 60, "first sums")
        send(fabric.processes()[victim], number)
        stop.touch()

    def check(self, report, said):
        for name, figures in report["collectives"].items():
            self.assertEqual(figures["mpi"], {}, f"{name}: {said}")
        self.assertGreater(report["collectives"]["MPI_Allreduce"]["tree"], 0, report)
        self.assertGreater(report["counters"]["epochs"], 0, report)

    def test_programs_under_open_mpi(self):
        self.run_open_mpi("preload", LOSSES)

    def test_programs_under_the_component(self):
        self.run_open_mpi("component", LOSSES[::2])

    def run_open_mpi(self, through, losses):
        for victim, number in losses:
            with self.subTest(victim=victim, signal=number.name), Fabric(backups=1) as fabric:
                stop = self.folder / f"{victim}.{through}.stop"
                mpi = test_mpi.Mpi(fabric, 4, test_mpi.PROGRAMS / "grid", stop, through=through)
                self.hurt(fabric, victim, number, stop)
                code, out, err, report = mpi.end(120)
                self.assertEqual(code, 0, err[-3000:])
                self.assertIn("all sums were right", out)
                self.check(report, err)

    # MPI_Finalize of MPICH with UCX may wait for ever. By then the program has said everything.
    def test_programs_under_mpich(self):
        if not shutil.which("mpicc.mpich") or not shutil.which("mpirun.mpich"):
            self.skipTest("MPICH is not installed (Debian: mpich, libmpich-dev)")
        make("tests/mpi", self.folder / "programs/grid", MPICC="mpicc.mpich", BUILD=self.folder / "programs")
        for victim, number in LOSSES[::2]:
            with self.subTest(victim=victim, signal=number.name), Fabric(backups=1) as fabric:
                stop, file, heard = (self.folder / f"{victim}.{kind}" for kind in ("stop", "json", "heard"))
                env = {**os.environ, "TRIB_MANAGER": fabric.manager, "TRIB_MPI": "force", "TRIB_MPI_REPORT_FILE": str(file)}
                command = ["mpirun.mpich", "-np", "4", "-genv", "LD_PRELOAD", BUILD / "libtrib_mpi.so",
                           self.folder / "programs/grid", stop]
                with open(heard, "w") as said:
                    running = subprocess.Popen(command, env=env, stdout=said, stderr=said, start_new_session=True)
                try:
                    self.hurt(fabric, victim, number, stop)
                    is_over = lambda: file.exists() and file.read_text().endswith("}\n")
                    wait_until(lambda: running.poll() is not None or is_over(), 120, "the program's report")
                    try:
                        self.assertEqual(running.wait(5), 0, heard.read_text())
                    except subprocess.TimeoutExpired:
                        pass
                finally:
                    if running.poll() is None:
                        os.killpg(running.pid, signal.SIGKILL)
                        running.wait()
                self.assertIn("all sums were right", heard.read_text())
                self.check(json.loads(file.read_text()), heard.read_text())


if __name__ == "__main__":
    unittest.main()
