"""A node dies under a running job, and the job does not notice: another process hosts its logical node,
and every operation ends with the bits that it would have had."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from harness import PYTHON, TRIB, Fabric, Ranks, rank_env, send, wait_until

import test_random_collectives


def explained(fabric):
    """What `trib explain` says of the fabric's first job."""
    command = [TRIB, "explain", "1", "--json", "--manager", fabric.manager]
    said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    return json.loads(said)


class Recovery(unittest.TestCase):
    def results(self, fabric, act, ranks=8, counts=(5, 9000, 300_000)):
        """What the ranks of a job say that runs while `act` does something to the fabric."""
        with tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            with Ranks(fabric, ranks, "loop_worker", "loop", {"counts": list(counts), "stop": str(stop)}) as running:
                self.running = running
                running.reach(lambda: running.progress(0) > 5, 30, "first operations")
                act()
                self.await_operations("after it")
                stop.touch()
                results = running.results(60)
        self.assertEqual(len({result["digest"] for result in results}), 1)
        return results

    def await_operations(self, when):
        before = self.running.progress(0)
        self.running.reach(lambda: self.running.progress(0) > before + 5, 60, f"operations {when}")

    def test_a_job_outlives_every_node_of_its_tree(self):
        for name in ("leaf0", "leaf1", "root"):
            with self.subTest(name), Fabric(backups=1) as fabric:
                pid = fabric.processes()[name]
                began = time.monotonic()
                results = self.results(fabric, lambda: send(pid, signal.SIGKILL))
                # Those that had the dead node above them, and those that were told.
                self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results), name)
                print(f"{name} killed: over after {time.monotonic() - began:.1f} s")

    def test_what_was_replayed_is_told_with_its_epoch(self):
        def figures():
            """{epoch: the fragments replayed in it}"""
            told = [(epoch["moves"], epoch.get("replayed", {}).get("fragments", 0)) for epoch in explained(fabric)["epochs"]]
            return {moves: sum(count for other, count in told if other == moves) for moves, _ in told}

        def late():
            """How many ranks are below each edge that others wait for, and the first of them."""
            groups = [group for hosted in explained(fabric)["parts"] for group in hosted["part"]["groups"]]
            return sorted((late["ranks"], late["rank"]) for group in groups for late in group["late"])

        with tempfile.TemporaryDirectory() as folder, Fabric(backups=1) as fabric:
            stop = pathlib.Path(folder) / "stop"
            with Ranks(fabric, 8, "loop_worker", "loop", {"counts": [5], "stop": str(stop)}) as ranks:

                def lose(name):
                    """The node dies while others wait for rank 7: what they have sent has no result."""
                    send(ranks.pids()[7], signal.SIGSTOP)
                    wait_until(lambda: late() == [(1, 7), (4, 4)], 30, "all others wait")
                    send(fabric.processes()[name], signal.SIGKILL)
                    send(ranks.pids()[7], signal.SIGCONT)
                    before = ranks.progress(0)
                    ranks.reach(lambda: ranks.progress(0) > before + 5, 60, "operations after it")

                ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                self.assertEqual(figures(), {})
                lose("leaf0")
                first = figures()
                self.assertGreater(sum(first.values()), 0, first)
                lose("leaf1")
                second = figures()
                self.assertEqual({epoch: second[epoch] for epoch in first}, first, "an epoch that is over")
                self.assertGreater(sum(second.values()), sum(first.values()), second)
                command = [TRIB, "explain", "1", "--manager", fabric.manager]
                text = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
                self.assertRegex(text, r"epoch \d+, .* replayed \d+ fragments? \(.+B\)")
                command = [TRIB, "jobs", "--json", "--manager", fabric.manager]
                jobs = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout)
                whole = [jobs["live"][0]["replayed"]["fragments"], fabric.status()["homes"][0]["replayed"]["fragments"],
                         fabric.node_counters()["root"]["fragments_replayed"]]
                self.assertEqual(whole, [sum(second.values())] * 3, second)
                stop.touch()
                results = ranks.results(60)
        self.assertTrue(all(result["counters"]["replayed"] > 0 for result in results[:7]), results)

    def test_random_collectives_have_the_same_bits_when_a_node_dies_among_them(self):
        seed, number, most = 7, 60, 1 << 18
        wanted = test_random_collectives.expected(seed, number, most)
        argument = {"seed": seed, "number": number, "most": most, "shuffled": True, "shuffle_seed": seed}
        with Fabric(backups=1) as fabric:
            # The ranks may keep less for each other than one long call takes.
            with Ranks(fabric, 8, "random_worker", "run", argument, quota={"rank_memory": 50_000}) as ranks:
                ranks.reach(lambda: ranks.progress(0) >= number // 4, 60, "a quarter of the calls")
                send(fabric.processes()["leaf1"], signal.SIGKILL)
                results = ranks.results(180)
        for rank, (result, want) in enumerate(zip(results, wanted)):
            self.assertEqual([i for i in want if result["digests"].get(i) != want[i]], [], f"rank {rank}")
        self.assertTrue(any(result["counters"]["epochs"] for result in results), "the node died too late")

    def test_a_stopped_node_is_left_behind_and_does_no_harm_when_it_wakes(self):
        with Fabric(backups=1) as fabric:
            pid = fabric.processes()["leaf0"]
            try:
                results = self.results(fabric, lambda: send(pid, signal.SIGSTOP))
            finally:
                send(pid, signal.SIGCONT)
            self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results))

    def test_ranks_host_the_tree_when_no_node_is_left(self):
        with Fabric() as fabric:
            def kill_all():
                for name, pid in fabric.processes().items():
                    if name != "manager":
                        send(pid, signal.SIGKILL)

            results = self.results(fabric, kill_all)
            self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results))

    def test_random_collectives_have_the_same_bits_when_ranks_host_the_tree(self):
        seed, number, most = 11, 40, 1 << 16
        wanted = test_random_collectives.expected(seed, number, most)
        argument = {"seed": seed, "number": number, "most": most, "shuffled": True, "shuffle_seed": seed}
        with Fabric() as fabric:
            with Ranks(fabric, 8, "random_worker", "run", argument) as ranks:
                ranks.reach(lambda: ranks.progress(0) >= number // 4, 60, "a quarter of the calls")
                for name in ("leaf0", "root"):
                    send(fabric.processes()[name], signal.SIGKILL)
                results = ranks.results(180)
        for rank, (result, want) in enumerate(zip(results, wanted)):
            self.assertEqual([i for i in want if result["digests"].get(i) != want[i]], [], f"rank {rank}")
        self.assertTrue(any(result["counters"]["epochs"] for result in results), "the nodes died too late")

    def test_what_is_left_of_a_job_without_rank_0_outlives_the_nodes(self):
        code = """
import os, pathlib, signal, sys
import native, numpy as np
rank, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
context = native.Context(rank=rank, size=4)
world, group = context.group(), context.group([1, 2, 3], tag=1) if rank else None
world.barrier().wait()
if rank == 0:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    world.barrier().wait(20000)
    sys.exit("completed without rank 0")
except native.Failed as failed:
    assert "rank 0" in failed.text, failed
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
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            base = rank_env(fabric, None, {"TRIB_RENDEZVOUS": f"orphans{time.time_ns()}", "TRIB_SIZE": "4"})
            started = [
                subprocess.Popen([PYTHON, "-c", code, str(rank), folder], env={**base, "TRIB_RANK": str(rank)},
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(4)
            ]
            done = pathlib.Path(folder) / "1"
            operations = lambda: int(done.read_text()) if done.exists() else 0
            try:
                wait_until(lambda: operations() > 5, 60, "operations without rank 0")
                for name in ("leaf0", "leaf1", "root"):
                    send(fabric.processes()[name], signal.SIGKILL)
                before = operations()
                wait_until(lambda: operations() > before + 5, 60, "operations without nodes")
                (pathlib.Path(folder) / "stop").touch()
            finally:
                said = [process.communicate(timeout=60) for process in started]
        self.assertEqual([process.returncode for process in started], [-signal.SIGKILL, 0, 0, 0], said)
        self.assertTrue(all(int(output) >= 1 for output, _ in said[1:]), said)

    def test_daemons_that_are_told_to_end_hand_their_nodes_over(self):
        with Fabric() as fabric:
            said = []

            def end_all():
                for name in ("leaf0", "root", "leaf1"):
                    pid = fabric.processes()[name]
                    send(pid, signal.SIGTERM)
                    wait_until(lambda: name not in fabric.processes(), 30, f"{name} has ended")
                    # Who is still on the way to the next one that ends finds that out by itself.
                    self.await_operations(f"without {name}")
                wait_until(lambda: len(explained(fabric)["parts"]) == 3, 30, "all nodes are at ranks")
                said.append(explained(fabric))

            results = self.results(fabric, end_all)
            self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results))
        self.assertTrue(all(home["moves"] for home in said[0]["homes"]), said[0]["homes"])
        causes = [epoch["cause"] for epoch in said[0]["epochs"]]
        self.assertEqual([cause for cause in causes if cause != "told"], [], "nobody has had to find out")

    def test_ranks_that_host_nodes_and_leave_one_by_one_hand_them_over(self):
        code = """
import os, pathlib, sys
import native, numpy as np
rank, size, folder = int(sys.argv[1]), 6, pathlib.Path(sys.argv[2])
context = native.Context(rank=rank, size=size)
# Stage n is over for rank n + 1 when it ends. Rank 0 holds the job.
groups = [context.group([0, *range(stage + 1, size)], tag=stage) for stage in range(size - 1)
          if rank == 0 or rank > stage]
done = 0
for stage, group in enumerate(groups):
    members, over = np.array([0, *range(stage + 1, size)]), np.zeros(1, np.int64)
    while not over[0]:
        for count in (5, 30_000):
            out = np.zeros(count, np.int64)
            group.allreduce(np.arange(count) + rank + done, out, "int64", "sum").wait(30000)
            assert np.array_equal(out, len(members) * (np.arange(count) + done) + members.sum()), (rank, done)
        done += 1
        (folder / f"{rank}.tmp").write_text(f"{stage} {done}")
        os.replace(folder / f"{rank}.tmp", folder / str(rank))
        mine = np.array([(folder / f"end{stage}").exists()], np.int64)
        group.allreduce(mine, over, "int64", "max").wait(30000)
    group.free()
context.finalize()
"""
        with Fabric() as fabric, tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            # With fewer deputies all those of a node would have left before the end.
            base = rank_env(fabric, {"deputies": 4}, {"TRIB_RENDEZVOUS": f"leaving{time.time_ns()}", "TRIB_SIZE": "6"})
            started = [
                subprocess.Popen([PYTHON, "-c", code, str(rank), name], env={**base, "TRIB_RANK": str(rank)},
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(6)
            ]

            def reached():
                return [int(word) for word in (folder / "0").read_text().split()] if (folder / "0").exists() else [0, 0]

            def moves():
                return sum(home["moves"] for home in explained(fabric)["homes"])

            found = []
            try:
                wait_until(lambda: reached()[1] > 5, 60, "operations")
                for node in ("leaf0", "leaf1", "root"):
                    send(fabric.processes()[node], signal.SIGKILL)
                before = reached()[1]
                wait_until(lambda: reached()[1] > before + 5, 60, "operations without nodes")
                wait_until(lambda: moves() >= 3, 30, "the ranks have told")
                killed = moves()
                for stage in range(5):
                    (folder / f"end{stage}").touch()
                    started[stage + 1].wait(60)
                    if stage < 4:
                        before = reached()[1]
                        wait_until(lambda: reached()[1] > before + 5, 60, f"operations without rank {stage + 1}")
                        found = explained(fabric)["epochs"]
                        now = moves()
            finally:
                said = [process.communicate(timeout=60) for process in started]
        self.assertEqual([process.returncode for process in started], [0] * 6, said)
        self.assertGreater(now, killed, "none of those that left hosted anything")
        # Nobody has had to find out by a connection that ended.
        later = [epoch for epoch in found if epoch["moves"] > killed]
        self.assertEqual([epoch for epoch in later if epoch["cause"] != "told"], [])

    def test_a_job_that_declines_both_ends_its_groups_with_a_dead_node(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            killed = pathlib.Path(folder) / "killed"
            argument = {"counts": [5, 9000], "signal": str(killed)}
            with Ranks(fabric, 8, "loop_worker", "until_error", argument, quota={"deputies": 0}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 20, 30, "first operations")
                send(fabric.processes()["leaf0"], signal.SIGKILL)
                killed.touch()
                results = ranks.results()
            for rank, result in enumerate(results):
                self.assertIn("node leaf0", result["text"], f"rank {rank}")


if __name__ == "__main__":
    unittest.main()
