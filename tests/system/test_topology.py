"""From Slurm's file to running jobs: it is converted and served by a manager, which plans on the
graph with nodes of those names."""

import json
import pathlib
import signal
import subprocess
import tempfile
import unittest

from harness import TRIB, Ranks, wait_until

SLURM = """
# Two racks below two spines, and a switch for administration.
SwitchName=leaf0 Nodes=tux[0-3] LinkSpeed=10
SwitchName=leaf1 Nodes=tux[4-7] LinkSpeed=10
SwitchName=spine0 Switches=leaf[0-1] LinkSpeed=40
SwitchName=spine1 Switches=leaf[0-1],admin LinkSpeed=40
SwitchName=admin Nodes=login LinkSpeed=1
"""
NODES = ("leaf0", "leaf1", "spine0", "spine1")


def trib(*words):
    done = subprocess.run([TRIB, *words], capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        raise AssertionError(f"trib {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


class Cluster:
    """A manager that serves a topology file, and a node for each of NODES, on loopback."""

    def __init__(self, folder, topology):
        self.folder, self.running, self.named, self.manager = folder, [], {}, None
        keys = folder / "keys"
        if not keys.exists():
            trib("credentials", keys)
            trib("credentials", keys, "--node", ",".join(NODES))
        self.command = ["am", "--topology", topology, "--credentials", keys, "--state", folder / "jobs"]
        log = self.start("am", *self.command, "--listen", "127.0.0.1:0")
        wait_until(lambda: self.port(log) is not None, 20, "the manager listens")
        self.manager = f"tls://127.0.0.1:{self.port(log)}?credentials={keys}"

    def __enter__(self):
        for name in NODES:
            self.start(name, "an", "--name", name, "--manager", self.manager, "--listen", "127.0.0.1:0")
        wait_until(lambda: sum(node["connected"] for node in self.status()["nodes"]) == len(NODES), 30, "the nodes register")
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(20)

    def start(self, name, *words):
        log = self.folder / f"{name}.log"
        with open(log, "w", encoding="utf-8") as file:
            self.running.append(subprocess.Popen([TRIB, *words], stdout=file, stderr=file, stdin=subprocess.DEVNULL))
        self.named[name] = self.running[-1]
        return log

    def restart_manager(self):
        self.named["am"].kill()
        self.named["am"].wait(20)
        address = self.manager.removeprefix("tls://").split("?")[0]
        log = self.start("am", *self.command, "--listen", address)
        wait_until(lambda: self.port(log) is not None, 20, "the new manager listens")
        wait_until(lambda: sum(self.connected().values()) == len(NODES), 30, "the nodes are back")

    def kill(self, name):
        self.named[name].kill()
        self.named[name].wait(20)
        wait_until(lambda: not self.connected()[name], 20, f"the manager sees that {name} is away")

    def connected(self):
        return {node["name"]: node["connected"] for node in self.status()["nodes"]}

    @staticmethod
    def port(log):
        words = log.read_text(encoding="utf-8").replace("=", " ").split()
        ports = [word.rsplit(":", 1)[1] for word in words if word.startswith("127.0.0.1:")]
        return ports[0] if ports and ports[0].isdigit() else None

    def status(self):
        return json.loads(trib("status", "--json", "--manager", self.manager))

    def job(self, hosts, argument):
        """One rank on each host."""
        through = ["sh", "-c", 'export TRIB_HOST=$(echo "$0" | cut -d, -f$((TRIB_RANK + 1))); exec "$@"', hosts]
        return Ranks(self, hosts.count(",") + 1, "loop_worker", "loop", argument, through=through)


class Topology(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="trib-topology-")
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.slurm = self.folder / "topology.conf"
        self.slurm.write_text(SLURM, encoding="ascii")

    def test_a_converted_file_is_served_and_jobs_at_once_take_different_spines(self):
        file = self.folder / "fabric.toml"
        trib("topology", "convert", self.slurm, "--nodes", "leaf[0-1],spine[0-1]", "--out", file)
        text = file.read_text(encoding="utf-8").replace("[fabric]\n", "[fabric]\nmtu = 9000\n")
        file.write_text(f"{text}\n[limits]\ngroups = 100\n", encoding="utf-8")
        with Cluster(self.folder, file) as cluster:
            self.assertEqual({node["name"] for node in cluster.status()["nodes"]}, set(NODES))
            stop = self.folder / "stop"
            argument = {"counts": [3, 5_000, 60_000], "pause": 0.01, "stop": str(stop)}
            first, second = "tux0,tux4,tux1", "tux2,tux5,tux6,tux3"
            with cluster.job(first, argument) as one:
                one.reach(lambda: one.progress(0) > 2, 30, "the first job's operations")
                with cluster.job(second, argument) as two:
                    two.reach(lambda: two.progress(0) > 2, 30, "the second job's operations")
                    nodes = [sorted(job["nodes"]) for job in cluster.status()["jobs"]]
                    stop.touch()
                    self.assertEqual(len(two.results(60)), 4)
                self.assertEqual(len(one.results(60)), 3)
            self.assertEqual(nodes, [["leaf0", "leaf1", "spine0"], ["leaf0", "leaf1", "spine1"]])
            # Hosts of one leaf need no spine. The switch of login has no node, so its stream goes
            # to the spine above.
            for hosts, expected in [("tux2,tux3", ["leaf0"]), ("login,tux7", ["leaf1", "spine1"])]:
                with cluster.job(hosts, {**argument, "stop": "/nonexistent", "iterations": 60}) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 2, 30, "operations")
                    self.assertEqual([sorted(job["nodes"]) for job in cluster.status()["jobs"]], [expected])
                    ranks.results(60)

    def test_a_job_goes_around_a_spine_that_is_away_until_there_is_no_way(self):
        with Cluster(self.folder, self.slurm) as cluster:
            loop = {"counts": [9, 60_000], "iterations": 20, "pause": 0.02}
            expected = {"spine0": "spine1", "spine1": "leaf0"}
            for victim, root in expected.items():
                cluster.kill(victim)
                with cluster.job("tux0,tux7", loop) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 2, 30, "operations")
                    (job,) = cluster.status()["jobs"]
                    text = trib("explain", str(job["id"]), "--manager", cluster.manager)
                    ranks.results(60)
                self.assertEqual(job["root"], root)
                self.assertIn(f"Its tree goes around {job['around'][0]}, away or silent when it was admitted", text)
                self.assertIn(job["around"][0], expected)
            cluster.kill("leaf0")
            cluster.kill("leaf1")
            with cluster.job("tux0,tux7", loop) as ranks:
                with self.assertRaisesRegex(AssertionError, "no tree around it would do"):
                    ranks.results(60)
            (refused,) = json.loads(trib("jobs", "--refused", "--json", "--manager", cluster.manager))["past"]
            self.assertEqual(refused["outcome"]["refused"]["resource"], "node")

    def test_a_job_goes_around_a_spine_that_is_stopped_and_takes_it_again_when_it_goes_on(self):
        with Cluster(self.folder, self.slurm) as cluster:
            loop = {"counts": [9, 60_000], "iterations": 20}

            def root():
                with cluster.job("tux0,tux7", loop) as ranks:
                    ranks.results(60)
                return json.loads(trib("jobs", "--all", "--json", "--manager", cluster.manager))["past"][-1]["root"]

            def state(name):
                (node,) = [node for node in cluster.status()["nodes"] if node["name"] == name]
                return node["connected"], node["silent_since_ms"] is not None

            self.assertEqual(root(), "spine0")
            cluster.named["spine0"].send_signal(signal.SIGSTOP)
            try:
                self.assertEqual(root(), "spine1")
                self.assertEqual(state("spine0"), (True, True))
            finally:
                cluster.named["spine0"].send_signal(signal.SIGCONT)
            wait_until(lambda: state("spine0") == (True, False), 20, "the manager sees that spine0 goes on")
            self.assertEqual(root(), "spine0")

    def test_trees_of_jobs_that_outlive_their_manager_are_avoided(self):
        with Cluster(self.folder, self.slurm) as cluster:
            stop = self.folder / "stop"
            loop = {"counts": [9, 60_000], "pause": 0.02, "stop": str(stop)}
            with cluster.job("tux0,tux4", loop) as one:
                one.reach(lambda: one.progress(0) > 2, 30, "the first job's operations")
                cluster.restart_manager()
                with cluster.job("tux1,tux5", loop) as two:
                    two.reach(lambda: two.progress(0) > 2, 30, "the second job's operations")
                    jobs = [(job["adopted"], job["root"]) for job in cluster.status()["jobs"]]
                    stop.touch()
                    two.results(60)
                one.results(60)
            self.assertEqual(jobs, [(True, "spine0"), (False, "spine1")])

    def test_slurms_own_file_is_served_too(self):
        with Cluster(self.folder, self.slurm) as cluster:
            with cluster.job("tux0,tux7", {"counts": [9, 60_000], "iterations": 3}) as ranks:
                self.assertEqual([result["iterations"] for result in ranks.results(60)], [3, 3])
            status = {node["name"]: node["connected"] for node in cluster.status()["nodes"]}
            self.assertEqual(status, {**dict.fromkeys(NODES, True), "admin": False})

    def test_a_broken_file_is_told_with_line_cause_and_remedy(self):
        self.slurm.write_text(SLURM.replace("Nodes=tux[4-7]", "Nodes=tux[4-7"), encoding="ascii")
        (self.folder / "keys").mkdir()
        for words in (
            ["topology", "show", self.slurm],
            ["plan", self.slurm, "--hosts", "tux0"],
            ["am", "--topology", self.slurm, "--credentials", self.folder / "keys", "--listen", "127.0.0.1:0"],
        ):
            done = subprocess.run([TRIB, *words], capture_output=True, text=True, timeout=30)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("topology.conf:4: `tux[4-7` has an unpaired bracket", done.stderr)
            self.assertIn("close every `[` with a `]`", done.stderr)


if __name__ == "__main__":
    unittest.main()
