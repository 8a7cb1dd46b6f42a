"""Nodes and ranks die under MPI programs: a rank takes the place of a node, and where nothing may, the
program ends with the names of all."""

import contextlib
import json
import pathlib
import signal
import subprocess
import tempfile
import unittest

import test_mpi
from harness import PYTHON, ROOT, TRIB, Fabric, send, wait_until

setUpModule, tearDownModule = test_mpi.setUpModule, test_mpi.tearDownModule

#: How the line begins that a rank says when it ends the program. A communicator without a name is
#: told by its ranks.
ENDS = (
    r"^tributary: rank \d ends the program: MPI_(Allreduce|Reduce|Barrier) cannot go on through the tree: "
    r"(MPI_COMM_WORLD \(ranks 0-3\)|group of ranks [-0-3/2,]+): "
)


def has_folded(fabric, node):
    wait_until(lambda: fabric.node_counters()[node].get("fragments_folded", 0) > 50, 60, f"first sums at {node}")


def processes_of(program):
    """The PIDs of those that run it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().split(b"\0")[0] == str(program).encode():
                found.append(int(entry.name))
    return found


class Failures(test_mpi.Programs):
    def test_a_killed_node_is_replaced_and_the_tree_goes_on(self):
        for victim in ("leaf0", "root"):
            with self.subTest(victim), Fabric() as fabric:
                mpi = test_mpi.Mpi(fabric, 4, PYTHON, ROOT / "examples" / "mpi" / "digits.py", "--epochs", "30")
                has_folded(fabric, victim)
                send(fabric.processes()[victim], signal.SIGKILL)
                _, err, report = self.good(mpi, 120)
                self.goes_on(report, err)

    def test_a_stopped_node_is_replaced_and_the_tree_goes_on(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            mpi = test_mpi.Mpi(fabric, 4, test_mpi.PROGRAMS / "grid", stop)
            has_folded(fabric, "leaf0")
            send(fabric.processes()["leaf0"], signal.SIGSTOP)
            stop.touch()
            out, err, report = self.good(mpi, 120)
        self.assertIn("all sums were right", out)
        self.goes_on(report, err)

    def test_random_collectives_against_the_mpi_while_a_node_is_replaced(self):
        with Fabric() as fabric:
            mpi = test_mpi.Mpi(fabric, 8, test_mpi.PROGRAMS / "collectives_check", "400")
            has_folded(fabric, "leaf0")
            send(fabric.processes()["leaf0"], signal.SIGKILL)
            _, _, report = self.good(mpi)
        self.assertGreater(report["counters"]["epochs"], 0, report)

    def test_file_requests_while_a_node_is_replaced(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            mpi = test_mpi.Mpi(fabric, 4, test_mpi.PROGRAMS / "file_requests", pathlib.Path(folder) / "file", "50000")
            has_folded(fabric, "leaf0")
            send(fabric.processes()["leaf0"], signal.SIGKILL)
            _, err, report = self.good(mpi, 120)
        self.goes_on(report, err)

    def goes_on(self, report, err):
        self.assertEqual(report["collectives"]["MPI_Allreduce"]["mpi"], {}, err)
        self.assertGreater(self.tree(report), 0, err)
        self.assertGreater(report["counters"]["epochs"], 0, report)

    def test_a_node_that_nothing_may_replace_ends_the_program_with_its_name(self):
        quota = {"TRIB_QUOTA": "deputies=0,dead_after_ms=5000"}
        for victim, number in (("leaf0", signal.SIGKILL), ("root", signal.SIGKILL), ("leaf0", signal.SIGSTOP)):
            with self.subTest(victim, number=number), Fabric() as fabric:
                mpi = test_mpi.Mpi(fabric, 4, test_mpi.PROGRAMS / "grid", test_mpi.PROGRAMS / "never", env=quota)
                has_folded(fabric, victim)
                send(fabric.processes()[victim], number)
                self.ends_with_a_line(mpi, rf"node {victim} of the reduction tree is gone or does not answer\. A job goes on when")
                command = [TRIB, "jobs", "--ended", "--json", "--manager", fabric.manager]

                def past_jobs():
                    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
                    return json.loads(done.stdout)["past"]

                wait_until(past_jobs, 30, "the job has ended")
                (past,) = past_jobs()
                self.assertNotEqual(past["state"], "ended", past)
                self.assertIsNone(past["fallback"], past)

    def test_where_the_ranks_reach_no_candidate_the_program_ends(self):
        with Fabric(backups=1) as fabric:
            limits = {"TRIB_QUOTA": "deputies=0", "TRIB_TIMEOUT_MS": "3000"}
            mpi = test_mpi.Mpi(fabric, 4, test_mpi.PROGRAMS / "grid", test_mpi.PROGRAMS / "never", env=limits)
            has_folded(fabric, "leaf0")
            for name, pid in fabric.processes().items():
                if name != "manager":
                    send(pid, signal.SIGKILL)
            self.ends_with_a_line(mpi, r"node \w+ of the reduction tree is gone .* reach one of them within TRIB_TIMEOUT_MS")

    def test_a_killed_rank_ends_the_program_with_its_name(self):
        with Fabric() as fabric:
            # Otherwise the launcher ends all ranks, maybe before one has said why.
            mpi = test_mpi.Mpi(fabric, 4, "--enable-recovery", test_mpi.PROGRAMS / "grid", test_mpi.PROGRAMS / "never")
            has_folded(fabric, "leaf0")
            victim = processes_of(test_mpi.PROGRAMS / "grid")[0]
            send(victim, signal.SIGKILL)
            _, _, err, _ = mpi.end(60)
        self.tells_why(err, rf"rank \d on \S+ \(PID {victim}\) died or lost its connection to node leaf\d\. Find out why")

    def ends_with_a_line(self, mpi, cause):
        code, _, err, _ = mpi.end(60)
        self.assertNotEqual(code, 0, err)
        self.tells_why(err, cause)

    def tells_why(self, err, cause):
        told = [line for line in err.splitlines() if line.startswith("tributary: ")]
        self.assertEqual(len(told), 1, err)
        self.assertRegex(told[0], f"{ENDS}.*{cause}")


if __name__ == "__main__":
    unittest.main()
