"""Many jobs: all are admitted, run and end, and nothing stays of them but one line each that
says how the job ended or why it was refused."""

import json
import pathlib
import signal
import subprocess
import time
import unittest

from daemons import ONE_NODE, Watched
from harness import TRIB, Fabric, Ranks, resident_bytes, send, wait_until


def start(manager, *words):
    command = [TRIB, "bench", "jobs", "--json", "--manager", manager, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process, timeout=120):
    try:
        said, complaints = process.communicate(timeout=timeout)
    finally:
        process.kill()
    found = json.loads(said)
    assert process.returncode == 0 and found["failed"] == 0, complaints
    return found


def held(pid):
    """Memory in bytes, descriptors and threads of a daemon."""
    process = pathlib.Path(f"/proc/{pid}")
    return resident_bytes(pid), len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


class Jobs(unittest.TestCase):
    def test_a_thousand_jobs_leave_nothing_behind(self):
        with Fabric() as fabric:
            def everything():
                return {name: held(pid) for name, pid in fabric.processes().items()}

            def fewest():
                """A node opens a file of /proc every half second: one look alone may count it."""
                looks = []
                for _ in range(5):
                    looks.append(everything())
                    time.sleep(0.02)
                return {name: tuple(map(min, zip(*(look[name] for look in looks)))) for name in looks[0]}

            def at_rest():
                """On a busy machine a daemon's last thread begins after the fabric is up."""
                before = fewest()
                while True:
                    time.sleep(0.5)
                    now = fewest()
                    if all(now[name][1:] == before[name][1:] for name in now):
                        return now
                    before = now

            def is_quiet(before):
                now = everything()
                return not fabric.status()["jobs"] and all(now[name][1:] == before[name][1:] for name in before)

            fresh = at_rest()
            found = outcome(start(fabric.manager, "--jobs", "500", "--at-once", "64"))
            wait_until(lambda: is_quiet(fresh), 30, "the first half is gone")
            half = everything()
            again = outcome(start(fabric.manager, "--jobs", "500", "--at-once", "64"))
            wait_until(lambda: is_quiet(fresh), 30, "the second half is gone")
            whole = everything()
            self.assertEqual((found["jobs"], again["jobs"]), (500, 500))
            for name in fresh:
                grown = whole[name][0] - half[name][0]
                # This is what the allocator itself varies by; a job's buffers are megabytes.
                self.assertLess(grown, 64 << 20, f"{name} grew with the second half")
            rates = f"{found['jobs_per_second']:.0f} and {again['jobs_per_second']:.0f} jobs a second"
            memory = {name: f"{whole[name][0] >> 20} MiB" for name in fresh}
            print(f"{rates}, 64 at once; joining took {found['join_us']['median'] / 1000:.0f} ms; afterwards {memory}")

    def test_ten_thousand_groups_at_once(self):
        with Fabric() as fabric:
            process = start(fabric.manager, "--jobs", "64", "--at-once", "64", "--groups", "160", "--operations", "0", "--hold", "6")
            wait_until(lambda: groups(fabric) >= 64 * 160, 60, "all groups are there")
            memory = {name: f"{held(pid)[0] >> 20} MiB" for name, pid in fabric.processes().items()}
            outcome(process)
            wait_until(lambda: groups(fabric) == 0, 30, "all groups are gone")
            print(f"{64 * 160} groups of 64 jobs: {memory}")


def trib(fabric, *words):
    command = [TRIB, *words, "--manager", fabric.manager]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def listed(fabric, *words):
    return json.loads(trib(fabric, "jobs", "--json", *words))


