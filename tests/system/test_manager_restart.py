"""The manager is killed and started again while jobs run: nothing of them is lost, and none is forgotten."""

import json
import pathlib
import subprocess
import tempfile
import time
import unittest

from harness import TRIB, Ranks, wait_until
from test_jobs import outcome, start

TOPOLOGY = """
[fabric]
name = "restart"
[[node]]
name = "root"
[[node]]
name = "leaf0"
parent = "root"
[[node]]
name = "leaf1"
parent = "root"
[[host]]
name = "*"
leaves = ["leaf0", "leaf1"]
"""


class Daemons:
    """A manager that keeps its jobs, and three nodes, on loopback."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="trib-restart-")
        self.path = pathlib.Path(self.folder.name)
        (self.path / "topology.toml").write_text(TOPOLOGY, encoding="ascii")
        subprocess.run([TRIB, "credentials", self.path / "keys"], check=True, capture_output=True, timeout=30)
        self.running = {}
        self.port = 0

    def __enter__(self):
        self.start_manager()
        for name in ("root", "leaf0", "leaf1"):
            self.start(name, "an", "--name", name, "--manager", self.manager, "--listen", "127.0.0.1:0")
        wait_until(lambda: all(node["connected"] for node in self.status()["nodes"]), 30, "all nodes are registered")
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(20)
        self.folder.cleanup()

    def start(self, name, *words):
        with open(self.path / f"{name}.log", "a", encoding="utf-8") as log:
            self.running[name] = subprocess.Popen([TRIB, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def start_manager(self):
        keys = self.path / "keys"
        options = ["--topology", self.path / "topology.toml", "--credentials", keys, "--state", self.path / "jobs"]
        self.start("manager", "am", *options, "--listen", f"127.0.0.1:{self.port}")
        if self.port == 0:
            wait_until(lambda: self.listening() is not None, 20, "the manager listens")
            self.port = self.listening()
        self.manager = f"tls://127.0.0.1:{self.port}?credentials={keys}"

    def listening(self):
        words = (self.path / "manager.log").read_text(encoding="utf-8").replace("=", " ").split()
        ports = [word.rsplit(":", 1)[1] for word in words if word.startswith("127.0.0.1:")]
        return int(ports[0]) if ports and ports[0].isdigit() else None

    def status(self):
        command = [TRIB, "status", "--json", "--manager", self.manager]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return json.loads(done.stdout) if done.returncode == 0 else {"nodes": [{"connected": False}], "jobs": None}

    def jobs(self):
        found = self.status()["jobs"]
        return None if found is None else [(job["id"], job["adopted"]) for job in found]


class Restart(unittest.TestCase):
    def test_a_job_outlives_its_manager_and_is_remembered(self):
        with Daemons() as fabric:
            argument = {"counts": [3, 700, 60_000], "iterations": 500, "pause": 0.02}
            with Ranks(fabric, 4, "loop_worker", "loop", argument) as ranks:
                wait_until(lambda: all(ranks.progress(r) > 20 for r in range(4)), 30, "operations")
                ((job, adopted),) = fabric.jobs()
                self.assertFalse(adopted)
                fabric.running["manager"].kill()
                fabric.running["manager"].wait(20)
                before = [ranks.progress(r) for r in range(4)]
                wait_until(lambda: all(ranks.progress(r) > before[r] + 5 for r in range(4)), 30, "operations without a manager")
                fabric.start_manager()
                wait_until(lambda: fabric.jobs() == [(job, True)], 30, "the new manager knows the job")
                results = ranks.results(60)
            self.assertEqual({result["iterations"] for result in results}, {500})
            # Its nodes say when its ranks are gone; no connection to the manager could.
            wait_until(lambda: fabric.jobs() == [], 60, "the job is forgotten")
            wait_until(lambda: all(node["connected"] for node in fabric.status()["nodes"]), 30, "all nodes are back")
            with Ranks(fabric, 4, "loop_worker", "loop", {"counts": [9], "iterations": 5}) as ranks:
                self.assertEqual(len(ranks.results(60)), 4)

    def test_a_manager_that_dies_loses_no_job(self):
        with Daemons() as fabric:
            process = start(fabric.manager, "--jobs", "600", "--at-once", "32")
            wait_until(lambda: len(fabric.status()["jobs"] or []) > 8, 30, "jobs run")
            fabric.running["manager"].kill()
            fabric.running["manager"].wait(20)
            time.sleep(0.5)
            fabric.start_manager()
            found = outcome(process)
            self.assertEqual(found["jobs"], 600)
            self.assertGreater(found["retries"], 0, "it died while jobs were admitted")
            wait_until(lambda: fabric.jobs() == [], 90, "all jobs are forgotten")
            print(f"600 jobs in {found['seconds']:.1f} s, {found['retries']} tries repeated")


if __name__ == "__main__":
    unittest.main()
