"""Tenants: a greedy one, what is kept for another, refusals in words, and a client that is
killed."""

import json
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from daemons import ONE_NODE, Watched
from harness import PYTHON, TRIB, Ranks, rank_env, wait_until

TENANTS = """
[node]
streams = 12
memory = 8589934592

[job]
share = "1/4"

[[tenant]]
name = "astro"
reserve = "1/3"

[[tenant]]
name = "bio"
jobs = 2

[[tenant]]
name = "help"
sees = "all"
"""

JOIN = """
import native, os, sys, time
try:
    context = native.Context(timeout_ms=20000)
except native.Failed as failed:
    print(f"[{failed.status}] {failed.text}", flush=True)
    sys.exit(7)
print("joined", flush=True)
time.sleep(float(os.environ["TEST_HOLD"]))
"""


class Shared(Watched):
    """A manager with a tenants file, and one node."""

    def __init__(self):
        self.texts = tempfile.TemporaryDirectory(prefix="trib-tenants-")
        file = pathlib.Path(self.texts.name) / "tenants.toml"
        file.write_text(TENANTS)
        super().__init__(manager=["--tenants", file], topology=ONE_NODE)

    def __exit__(self, *words):
        super().__exit__(*words)
        self.texts.cleanup()

    def start(self, name, arguments, env):
        if name == "am":
            self.keys = {}
            for tenant in ("astro", "bio", "help"):
                command = [TRIB, "credentials", self.folder / "keys", "--tenant", tenant]
                done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
                self.keys[tenant] = done.stdout.strip()
        return super().start(name, arguments, env)

    def url_of(self, tenant):
        address = self.am.said["X_TRIB_ADDRESS"]
        return f"tls://{address}?credentials={self.keys[tenant]}" if tenant else self.url

    def program(self, tenant, hold, quota=None, wait=None):
        """One rank that joins, and stays for `hold` seconds."""
        env = {"TRIB_MANAGER": self.url_of(tenant), "TEST_HOLD": str(hold)}
        waiting = ["--wait", str(wait)] if wait else []
        command = [TRIB, "run", "-n", "1", *waiting, "--", PYTHON, "-c", JOIN]
        return subprocess.Popen(command, env=rank_env(None, quota, env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def refused(self, tenant, quota=None, wait=None):
        said, _ = self.program(tenant, 0, quota, wait).communicate(timeout=60)
        assert said.startswith("[-"), said
        return said

    def status(self, tenant=None):
        return json.loads(self.asked(tenant, "status", "--json").stdout)

    def asked(self, tenant, *words):
        command = [TRIB, *words, "--manager", self.url_of(tenant)]
        return subprocess.run(command, capture_output=True, text=True, timeout=30)

    def text(self):
        return subprocess.run([TRIB, "status", "--manager", self.url], capture_output=True, text=True, timeout=30, check=True).stdout

    def tenant(self, name):
        (found,) = [tenant for tenant in self.status()["tenants"] if tenant["name"] == name]
        return found


class Tenants(unittest.TestCase):
    def test_a_greedy_tenant_a_patient_one_and_one_that_is_killed(self):
        with Shared() as fabric:
            programs = []
            try:
                self.follow(fabric, programs)
            finally:
                for program in programs:
                    program.kill()
                    program.communicate()

    def follow(self, fabric, programs):
        def start(*words, **more):
            programs.append(fabric.program(*words, **more))
            return programs[-1]

        def joined(program):
            self.assertEqual(program.stdout.readline(), "joined\n")

        # Each job has a quarter of 12 stream contexts, until bio has all the jobs that it may have.
        greedy = [start("bio", 600), start("bio", 600)]
        for program in greedy:
            joined(program)
        self.assertEqual({job["limits"]["streams"] for job in fabric.status()["jobs"]}, {3})
        said = fabric.refused("bio")
        for word in ("[-5]", "tenant bio may have 2", "1 job in the fabric", "TRIB_WAIT_MS"):
            self.assertIn(word, said)
        # A third is kept for astro: of 12 contexts 6 are in use, and 2 are left for others.
        said = fabric.refused(None, {"streams": 3})
        for word in ("tenant *", "stream contexts at node leaf0", "2 can be had", "4 kept for tenant astro", "has 3", "TRIB_QUOTA=streams=2"):
            self.assertIn(word, said)
        joined(start("astro", 600, {"streams": 4}))
        bio = fabric.tenant("bio")
        self.assertEqual((bio["jobs"]["used"], bio["jobs"]["limit"], bio["nodes"][0]["streams"]["used"]), (2, 2, 6))
        self.assertLessEqual(bio["nodes"][0]["memory_bytes"]["used"], 2 * (8 << 30) // 4)

        # One client waits in vain, and one until a client of its tenant is killed.
        self.assertIn("number 1 of 1 in line", fabric.refused("bio", wait=0.5))
        patient = start("bio", 600, wait=60)
        wait_until(lambda: fabric.status()["queue"], 60, "it stands in line")
        self.assertIn("tenant bio may have 2", fabric.status()["queue"][0]["reason"]["text"])
        for word in ("TENANT", "astro", "2/2", "TURN", "tenant bio may have 2"):
            self.assertIn(word, fabric.text())
        killed = time.monotonic()
        greedy[0].send_signal(signal.SIGKILL)
        joined(patient)
        print(f"a killed client's share was another's {time.monotonic() - killed:.2f} s later")
        self.assertEqual(fabric.tenant("bio")["waiting"], 0)

        # With all clients killed nothing is held, and a job that works can have everything.
        for program in programs:
            program.kill()
        wait_until(lambda: all(not tenant["nodes"] and not tenant["jobs"]["used"] for tenant in fabric.status()["tenants"]), 60, "nothing is held")
        env = {"TRIB_MANAGER": fabric.url_of("astro")}
        with Ranks(None, 2, "loop_worker", "loop", {"counts": [9, 60_000], "iterations": 5}, {"streams": 12}, env) as ranks:
            self.assertEqual([result["iterations"] for result in ranks.results(120)], [5, 5])

    def test_a_tenant_sees_its_own_jobs_unless_the_operator_grants_it_all(self):
        with Shared() as fabric:
            programs = [fabric.program(tenant, 600, {"streams": 3}) for tenant in ("astro", "bio", None)]
            try:
                for program in programs:
                    self.assertEqual(program.stdout.readline(), "joined\n")
                self.look(fabric, *programs)
            finally:
                for program in programs:
                    program.kill()
                    program.communicate()

    def look(self, fabric, astro, bio, nobodys):
        numbers = {job["charge"]["tenant"]: job["id"] for job in fabric.status()["jobs"]}
        self.assertEqual(set(numbers), {"astro", "bio", None})
        for tenant in (None, "help"):
            self.assertEqual(len(fabric.status(tenant)["jobs"]), 3)
            self.assertTrue(fabric.status(tenant)["nodes"][0]["counters"])
            for number in numbers.values():
                self.assertEqual(fabric.asked(tenant, "explain", str(number)).returncode, 0)

        def live():
            return [job["id"] for job in json.loads(fabric.asked("bio", "jobs", "--json").stdout)["live"]]

        seen = fabric.status("bio")
        self.assertEqual(([job["id"] for job in seen["jobs"]], live()), ([numbers["bio"]], [numbers["bio"]]))
        self.assertEqual([tenant["name"] for tenant in seen["tenants"]], ["bio"])
        self.assertEqual([(node["name"], node["connected"], node["counters"]) for node in seen["nodes"]], [("leaf0", True, {})])
        self.assertEqual(fabric.asked("bio", "explain", str(numbers["bio"])).returncode, 0)
        # What is another's is told of as what never was.
        def unknown(number):
            said = fabric.asked("bio", "explain", str(number))
            self.assertNotEqual(said.returncode, 0)
            # Without the number, and without the time since the manager's start.
            return re.sub(r" \(so for .*\)", "", said.stderr.replace(f"job {number}", "job N"))

        self.assertEqual(unknown(numbers["astro"]), unknown(4_000_000))
        # Nor does a refusal name others.
        said = fabric.refused("bio", {"streams": 6})
        for word in ("1 kept for other tenants", f"job {numbers['bio']} has 3", "jobs of other tenants have 6"):
            self.assertIn(word, said)
        for word in ("astro", f"job {numbers['astro']} "):
            self.assertNotIn(word, said)
        # What has ended is as hidden as what runs.
        astro.kill()
        wait_until(lambda: "astro" not in {job["charge"]["tenant"] for job in fabric.status()["jobs"]}, 60, "astro's job is over")
        over = json.loads(fabric.asked("bio", "jobs", "--all", "--json").stdout)["past"]
        self.assertEqual([job["tenant"] for job in over], ["bio"], "the refusal, and nobody else's job")
        self.assertEqual(unknown(numbers["astro"]), unknown(4_000_000))
        self.assertIn("(tenant astro)", fabric.asked(None, "explain", str(numbers["astro"])).stdout)

    def test_a_file_that_promises_too_much_is_told_by_line(self):
        with tempfile.TemporaryDirectory(prefix="trib-tenants-") as folder:
            folder = pathlib.Path(folder)
            subprocess.run([TRIB, "credentials", folder / "keys"], check=True, timeout=60)
            (folder / "topology.toml").write_text(ONE_NODE)
            file = folder / "tenants.toml"
            file.write_text('[node]\nstreams = 8\n[[tenant]]\nname = "a"\nreserve = "2/3"\n[[tenant]]\nname = "b"\nreserve = "50%"\n')
            command = [TRIB, "am", "--topology", folder / "topology.toml", "--credentials", folder / "keys", "--listen", "127.0.0.1:0"]
            for more in ([], ["--check"]):
                done = subprocess.run([*command, "--tenants", file, *more], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (3, ""), done)
                for word in (f"{file}:8: ", "reserve 9 streams of 8", "let all shares together be no more"):
                    self.assertIn(word, done.stderr)

    def test_a_check_beside_the_manager_that_runs(self):
        with Watched(topology=ONE_NODE) as fabric:
            file = fabric.folder / "tenants.toml"
            file.write_text('[[tenant]]\nname = "a"\n')
            where = ["--topology", fabric.folder / "topology.toml", "--credentials", fabric.folder / "keys"]
            listen = fabric.am.wait_for("X_TRIB_ADDRESS")
            command = [TRIB, "am", *where, "--listen", listen, "--tenants", file, "--check"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            for word in ("fabric watched", "1 nodes", "1 tenants", "until 2"):
                self.assertIn(word, done.stdout)
            done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60)
            found = json.loads(done.stdout)
            self.assertEqual((found["fabric"], found["nodes"], found["tenants"]), ("watched", 1, 1))


if __name__ == "__main__":
    unittest.main()
