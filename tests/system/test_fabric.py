"""`trib fabric up` again, while jobs run: what has died comes back as it was, and nothing that runs
is ended."""

import os
import signal
import subprocess
import unittest

from harness import TRIB, Fabric, Ranks, send, wait_until


def up_again(fabric, *options):
    command = [TRIB, "fabric", "up", "--local", "--name", fabric.name, *options]
    return subprocess.run(command, env={**os.environ, "TRIB_LOG": "info"}, capture_output=True, text=True, timeout=60)


def connected(fabric):
    return {node["name"] for node in fabric.status()["nodes"] if node["connected"]}


class UpAgain(unittest.TestCase):
    def loop(self, fabric):
        return Ranks(fabric, 2, "loop_worker", "loop", {"counts": [3, 700, 60_000], "iterations": 300, "pause": 0.02})

    def go_on(self, ranks):
        before = [ranks.progress(r) for r in range(2)]
        ranks.reach(lambda: all(ranks.progress(r) > before[r] + 5 for r in range(2)), 60, "more operations")

    def finish(self, ranks):
        self.assertEqual({result["iterations"] for result in ranks.results(120)}, {300})

    def test_a_dead_node_is_started_again_beside_a_running_job(self):
        # Two ranks are below the first two leaves: their job does not need the third.
        with Fabric(leaves=3) as fabric:
            processes = fabric.processes()
            send(processes["leaf2"], signal.SIGKILL)
            wait_until(lambda: "leaf2" not in connected(fabric), 30, "the manager misses leaf2")
            with self.loop(fabric) as ranks:
                self.go_on(ranks)
                again = up_again(fabric)
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertIn(fabric.manager, again.stdout)
                self.assertIn("leaf2 has ended and is started again", again.stderr)
                after = fabric.processes()
                self.assertNotEqual(after.pop("leaf2"), processes.pop("leaf2"))
                self.assertEqual(after, processes)
                wait_until(lambda: "leaf2" in connected(fabric), 30, "leaf2 is back")
                self.go_on(ranks)
                self.finish(ranks)

    def test_a_dead_manager_is_started_again_at_its_address_and_knows_the_job(self):
        with Fabric() as fabric, self.loop(fabric) as ranks:
            self.go_on(ranks)
            processes = fabric.processes()
            send(processes.pop("manager"), signal.SIGKILL)
            # On a busy machine it lives on for a moment, in which "up" finds everything running.
            wait_until(lambda: "manager" not in fabric.processes(), 30, "the manager is gone")
            again = up_again(fabric)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertIn(fabric.manager, again.stdout)
            after = fabric.processes()
            after.pop("manager")
            self.assertEqual(after, processes)
            jobs = lambda: [job["adopted"] for job in fabric.status()["jobs"]]
            wait_until(lambda: jobs() == [True], 30, "the new manager knows the job")
            self.finish(ranks)

    def test_another_shape_is_refused_while_a_job_runs(self):
        with Fabric() as fabric, self.loop(fabric) as ranks:
            self.go_on(ranks)
            processes = fabric.processes()
            again = up_again(fabric, "--leaves", "3")
            self.assertEqual((again.returncode, again.stdout), (1, ""))
            self.assertIn("take it down first", again.stderr)
            self.assertEqual(fabric.processes(), processes)
            self.finish(ranks)


if __name__ == "__main__":
    unittest.main()
