"""`trib explain` says whom a job waits for: a rank that is stopped, and groups in line for a stream context."""

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
                wait_until(lambda: all(ranks.progress(r) > 5 for r in range(4)), 30, "operations")
                ((job,)) = [job["id"] for job in fabric.status()["jobs"]]
                send(ranks.pids()[2], signal.SIGSTOP)

                def late():
                    parts = json.loads(explain(fabric, job, "--json").stdout)["parts"]
                    groups = [group for hosted in parts for group in hosted["part"]["groups"]]
                    return {late["rank"] for group in groups for late in group["late"]}

                wait_until(lambda: 2 in late(), 30, "the node says who is late")
                text = explain(fabric, job).stdout
                self.assertIn("waits for rank 2 to come to its operation", text)
                self.assertIn("quota: groups", text)
                for word in ("leaf0", "leaf1", "root", "rank 3", "open"):
                    self.assertIn(word, text)
                send(fabric.processes()["leaf1"], signal.SIGSTOP)
                self.assertIn("node leaf1 does not answer", explain(fabric, job).stdout)
                send(fabric.processes()["leaf1"], signal.SIGCONT)
                send(ranks.pids()[2], signal.SIGCONT)

    def test_a_job_that_is_not_there(self):
        with Fabric() as fabric:
            for which in (4_000_000_000, "no-such-program"):
                done = explain(fabric, which, check=False)
                self.assertEqual(done.returncode, 1)
                # What never asked cannot be known, and that is said.
                self.assertIn("started without TRIB_MANAGER", done.stderr)
                self.assertIn("trib jobs --all", done.stderr)


if __name__ == "__main__":
    unittest.main()
