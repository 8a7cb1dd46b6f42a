"""What a job does when a node or a rank dies, by its policy: `recovery` is notify, retry or strict."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from harness import PYTHON, TRIB, Fabric, Ranks, rank_env, send

from test_failures import join

# Three operations of both paths at a time, until one fails. The rank that is to die kills the nodes
# first that are to die with it.
AGREE = """
import json, os, signal, sys, threading
import native, numpy as np
rank, size, dies, after, nodes = json.loads(sys.argv[1])
context = native.Context(rank=rank, size=size)
group = context.group()
group.barrier().wait()

def die():
    for pid in [*nodes, os.getpid()]:
        os.kill(pid, signal.SIGKILL)

if rank == dies:
    threading.Timer(after, die).start()
ends = []
while all(ends):
    calls = []
    for count in (5, 30_000, 1):
        mine, out = np.arange(count) + rank + len(ends), np.zeros(count, np.int64)
        try:
            calls.append((group.allreduce(mine, out, "int64", "sum"), out, size * mine + sum(range(size)) - size * rank))
        except native.Failed as failed:
            calls.append((failed, None, None))
    for request, out, wanted in calls:
        try:
            if isinstance(request, native.Failed):
                raise request
            request.wait(30_000)
            assert np.array_equal(out, wanted), (rank, len(ends))
            ends.append(True)
        except native.Failed as failed:
            text = failed.text
            ends.append(False)
print(json.dumps({"succeeded": sum(ends), "ends": ends[-3:], "text": text}))
group.free()
context.finalize()
"""


def explained(fabric, *more):
    command = [TRIB, "explain", "1", "--manager", fabric.manager, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


class Policies(unittest.TestCase):
    def survivors(self, fabric, dies, after, nodes=()):
        """What the other ranks of a strict job say when this one dies after so many seconds."""
        size, pids = 6, [fabric.processes()[name] for name in nodes]
        quota = {"recovery": "strict", "dead_after_ms": 3000}
        base = rank_env(fabric, quota, {"TRIB_RENDEZVOUS": f"agree{time.time_ns()}", "TRIB_SIZE": str(size)})
        started = [
            subprocess.Popen([PYTHON, "-c", AGREE, json.dumps([rank, size, dies, after, pids])],
                             env={**base, "TRIB_RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(size)
        ]
        try:
            said = [process.communicate(timeout=60) for process in started]
        finally:
            for process in started:
                process.kill()
        codes = [process.returncode for process in started]
        self.assertEqual(codes, [-signal.SIGKILL if rank == dies else 0 for rank in range(size)], said)
        return [json.loads(output) for rank, (output, _) in enumerate(said) if rank != dies]

    def test_the_survivors_of_a_strict_job_agree_on_every_operation(self):
        for dies, after, nodes in [(5, 0.3, ()), (0, 0.37, ()), (3, 0.41, ("leaf0",)), (2, 0.45, ("root",))]:
            with self.subTest(dies=dies, nodes=nodes), Fabric(backups=1) as fabric:
                ends = self.survivors(fabric, dies, after, nodes)
                print(f"rank {dies} and {list(nodes)} killed: {ends[0]['succeeded']} operations, then {ends[0]['ends']}")
                self.assertEqual([(end["succeeded"], end["ends"]) for end in ends], [(ends[0]["succeeded"], ends[0]["ends"])] * 5)
                self.assertGreater(ends[0]["succeeded"], 0)
                for end in ends:
                    # Of ranks that ended then, too, another may be the one that is named.
                    self.assertIn("died or lost its connection", end["text"])

    def test_a_strict_job_outlives_a_node_with_the_same_bits(self):
        with Fabric(backups=1) as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            argument = {"counts": [5, 9000, 300_000], "stop": str(stop)}
            with Ranks(fabric, 6, "loop_worker", "loop", argument, quota={"recovery": "strict"}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                self.assertIn("recovery strict", explained(fabric))
                self.assertEqual(json.loads(explained(fabric, "--json"))["job"]["limits"]["recovery"], "strict")
                send(fabric.processes()["leaf0"], signal.SIGKILL)
                before = ranks.progress(0)
                ranks.reach(lambda: ranks.progress(0) > before + 5, 60, "operations without the node")
                stop.touch()
                results = ranks.results(60)
        self.assertEqual(len({result["digest"] for result in results}), 1)
        self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results))

    def test_a_job_that_is_only_notified_ends_as_one_for_which_nobody_stands_by(self):
        texts = []
        for quota in ({"recovery": "notify"}, {"backups": 0, "deputies": 0}):
            with Fabric(backups=1) as fabric, tempfile.TemporaryDirectory() as folder:
                argument = {"counts": [5, 30_000], "signal": str(pathlib.Path(folder) / "signal")}
                with Ranks(fabric, 4, "loop_worker", "until_error", argument, quota=quota) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                    command = [TRIB, "jobs", "--json", "--manager", fabric.manager]
                    jobs = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout)
                    self.assertEqual([job["recovery"] for job in jobs["live"]], ["notify"])
                    send(fabric.processes()["leaf0"], signal.SIGKILL)
                    results = ranks.results(60)
                self.assertTrue(all("leaf0" in result["text"] for result in results), results)
                print(results[0]["text"])
                # Which operation it meets, or whether it meets the next one, depends on the moment.
                why = [result["text"].partition("node leaf0")[2] for result in results]
                texts.append([(result["status"], reason) for result, reason in zip(results, why)])
        self.assertEqual(texts[0], texts[1])

    def test_a_strict_job_for_which_nobody_stands_by_is_refused(self):
        with Fabric() as fabric:
            for rank, (code, text) in enumerate(join(fabric.manager, 2, {"recovery": "strict", "deputies": 0})):
                self.assertEqual(code, 7, f"rank {rank}: {text}")
                self.assertIn("recovery = strict", text)
                self.assertIn("neither a backup nor a deputy", text)
            for rank, (code, text) in enumerate(join(fabric.manager, 2, {"recovery": "careful"})):
                self.assertEqual(code, 7, f"rank {rank}: {text}")
                self.assertIn("recovery is notify, retry or strict", text)


if __name__ == "__main__":
    unittest.main()
