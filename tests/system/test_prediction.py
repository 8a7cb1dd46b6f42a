"""What the manager predicts reaches an unchanged MPI program: with several ranks on a host that has
no node of its own, long vectors stay with the MPI, and TRIB_MPI=force sends them through the tree all the same."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import tomllib
import unittest

from harness import BUILD, TRIB, wait_until
from test_lab import Lab

# Every allreduce is checked. Arguments: the file for which rank 0 waits before it ends, then sizes.
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void sum(MPI_Comm comm, int bytes)
{
    int count = bytes / 4, size, rank;
    int *vector = malloc((size_t)count * 4);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < count; i++)
        vector[i] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, vector, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        if (vector[i] != size * (size - 1) / 2 + size * i)
            MPI_Abort(MPI_COMM_WORLD, 9);
    free(vector);
}

int main(int argc, char **argv)
{
    int rank, local;
    MPI_Comm host, peers;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local);
    MPI_Comm_split(MPI_COMM_WORLD, local, rank, &peers);
    for (int arg = 2; arg < argc; arg++) {
        sum(MPI_COMM_WORLD, atoi(argv[arg]));
        sum(peers, atoi(argv[arg]));
    }
    if (rank == 0)
        for (int left = 6000; left > 0 && access(argv[1], F_OK) != 0; left--)
            usleep(10000);
    MPI_Comm_free(&peers);
    MPI_Comm_free(&host);
    MPI_Finalize();
    return 0;
}
"""

MEBIBYTE = 1 << 20


@unittest.skipUnless(shutil.which("mpirun.openmpi") and shutil.which("mpicc.openmpi"), "Open MPI is not installed")
class Prediction(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="trib-test-")
        cls.addClassCleanup(cls.folder.cleanup)
        os.chmod(cls.folder.name, 0o755)
        cls.program = pathlib.Path(cls.folder.name) / "sums"
        source = cls.program.with_suffix(".c")
        source.write_text(PROGRAM)
        subprocess.run(["mpicc.openmpi", "-o", cls.program, source], check=True, timeout=60)
        lab = Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "200mbit")
        cls.lab = cls.enterClassContext(lab)

    def run_ranks(self, ranks, *sizes, mode=None, levels=None, meanwhile=lambda: None):
        """The report of a program with so many ranks on four hosts."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder.name))
        report, end = folder / "report.json", folder / "end"
        environment = {"LD_PRELOAD": BUILD / "libtrib_mpi.so", "TRIB_MPI_REPORT_FILE": report}
        if mode:
            environment["TRIB_MPI"] = mode
        if levels:
            environment["TRIB_QUOTA"] = f"levels={levels}"
        words = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
        command = [TRIB, "lab", "mpirun", "--name", self.lab.name, "-n", str(ranks), "--timeout", "90", *words, "--"]
        command += [str(self.program), str(end), *map(str, sizes)]
        mine = {**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        with subprocess.Popen(command, env=mine, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            try:
                meanwhile()
            finally:
                end.touch()
                out, err = running.communicate(timeout=120)
        self.assertEqual(running.returncode, 0, f"{out}\n{err}")
        return json.loads(report.read_text())["collectives"]["MPI_Allreduce"]

    def manager(self, *words):
        return self.lab.run("exec", "h0", "--", str(TRIB), *words, check=False)

    def test_one_rank_on_each_host_takes_the_tree(self):
        report = self.run_ranks(4, MEBIBYTE)
        self.assertEqual(report["tree"], 2 * 4, report)

    def test_four_ranks_on_each_host_take_the_tree_below_a_node_of_their_host(self):
        report = self.run_ranks(16, MEBIBYTE)
        self.assertEqual(report["tree"], 2 * 16, report)

    def test_four_ranks_on_each_host_without_levels_leave_long_vectors_to_the_mpi_unless_forced(self):
        explained = []

        def explain():
            def known():
                done = self.manager("explain", "sums")
                explained[:] = [done.stdout]
                return "The tree is predicted" in done.stdout

            wait_until(known, 60, "the manager tells what it predicts")

        report = self.run_ranks(16, MEBIBYTE, levels="none", meanwhile=explain)
        # The communicators with a rank of each host are as if the others were not there.
        self.assertEqual(report["mpi"].get("predicted_slower"), 16, report)
        self.assertEqual(report["tree"], 16, report)
        (text,) = explained
        self.assertIn("the two cores of docs/performance.md", text, "the constants are named")
        row = next(line for line in text.splitlines() if line.startswith("1 MiB"))
        self.assertRegex(row, r"^1 MiB +\d+ ms \(one tree\) +\d+(\.\d)? ms +(host|leaders) ")
        forced = self.run_ranks(16, MEBIBYTE, mode="force", levels="none")
        self.assertEqual(forced["tree"], 2 * 16, forced)
        self.assertNotIn("predicted_slower", forced["mpi"])


class Calibration(unittest.TestCase):
    def test_what_is_measured_here_is_what_plans_go_by(self):
        with tempfile.TemporaryDirectory() as folder:
            constants, fabric = pathlib.Path(folder) / "constants.toml", pathlib.Path(folder) / "fabric.toml"
            run = lambda *words: subprocess.run(
                [TRIB, *map(str, words)], check=True, capture_output=True, text=True, timeout=150
            ).stdout
            run("plan", "--calibrate", "--rounds", "1", "--out", constants)
            file = tomllib.loads(constants.read_text())
            self.assertIn("cores", file["about"]["machine"])
            self.assertRegex(file["about"]["date"], r"^\d{4}-\d{2}-\d{2}$")
            measured = {"hop_us", "message_us", "node_byte_ns", "host_byte_ns", "step_us", "local_step_us", "local_byte_ns"}
            self.assertEqual(set(file["constants"]), measured)
            for name in ("node_byte_ns", "host_byte_ns"):
                # Nothing copies a byte in a hundredth of a nanosecond, or takes a hundred for it.
                self.assertTrue(0.01 < file["constants"][name]["value"] < 100, file)
            run("topology", "make", "fat-tree", "--hosts", "8", "--ports", "4", "--out", fabric)
            plan = json.loads(run("plan", fabric, "--hosts", "h[0-7]", "--constants", constants, "--json"))
            self.assertIn(f"{constants}, measured on ", plan["constants"]["source"])
            for name in measured:
                value = plan["constants"]["values"][name]
                self.assertAlmostEqual(value, file["constants"][name]["value"], places=6)


if __name__ == "__main__":
    unittest.main()
