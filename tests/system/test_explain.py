"""`trib explain` says for what a job waits: for a rank that is stopped, or for a stream context
for which groups queue."""

import json
import signal
import subprocess
import unittest

from harness import TRIB, Fabric, Ranks, send, wait_until


def explain(fabric, job, *words, check=True):
    command = [TRIB, "explain", str(job), "--manager", fabric.manager, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=check)


class Explain(unittest.TestCase):
    def test_the_rank_that_others_wait_for(self):
        with Fabric() as fabric:
            argument = {"counts": [5], "iterations": 100_000, "pause": 0.001}
            with Ranks(fabric, 4, "loop_worker", "loop", argument) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 5 for r in range(4)), 30, "operations")
                ((job,)) = [job["id"] for job in fabric.status()["jobs"]]
                send(ranks.pids()[2], signal.SIGSTOP)

                def groups(which):
                    parts = json.loads(explain(fabric, which, "--json").stdout)["parts"]
                    return [group for hosted in parts for group in hosted["part"]["groups"]]

                def late():
                    return {late["rank"] for group in groups(job) for late in group["late"]}

                wait_until(lambda: 2 in late(), 30, "the node says who is late")
                text = explain(fabric, job).stdout
                who = rf"waits for rank 2 on \S+ \(PID {ranks.pids()[2]}\) to come to its \d+(st|nd|rd|th) operation"
                self.assertRegex(text, who + r", (allreduce of 5 int64 \(sum\)|bcast of 1 bytes from rank 0 of the group), for \d")
                self.assertIn("quota: groups", text)
                for word in ("  leaf0", "  leaf1", "root", "ranks 0-1 on", "ranks 2-3 on", "STATE"):
                    self.assertIn(word, text)
                (tag,) = {group["tag"] for group in groups(job) if 2 in {late["rank"] for late in group["late"]}}
                told = explain(fabric, f"{job}/{tag}").stdout
                self.assertIn(f"Group of ranks 0-3, tag {tag}\n", told)
                self.assertRegex(told, who)
                only = groups(f"{job}/{tag}")
                self.assertEqual({group["tag"] for group in only}, {tag})
                self.assertTrue(all(group["datagrams"]["count"] > 5 for group in only), only)
                unknown = explain(fabric, f"{job}/{tag + 1}", check=False)
                self.assertEqual(unknown.returncode, 1)
                self.assertIn(f"has no group with the tag {tag + 1}", unknown.stderr)
                send(fabric.processes()["leaf1"], signal.SIGSTOP)
                self.assertIn("node leaf1 does not answer", explain(fabric, job).stdout)
                send(fabric.processes()["leaf1"], signal.SIGCONT)
                send(ranks.pids()[2], signal.SIGCONT)

    def test_a_job_of_two_lanes_is_told_lane_by_lane(self):
        with Fabric() as fabric:
            argument = {"counts": [90_000], "iterations": 100_000, "pause": 0.001}
            quota = {"lanes": 2, "stripe_threshold": 4096}
            with Ranks(fabric, 4, "loop_worker", "loop", argument, quota=quota) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 5 for r in range(4)), 30, "operations")
                (job,) = fabric.status()["jobs"]
                self.assertEqual([(lane["tree"], lane["root"], lane["nodes"]) for lane in job["lanes"]], [(0, "root", 3)] * 2)
                parts = json.loads(explain(fabric, job["id"], "--json").stdout)["parts"]
                self.assertEqual([(part["part"]["node"], part["lane"]) for part in parts], [(n, n // 3) for n in range(6)])
                text = explain(fabric, job["id"]).stdout
                first, second = text.index("Lane 0: 50 %"), text.index("Lane 1: 50 %")
                self.assertTrue(first < text.index("\nleaf0 ") < second < text.rindex("\nleaf0 "), text)
                status = [TRIB, "status", "--manager", fabric.manager]
                table = subprocess.run(status, capture_output=True, text=True, timeout=30, check=True).stdout
                (row,) = [line.split() for line in table.splitlines() if line.split()[:1] == [str(job["id"])]]
                self.assertEqual(row[-3:], ["2", "root", "root,leaf0,leaf1"])

    def test_a_job_that_is_not_there(self):
        with Fabric() as fabric:
            for which in (4_000_000_000, "no-such-program"):
                done = explain(fabric, which, check=False)
                self.assertEqual(done.returncode, 1)
                # A program that never asked for a job cannot be known, and that is said.
                self.assertIn("started without TRIB_MANAGER", done.stderr)
                self.assertIn("trib jobs --all", done.stderr)


if __name__ == "__main__":
    unittest.main()
