"""Rank 0 dies, and its job goes on: the manager keeps it until its last rank is gone."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from harness import PYTHON, rank_env, send, wait_until
from test_manager_restart import Kept

#: Rank 0 dies when all have met; the others go on in a group without it, until a file says so.
PROGRAM = """
import os, pathlib, signal, sys
import native, numpy as np
rank, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
context = native.Context(rank=rank, size=4)
world, group = context.group(), context.group([1, 2, 3], tag=1) if rank else None
world.barrier().wait()
if rank == 0:
    os.kill(os.getpid(), signal.SIGKILL)
operations, over = 0, np.zeros(1, np.int64)
while not over[0]:
    for count in (5, 30_000):
        out = np.zeros(count, np.int64)
        group.allreduce(np.arange(count) + rank + operations, out, "int64", "sum").wait(30000)
        assert np.array_equal(out, 3 * (np.arange(count) + operations) + 6), (rank, operations)
    operations += 1
    (folder / f"{rank}.tmp").write_text(str(operations))
    os.replace(folder / f"{rank}.tmp", folder / str(rank))
    mine = np.array([(folder / "stop").exists()], np.int64)
    group.allreduce(mine, over, "int64", "max").wait(30000)
group.free()
print(context.counters()["epochs"])
context.finalize()
"""


class Orphans:
    """Four ranks without a launcher, of which rank 0 dies."""

    def __init__(self, fabric):
        self.folder = tempfile.TemporaryDirectory(prefix="trib-orphans-")
        base = rank_env(fabric, None, {"TRIB_RENDEZVOUS": f"orphans{time.time_ns()}", "TRIB_SIZE": "4"})
        self.ranks = [
            subprocess.Popen([PYTHON, "-c", PROGRAM, str(rank), self.folder.name], env={**base, "TRIB_RANK": str(rank)},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(4)
        ]

    def operations(self):
        done = pathlib.Path(self.folder.name) / "1"
        return int(done.read_text()) if done.exists() else 0

    def stop(self):
        (pathlib.Path(self.folder.name) / "stop").touch()

    def said(self):
        return [process.communicate(timeout=60) for process in self.ranks]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.ranks:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.folder.cleanup()


def live(fabric):
    return json.loads(fabric.told("jobs", "--json"))["live"]


class LastRank(unittest.TestCase):
    def test_a_job_goes_on_without_rank_0_also_when_a_node_dies_and_ends_with_its_last_rank(self):
        with Kept() as fabric, Orphans(fabric) as orphans:
            wait_until(lambda: orphans.operations() > 5, 60, "operations without rank 0")
            wait_until(lambda: live(fabric) and live(fabric)[0].get("lost_ms"), 30, "the manager misses rank 0")
            (job,) = live(fabric)
            self.assertEqual((job["ranks"], job["activity"]["ranks"], job["adopted"]), (4, 3, False))
            number = str(job["id"])
            self.assertRegex(fabric.told("jobs"), f"job {number} goes on without its rank 0 for ")
            self.assertRegex(fabric.told("explain", number), "admitted .* ago, without its rank 0 for ")
            # The rank that dies is rank 0 of world: leaf1 has others of its ranks.
            fabric.nodes["leaf1"].process.kill()
            fabric.nodes["leaf1"].process.wait(20)
            before = orphans.operations()
            wait_until(lambda: orphans.operations() > before + 5, 60, "operations without the node")
            wait_until(lambda: [home["name"] for home in live(fabric)[0].get("moved", [])] == ["leaf1"], 30, "it is told")
            where = ["--manager", fabric.manager, "--listen", "127.0.0.1:0"]
            fabric.start("leaf1-again", ["an", "--name", "leaf1", *where], None)
            wait_until(lambda: all(node["connected"] for node in fabric.status()["nodes"]), 30, "a new node")
            orphans.stop()
            said = orphans.said()
            self.assertEqual([process.returncode for process in orphans.ranks], [-signal.SIGKILL, 0, 0, 0], said)
            self.assertTrue(all(int(output) >= 1 for output, _ in said[1:]), said)
            wait_until(lambda: not live(fabric), 30, "the job ends")
            (ended,) = json.loads(fabric.told("jobs", "--ended", "--json"))["past"]
            self.assertIn(ended["state"], ("failed", "lost"))

    def test_a_program_that_is_killed_as_a_whole_gives_its_quota_back_at_once(self):
        with Kept() as fabric, Orphans(fabric) as orphans:
            wait_until(lambda: orphans.operations() > 5, 60, "operations without rank 0")
            wait_until(lambda: live(fabric)[0].get("lost_ms"), 30, "the manager misses rank 0")
            for process in orphans.ranks[1:]:
                send(process.pid, signal.SIGKILL)
            killed = time.monotonic()
            held = lambda: [node["counters"].get("jobs", 0) for node in fabric.status()["nodes"]]
            # Nodes by themselves wait ten seconds for other ranks, at each level of the tree.
            wait_until(lambda: not live(fabric) and not any(held()), 9, "the job is gone at manager and nodes")
            print(f"gone {time.monotonic() - killed:.1f} s after its last rank")


if __name__ == "__main__":
    unittest.main()