class Lists(unittest.TestCase):
    def test_a_job_stands_in_the_list_while_it_runs_and_how_it_ended_afterwards(self):
        with Fabric() as fabric:
            self.assertIn("no such jobs on", trib(fabric, "jobs"))
            loop = {"counts": [5], "iterations": 100_000, "pause": 0.001}
            with Ranks(fabric, 4, "loop_worker", "loop", loop) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 5 for r in range(4)), 30, "operations")
                (job,) = listed(fabric)["live"]
                self.assertEqual((job["state"], job["ranks"], job["root"], job["nodes"]["count"]), ("running", 4, "root", 3))
                self.assertEqual((job["activity"]["ranks"], job["hosts"]["count"]), (4, 1))
                self.assertLess(job["activity"]["idle_ms"], 3_000)
                line = trib(fabric, "jobs").splitlines()[1].split()
                self.assertEqual(line[:3], [str(job["id"]), "running", job["name"]])
                send(ranks.pids()[2], signal.SIGSTOP)
                wait_until(lambda: listed(fabric)["live"][0]["activity"]["idle_ms"] > 1_500, 30, "the job is idle")
                send(ranks.pids()[2], signal.SIGCONT)
                send(ranks.pids()[0], signal.SIGKILL)
                wait_until(lambda: listed(fabric, "--ended")["past"], 30, "the job has ended")
                # Else the end of this block would interrupt the launcher, and be the reason.
                ranks.process.wait(30)
            with Ranks(fabric, 2, "loop_worker", "loop", {"counts": [5], "iterations": 3}) as ranks:
                ranks.results(60)
            wait_until(lambda: len(listed(fabric, "--ended")["past"]) == 2, 30, "the second job has ended")
            killed, ended = listed(fabric, "--ended")["past"]
            self.assertEqual((ended["state"], ended["fallback"]), ("ended", None))
            self.assertEqual((killed["id"], killed["state"], killed["root"]), (job["id"], "failed", "root"))
            self.assertIn("rank 0 was ended by signal 9 (SIGKILL)", trib(fabric, "explain", str(job["id"])))

    def test_a_job_that_works_over_memory_alone_is_not_idle(self):
        with Fabric(shared_host=True) as fabric:
            with Ranks(fabric, 2, "loop_worker", "loop", {"counts": [5], "pause": 0.05}) as ranks:
                # Nodes see none of these. Without a word from the ranks the job would be idle.
                ranks.reach(lambda: all(ranks.progress(r) > 80 for r in range(2)), 60, "four seconds of operations")
                (job,) = listed(fabric)["live"]
                self.assertEqual(job["state"], "running")
                self.assertLess(job["activity"]["idle_ms"], 3_000)
                send(ranks.pids()[1], signal.SIGSTOP)
                wait_until(lambda: listed(fabric)["live"][0]["activity"]["idle_ms"] > 3_500, 30, "the job is idle")
                send(ranks.pids()[1], signal.SIGCONT)

    def ended(self, fabric, is_told):
        """The only job, once it has ended and is told of as `is_told` wants; its line, too."""
        wait_until(lambda: any(is_told(job) for job in listed(fabric, "--ended")["past"]), 30, "how the job ended")
        (job,) = listed(fabric, "--ended")["past"]
        return job, trib(fabric, "jobs", "--ended").splitlines()[1]

    def test_a_job_whose_ranks_disagreed_says_so(self):
        with Fabric() as fabric:
            argument = {"rank": 2, "odd": 7, "even": 8, "die": True}
            with Ranks(fabric, 4, "loop_worker", "disagree", argument) as ranks:
                with self.assertRaises(AssertionError):
                    ranks.results(60)
            job, line = self.ended(fabric, lambda job: job["state"] == "failed" and all(job["outcome"]["failed"].values()))
            self.assertRegex(job["outcome"]["failed"]["fault"], r"ranks disagree about the operation: rank [0-3] on \S+ \(PID \d+\) called")
            self.assertRegex(job["outcome"]["failed"]["launcher"], "rank [0-3] exited with code 3")
            self.assertIn("ranks disagree about the operation", line)
            print(line)

    def test_an_interrupted_job_says_by_what(self):
        with Fabric() as fabric:
            with Ranks(fabric, 4, "loop_worker", "loop", {"counts": [5], "pause": 0.01}) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 5 for r in range(4)), 30, "operations")
                ranks.process.send_signal(signal.SIGINT)
                ranks.process.wait(30)
            job, line = self.ended(fabric, lambda job: job["state"] == "interrupted")
            self.assertEqual(job["outcome"], {"interrupted": {"signal": "SIGINT"}})
            self.assertIn("SIGINT", line)
            print(line)

    def test_a_refused_job_is_listed_and_explained_with_all_that_is_known(self):
        with Fabric() as fabric:
            send(fabric.processes()["leaf1"], signal.SIGKILL)
            wait_until(lambda: any(not node["connected"] for node in fabric.status()["nodes"]), 30, "leaf1 is away")
            time.sleep(1.2)
            for _ in range(2):
                with Ranks(fabric, 2, "loop_worker", "loop", {"counts": [5], "iterations": 1}) as ranks:
                    with self.assertRaisesRegex(AssertionError, "leaf1 of the job's tree is not connected"):
                        ranks.results(60)
            report = listed(fabric, "--refused")
            (job,) = report["past"]
            refusal = job["outcome"]["refused"]
            self.assertEqual((job["state"], job["times"], job["ranks"]), ("refused", 2, 2))
            self.assertEqual((refusal["resource"], refusal["asked"], refusal["available"]), ("node", 3, 2))
            self.assertEqual(refusal["holder"], "leaf1")
            self.assertGreater(report["time_ms"] - refusal["since_ms"], 1_000, "since it went away")
            self.assertLess(report["time_ms"] - refusal["since_ms"], 60_000)
            (line,) = [line for line in trib(fabric, "jobs", "--refused").splitlines() if "leaf1" in line]
            self.assertEqual(line.split()[:2], [str(job["id"]), "refused"])
            for which in (str(job["id"]), job["name"]):
                text = trib(fabric, "explain", which)
                self.assertIn("refused 2 times", text)
                self.assertIn("resource node: asked 3, available 2, holder leaf1, so for", text)
            self.assertEqual(json.loads(trib(fabric, "explain", job["name"], "--json")), {k: v for k, v in job.items() if k != "state"})

    def test_a_job_that_was_admitted_and_could_not_be_used_says_why(self):
        elsewhere = ONE_NODE.replace('name = "*"', 'name = "h0"\naddress = "192.0.2.1"')
        with Watched(topology=elsewhere) as fabric:
            fabric.manager = fabric.url
            loop = {"counts": [5], "iterations": 1}
            # A second rank that fails first would have the launcher end rank 0 before it spoke.
            with Ranks(fabric, 1, "loop_worker", "loop", loop, env={"TRIB_HOST": "h0"}) as ranks:
                with self.assertRaisesRegex(AssertionError, "leaf0"):
                    ranks.results(60)
            wait_until(lambda: listed(fabric, "--ended")["past"], 30, "the job has ended")
            (job,) = listed(fabric, "--ended")["past"]
            self.assertEqual(job["state"], "given_up")
            self.assertIn("aggregation node leaf0", job["outcome"]["given_up"]["why"])
            self.assertIn("could not use it: ", trib(fabric, "explain", job["name"]))


def groups(fabric):
    """Groups alive at the busiest node."""
    told = [node["counters"] for node in fabric.status()["nodes"] if node["counters"]]
    return max((counters["groups_made"] - counters["groups_freed"] for counters in told), default=0)


if __name__ == "__main__":
    unittest.main()
