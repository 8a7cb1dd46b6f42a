"""Every rank reports what goes wrong, in words and within the time limit; nothing hangs."""

import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from harness import PYTHON, TRIB, Fabric, Ranks, rank_env, send

JOIN = """
import native, sys
try:
    native.Context(timeout_ms=5000)
except native.Failed as failed:
    print(f"[{failed.status}] {failed.text}", flush=True)
    sys.exit(7)
print("joined")
"""


def join(manager, ranks=4, quota=None, env=None):
    """What every rank of a small job says when it joins: (exit code, text) by rank."""
    base = rank_env(None, quota, {"TRIB_MANAGER": manager, "TRIB_SIZE": str(ranks), "TRIB_RENDEZVOUS": f"t{time.time_ns()}"})
    started = [
        subprocess.Popen([PYTHON, "-c", JOIN], env={**base, "TRIB_RANK": str(rank), **(env or {})},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(ranks)
    ]
    said = []
    for process in started:
        try:
            output, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            output = "hangs: " + process.communicate()[0]
        said.append((process.returncode, output))
    return said


class Failures(unittest.TestCase):
    def refused(self, said, status, *words):
        for rank, (code, text) in enumerate(said):
            self.assertEqual(code, 7, f"rank {rank}: {text}")
            self.assertIn(f"[{status}]", text)
            for word in words:
                self.assertIn(word, text, f"rank {rank}")

    def test_manager_unreachable(self):
        with Fabric() as fabric:
            nobody = fabric.manager.replace(fabric.manager.split("//")[1].split("?")[0], "127.0.0.1:1")
            self.refused(join(nobody), -2, "127.0.0.1:1")

    def test_manager_stopped(self):
        with Fabric() as fabric:
            pid = fabric.processes()["manager"]
            send(pid, signal.SIGSTOP)
            try:
                self.refused(join(fabric.manager), -2)
            finally:
                send(pid, signal.SIGCONT)

    def test_over_quota(self):
        with Fabric() as fabric:
            self.refused(join(fabric.manager, quota={"streams": 60_000}), -5, "streams", "60000")

    def test_no_key_and_a_wrong_key(self):
        with Fabric() as fabric, Fabric() as other, tempfile.TemporaryDirectory() as empty:
            address, credentials = fabric.manager.split("?credentials=")
            self.refused(join(f"{address}?credentials={empty}"), -14)
            self.refused(join(f"{address}?credentials={other.manager.split('?credentials=')[1]}"), -14)
            self.assertTrue(all(code == 0 for code, _ in join(f"{address}?credentials={credentials}")))

    def test_groups_beyond_the_quota(self):
        code = """
import native
context = native.Context()
groups = []
try:
    for i in range(9):
        groups.append(context.group(tag=i))
except native.Failed as failed:
    assert failed.status == -5 and "quota of groups" in failed.text, failed
    assert len(groups) == 8, len(groups)
else:
    raise SystemExit("no refusal")
groups.pop().free()
context.group(tag=99)
context.finalize()
"""
        with Fabric() as fabric:
            env = rank_env(fabric, {"groups": 8})
            command = ["run", "-n", "4", "--", PYTHON, "-c", code]
            done = subprocess.run([TRIB, *command], env=env, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def killed(self, victim, counts):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            sign = pathlib.Path(folder) / "killed"
            argument = {"signal": str(sign), "counts": counts}
            with Ranks(fabric, 8, "loop_worker", "until_error", argument, quota={"deputies": 0}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 10, 30, "first operations")
                victims = {"rank": lambda: ranks.pids()[6], "node": lambda: fabric.processes()["leaf0"],
                           "root": lambda: fabric.processes()["root"]}
                pid = victims[victim]()
                sign.touch()
                send(pid, signal.SIGKILL)
                if victim == "rank":
                    # The launcher ends the other ranks after a while; they must have had their
                    # error before that.
                    output, _ = ranks.process.communicate(timeout=60)
                    self.assertIn("signal 9", output.replace("SIGKILL", "signal 9"))
                    return
                for rank, result in enumerate(ranks.results(timeout=60)):
                    self.assertEqual(result["status"], -3, f"rank {rank}: {result}")
                    self.assertLess(result["after"], 10, f"rank {rank}")
                    self.assertIn("node", result["text"])

    def test_leaf_node_killed(self):
        self.killed("node", [5])
        self.killed("node", [20_000])

    def test_root_node_killed(self):
        self.killed("root", [5, 20_000])

    def test_rank_killed(self):
        code = """
import os, signal, sys, time
import native, numpy as np
rank, size = int(sys.argv[1]), 4
context = native.Context(rank=rank, size=size)
group = context.group()
group.barrier().wait()
if rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
start = time.monotonic()
try:
    group.allreduce(np.ones(int(sys.argv[2]), np.int64), np.zeros(int(sys.argv[2]), np.int64), "int64", "sum").wait(20000)
    sys.exit("completed without rank 2")
except native.Failed as failed:
    assert failed.status == -7, failed
    assert "rank 2" in failed.text, failed
    assert time.monotonic() - start < 10
"""
        with Fabric() as fabric:
            for count in (4, 50_000):
                base = rank_env(fabric, None, {"TRIB_RENDEZVOUS": f"kill{time.time_ns()}", "TRIB_SIZE": "4"})
                started = [
                    subprocess.Popen([PYTHON, "-c", code, str(rank), str(count)], env={**base, "TRIB_RANK": str(rank)},
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    for rank in range(4)
                ]
                for rank, process in enumerate(started):
                    output, _ = process.communicate(timeout=40)
                    self.assertEqual(process.returncode, -signal.SIGKILL if rank == 2 else 0, f"rank {rank}: {output}")

if __name__ == "__main__":
    unittest.main()
