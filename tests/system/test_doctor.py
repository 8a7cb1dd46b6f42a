"""`trib doctor` finds nothing where nothing is wrong, and names each fault with what to do about
it."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import test_tenants
from harness import TRIB, Fabric, send, wait_until
from test_lab import Lab


def doctor(fabric, *arguments, manager=None):
    command = [TRIB, "doctor", "--json", "--timeout", "2", *arguments]
    env = {**fabric.env, "TRIB_MANAGER": manager or fabric.manager}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["sound"], done
    return report["sound"], by_name(done.stdout)


def by_name(report):
    return {check["check"]: check for check in json.loads(report)["checks"]}


class Doctor(unittest.TestCase):
    def test_a_sound_fabric(self):
        with Fabric() as fabric:
            # On a machine that other tests keep busy datagrams may be late, and that is a warning.
            for _ in range(3):
                sound, checks = doctor(fabric)
                self.assertTrue(sound, checks)
                states = {checks[name]["state"] for name in ("manager", "trial job", "datagrams", "stream")}
                if states == {"ok"}:
                    break
            self.assertEqual(states, {"ok"}, checks)
            self.assertIn("node leaf0", checks)
            # A rank that leaves tells the manager so, and does not wait for an answer.
            wait_until(lambda: fabric.status()["jobs"] == [], 10, "the trial job is over")
            text = subprocess.run([TRIB, "doctor"], env={**fabric.env, "TRIB_MANAGER": fabric.manager},
                                  capture_output=True, text=True, timeout=60, check=True).stdout
            self.assertIn("Nothing stands in the way of a job", text)

    def test_hosts_of_a_network(self):
        with Lab("--hosts", "2", "--leaf-ports", "2") as lab:
            command = ["exec", "h1", "--", TRIB, "doctor", "--json", "--timeout", "2"]
            self.assertTrue(json.loads(lab.run(*command).stdout)["sound"])
            done = lab.run(*command, "--host", "elsewhere", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("the topology does not know", by_name(done.stdout)["trial job"]["found"])
            # The switch carries smaller packets than the topology says, and drops larger ones
            # silently: what is small passes.
            lab.run("exec", "leaf0", "--", "ip", "link", "set", "h1", "mtu", "4000")
            done = lab.run(*command, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(by_name(done.stdout)["datagrams"]["state"], "failed")
            self.assertIn("`mtu`", by_name(done.stdout)["datagrams"]["remedy"])

    def test_nodes_that_are_stopped_or_gone(self):
        with Fabric(leaves=1) as fabric:
            leaf = fabric.processes()["leaf0"]
            send(leaf, signal.SIGSTOP)
            sound, checks = doctor(fabric)
            self.assertFalse(sound)
            self.assertEqual(checks["trial job"]["state"], "failed")
            self.assertIn("leaf0", checks["trial job"]["found"])
            send(leaf, signal.SIGKILL)
            sound, checks = doctor(fabric)
            self.assertFalse(sound)
            self.assertEqual(checks["trial job"]["state"], "failed")
            self.assertEqual(checks["node leaf0"]["state"], "warning")
            self.assertIn("trib an --name leaf0", checks["node leaf0"]["remedy"])

    def test_a_node_that_this_host_does_not_need_is_a_warning(self):
        with Fabric(leaves=2) as fabric:
            # A job of one rank goes to the first leaf.
            leaf = fabric.processes()["leaf1"]
            send(leaf, signal.SIGSTOP)
            silent = lambda: [node["name"] for node in fabric.status()["nodes"] if node["silent_since_ms"] is not None]
            wait_until(lambda: silent() == ["leaf1"], 30, "the manager finds out that the node is silent")
            self.warned_of_leaf1(fabric, "does not answer")
            send(leaf, signal.SIGKILL)
            self.warned_of_leaf1(fabric, "lost its connection")

    def warned_of_leaf1(self, fabric, found):
        """The host is sound nevertheless, and the warning says what to do."""
        sound, checks = doctor(fabric)
        self.assertTrue(sound, checks)
        self.assertEqual(checks["trial job"]["state"], "ok")
        self.assertEqual(checks["node leaf1"]["state"], "warning")
        self.assertIn(found, checks["node leaf1"]["found"])
        self.assertIn("trial job", checks["node leaf1"]["remedy"])

    def test_quota_that_other_jobs_have_is_a_warning(self):
        with test_tenants.Shared() as fabric:
            programs = [fabric.program("bio", 600) for _ in range(2)]
            try:
                for program in programs:
                    self.assertEqual(program.stdout.readline(), "joined\n")
                # It does not wait for it as the programs of a job script do.
                env = {**os.environ, "TRIB_MANAGER": fabric.url_of("bio"), "TRIB_WAIT_MS": "600000"}
                done = subprocess.run([TRIB, "doctor", "--json"], env=env, capture_output=True, text=True, timeout=60)
            finally:
                for program in programs:
                    program.kill()
                    program.communicate()
            checks = by_name(done.stdout)
            self.assertEqual(done.returncode, 0, checks)
            self.assertEqual(checks["trial job"]["state"], "warning")
            self.assertIn("busy: the manager refused the job", checks["trial job"]["found"])
            self.assertIn("others have", checks["trial job"]["remedy"])

    def test_an_mpirun_that_hangs_is_a_warning(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory(prefix="trib-doctor-") as folder:
            launcher = os.path.join(folder, "mpirun")
            with open(launcher, "w") as script:
                script.write("#!/bin/sh\nexec sleep 60\n")
            os.chmod(launcher, 0o755)
            env = {**fabric.env, "TRIB_MANAGER": fabric.manager, "PATH": f"{folder}:{os.environ['PATH']}"}
            began = time.monotonic()
            command = [TRIB, "doctor", "--json", "--timeout", "1"]
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
            self.assertLess(time.monotonic() - began, 50)
            checks = by_name(done.stdout)
            self.assertEqual(checks["mpi"]["state"], "warning")
            self.assertIn("did not end within 1s", checks["mpi"]["found"])
            self.assertIn("trial job", checks)

    def test_nobody_needs_to_read_what_a_tool_says_of_itself(self):
        with Fabric() as fabric:
            env = {**fabric.env, "TRIB_MANAGER": fabric.manager, "TRIB_LOG": "=wrong="}
            for words in (["doctor", "--json"], ["bench", "jobs", "--jobs", "100", "--at-once", "4", "--operations", "0"]):
                reader, writer = os.pipe()
                os.close(reader)
                try:
                    done = subprocess.run([TRIB, *words], env=env, stdout=subprocess.PIPE, stderr=writer, timeout=120)
                finally:
                    os.close(writer)
                self.assertIn(done.returncode, (0, 1), words)
                self.assertTrue(done.stdout, words)

    def test_no_manager_and_no_keys(self):
        with Fabric() as fabric:
            address, folder = fabric.manager.removeprefix("tls://").split("?credentials=")
            sound, checks = doctor(fabric, manager=f"tls://127.0.0.1:1?credentials={folder}")
            self.assertFalse(sound)
            self.assertIn("trib am", checks["manager"]["found"])
            sound, checks = doctor(fabric, manager=f"tls://{address}?credentials={folder}/none")
            self.assertFalse(sound)
            self.assertEqual(checks["keys"]["state"], "failed")
            key = os.path.join(folder, "user.key")
            os.chmod(key, 0o644)
            sound, checks = doctor(fabric)
            self.assertTrue(sound, checks)
            self.assertEqual(checks["keys"]["state"], "warning")
            self.assertIn("chmod", checks["keys"]["remedy"])


if __name__ == "__main__":
    unittest.main()
