"""The manager is killed and started again while jobs run: no job is harmed, and none is
forgotten."""

import json
import pathlib
import subprocess
import tempfile
import time
import unittest

from daemons import TWO_LEVELS, Watched
from harness import TRIB, Ranks, wait_until
from test_jobs import outcome, start


class Kept(Watched):
    """A manager that keeps its jobs in a file, and three nodes."""

    def __init__(self):
        self.kept = tempfile.TemporaryDirectory(prefix="trib-restart-")
        super().__init__(manager=["--state", pathlib.Path(self.kept.name) / "jobs"], topology=TWO_LEVELS)
        self.manager = self.url
        self.managers = 1

    def __exit__(self, *words):
        super().__exit__(*words)
        self.kept.cleanup()

    def kill_manager(self):
        self.am.process.kill()
        self.am.process.wait(20)

    def start_manager(self):
        """Starts another manager at the address of the first."""
        self.managers += 1
        options = ["--topology", self.folder / "topology.toml", "--credentials", self.folder / "keys"]
        options += ["--state", pathlib.Path(self.kept.name) / "jobs", "--listen", self.am.said["X_TRIB_ADDRESS"]]
        self.am = self.start(f"am{self.managers}", ["am", *options], None)
        self.am.wait_for("X_TRIB_ADDRESS")

    def kill_nodes(self):
        for node in self.nodes.values():
            node.process.kill()
            node.process.wait(20)

    def start_nodes(self):
        """Starts all nodes again, which have forgotten everything."""
        where = ["--manager", self.manager, "--listen", "127.0.0.1:0"]
        self.nodes = {name: self.start(f"{name}-again", ["an", "--name", name, *where], None) for name in self.nodes}

    def told(self, *words):
        done = subprocess.run([TRIB, *words, "--manager", self.manager], capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout

    def status(self):
        command = [TRIB, "status", "--json", "--manager", self.manager]
        return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout)

    def past(self):
        command = [TRIB, "jobs", "--all", "--json", "--manager", self.manager]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return [(job["id"], str(job["outcome"]), job["ended_ms"]) for job in json.loads(done.stdout)["past"]]

    def jobs(self):
        return [(job["id"], job["adopted"]) for job in self.status()["jobs"]]


class Restart(unittest.TestCase):
    def test_a_job_outlives_its_manager_and_is_remembered(self):
        with Kept() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            argument = {"counts": [3, 700, 60_000], "stop": str(stop), "pause": 0.02}
            with Ranks(fabric, 4, "loop_worker", "loop", argument) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 20 for r in range(4)), 90, "operations")
                ((job, adopted),) = fabric.jobs()
                self.assertFalse(adopted)
                fabric.kill_manager()
                before = [ranks.progress(r) for r in range(4)]
                ranks.reach(lambda: all(ranks.progress(r) > before[r] + 5 for r in range(4)), 30, "operations without a manager")
                fabric.start_manager()
                wait_until(lambda: fabric.jobs() == [(job, True)], 30, "the new manager knows the job")
                before = [ranks.progress(r) for r in range(4)]
                ranks.reach(lambda: all(ranks.progress(r) > before[r] + 5 for r in range(4)), 30, "operations beside the new manager")
                stop.touch()
                results = ranks.results(60)
            self.assertEqual(len({result["iterations"] for result in results}), 1)
            # It has no connection to the manager that could end it: the nodes tell that its ranks
            # are gone. They themselves wait ten seconds for others at each level of the tree.
            ended = time.monotonic()
            wait_until(lambda: fabric.jobs() == [], 15, "the job is forgotten")
            print(f"forgotten {time.monotonic() - ended:.1f} s after its ranks")
            wait_until(lambda: all(node["connected"] for node in fabric.status()["nodes"]), 30, "all nodes are back")
            with Ranks(fabric, 4, "loop_worker", "loop", {"counts": [9], "iterations": 5}) as ranks:
                self.assertEqual(len(ranks.results(60)), 4)
            # How the job ended was written together with its end, so the next manager knows it.
            wait_until(lambda: len(fabric.past()) == 2, 30, "both jobs have ended")
            told = fabric.past()
            fabric.kill_manager()
            fabric.start_manager()
            self.assertEqual(fabric.past(), told)
            self.assertEqual(told[0][0], job)

    def test_a_job_whose_nodes_are_at_its_ranks_lasts_as_long_as_they_do(self):
        with Kept() as fabric, tempfile.TemporaryDirectory() as folder:
            stop = pathlib.Path(folder) / "stop"
            with Ranks(fabric, 4, "loop_worker", "loop", {"counts": [3, 60_000], "stop": str(stop)}) as ranks:
                ranks.reach(lambda: ranks.progress(0) > 5, 90, "operations")
                ((job, _),) = fabric.jobs()
                fabric.kill_manager()
                fabric.kill_nodes()
                before = ranks.progress(0)
                ranks.reach(lambda: ranks.progress(0) > before + 5, 60, "operations without nodes")
                fabric.start_manager()
                fabric.start_nodes()
                wait_until(lambda: all(node["connected"] for node in fabric.status()["nodes"]), 60, "new nodes")

                def live():
                    return json.loads(fabric.told("jobs", "--json"))["live"]

                def ranks_told():
                    return (live()[0]["activity"] or {"ranks": 0})["ranks"]

                wait_until(lambda: ranks_told() == 4, 30, "all ranks that host nodes have told what they host")
                parts = lambda: json.loads(fabric.told("explain", str(job), "--json"))["parts"]
                wait_until(lambda: len(parts()) == 3, 30, "the one that hosts the root is among them")
                (line,) = live()
                self.assertEqual((line["id"], line["adopted"], line["state"]), (job, True, "running"))
                self.assertEqual({home["name"] for home in line["moved"]}, {"root", "leaf0", "leaf1"})
                told = fabric.told("jobs") + fabric.told("status") + fabric.told("explain", str(job))
                print(told)
                for home in line["moved"]:
                    self.assertRegex(home["at"], r"^rank [0-3] on \S+$")
                    self.assertIn(f"{home['name']} is at {home['at']} after {home['moves']} move", told)
                self.assertRegex(told, r"\nepoch \d+, .* ago: .*(lost|did not reach|was told)")
                explained = json.loads(fabric.told("explain", str(job), "--json"))
                self.assertEqual([home["moves"] > 0 for home in explained["homes"]], [True] * 3)
                self.assertTrue(all(told["by"].startswith("rank ") for told in explained["epochs"]), explained["epochs"])
                self.assertEqual(len(explained["parts"]), 3)
                stop.touch()
                self.assertEqual(len({result["digest"] for result in ranks.results(60)}), 1)
            wait_until(lambda: fabric.jobs() == [], 60, "the job is forgotten with its last rank")

    def test_a_manager_that_dies_loses_no_job(self):
        with Kept() as fabric:
            process = start(fabric.manager, "--jobs", "600", "--at-once", "32")
            wait_until(lambda: len(fabric.jobs()) > 8, 30, "jobs run")
            fabric.kill_manager()
            time.sleep(0.5)
            fabric.start_manager()
            found = outcome(process)
            self.assertEqual(found["jobs"], 600)
            self.assertGreater(found["retries"], 0, "it died while jobs were admitted")
            wait_until(lambda: fabric.jobs() == [], 90, "all jobs are forgotten")
            print(f"600 jobs in {found['seconds']:.1f} s, {found['retries']} tries repeated")


if __name__ == "__main__":
    unittest.main()
