"""Who gets which key: an ordinary user reaches the manager with the folder for users, and with nothing of a daemon's."""

import grp
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import time
import unittest
import urllib.request

from daemons import Daemon, ONE_NODE, TWO_LEVELS
from harness import TRIB, Ranks, wait_until

NOBODY = pwd.getpwnam("nobody")
GROUP = grp.getgrgid(NOBODY.pw_gid).gr_name


def trib(*arguments, program=TRIB, env=None, **options):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TRIB_")}
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, env={**plain, **(env or {})}, capture_output=True, text=True, timeout=60, **options)


def certificate(path):
    """What stands in a certificate, as Python reads it."""
    return ssl._ssl._test_decode_cert(str(path))


def ends(path):
    """The last second in which it is valid."""
    return ssl.cert_time_to_seconds(certificate(path)["notAfter"])


class Logged(Daemon):
    """A daemon whose log is read."""

    def reads(self, *words):
        wait_until(lambda: all(word in self.log.read_text() for word in words), 20, f"the log has {words}")


class Renewed:
    """A manager over the test's keys, and nodes that are started one by one."""

    def __init__(self, test, topology, *options):
        self.test, self.keys, self.started = test, test.keys, 0
        (test.top / "topology.toml").write_text(topology)
        self.old = [ends(path) for path in self.keys.rglob("*.pem") if path.name not in ("ca.pem", "authority-key.pem")]
        where = ["--topology", test.top / "topology.toml", "--credentials", self.keys, "--listen", "127.0.0.1:0"]
        self.am = self.start("am", ["am", *where, *options])
        self.address = self.am.wait_for("X_TRIB_ADDRESS")
        self.manager = f"tls://{self.address}?credentials={self.keys}"
        plain = {name: value for name, value in os.environ.items() if not name.startswith("TRIB_")}
        self.env = {**plain, "TRIB_MANAGER": self.manager}

    def start(self, name, arguments):
        self.started += 1
        daemon = Logged(self.test.top, f"{name}-{self.started}", arguments)
        self.test.addCleanup(daemon.close)
        return daemon

    def node(self, name, folder):
        url = f"tls://{self.address}?credentials={folder}"
        return self.start(name, ["an", "--name", name, "--manager", url, "--listen", "127.0.0.1:0"])

    def ask(self, *words):
        return trib(*words, env={"TRIB_MANAGER": self.manager})

    def nodes(self):
        return json.loads(self.ask("status", "--json").stdout)["nodes"]

    def connected(self):
        return {node["name"] for node in self.nodes() if node["connected"]}

    def doctor_finds(self, name):
        checks = json.loads(self.ask("doctor", "--json").stdout)["checks"]
        return next((check for check in checks if check["check"] == name), None)

    def metric(self, name):
        page = urllib.request.urlopen(f"http://{self.am.wait_for('X_TRIB_METRICS')}/metrics", timeout=10).read().decode()
        return float(next(line.split()[-1] for line in page.splitlines() if line.startswith(f"{name} ")))

    def manager_serial(self):
        """That of the certificate which the manager shows to whoever connects."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.keys / "ca.pem")
        context.load_cert_chain(self.keys / "user.pem", self.keys / "user.key")
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=10) as plain, context.wrap_socket(plain) as secure:
            return secure.getpeercert()["serialNumber"]

    def old_have_ended(self):
        return max(self.old) + 1 < time.time()


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="trib-keys-")
        self.addCleanup(temporary.cleanup)
        self.top = pathlib.Path(temporary.name)
        self.keys = self.top / "keys"

    def modes(self, folder):
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}

    def test_users_get_a_folder_without_any_key_of_a_daemon(self):
        made = trib("credentials", self.keys)
        self.assertEqual((made.returncode, made.stdout), (0, f"{self.keys}/users\n"), made.stderr)
        self.assertEqual(self.modes(self.keys / "users"), {"ca.pem": 0o644, "user.pem": 0o644, "user.key": 0o600})
        modes = self.modes(self.keys)
        self.assertEqual({modes["authority-key.pem"], modes["manager.key"], modes["user.key"]}, {0o600})

    def test_a_second_time_says_what_is_there_and_what_to_do(self):
        trib("credentials", self.keys)
        key = (self.keys / "manager.key").read_bytes()
        again = trib("credentials", self.keys)
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        for word in (str(self.keys), "already", "--users", "--tenant NAME", "another folder", "remove"):
            self.assertIn(word, again.stderr)
        self.assertNotIn("os error", again.stderr)
        self.assertEqual((self.keys / "manager.key").read_bytes(), key)
        trib("credentials", self.keys, "--tenant", "astro")
        again = trib("credentials", self.keys, "--tenant", "astro")
        self.assertEqual(again.returncode, 1)
        self.assertIn(f"{self.keys}/tenants/astro", again.stderr)

    def test_a_group_that_does_not_exist_makes_nothing(self):
        wrong = trib("credentials", self.keys, "--group", "no-such-group")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("no-such-group", wrong.stderr)
        self.assertFalse(self.keys.exists())

    def test_a_fabric_from_before_gets_the_folder_later(self):
        trib("credentials", self.keys)
        shutil.rmtree(self.keys / "users")
        later = trib("credentials", self.keys, "--users", "--group", str(os.getgid()))
        self.assertEqual(later.stdout, f"{self.keys}/users\n", later.stderr)
        self.assertEqual(self.modes(self.keys / "users"), {"ca.pem": 0o644, "user.pem": 0o644, "user.key": 0o640})

    def test_a_node_has_its_name_for_itself(self):
        trib("credentials", self.keys)
        made = trib("credentials", self.keys, "--node", "leaf[0-1]", "--node", "root")
        folders = [self.keys / "nodes" / name for name in ("leaf0", "leaf1", "root")]
        self.assertEqual((made.returncode, made.stdout), (0, "".join(f"{folder}\n" for folder in folders)), made.stderr)
        self.assertEqual(self.modes(folders[0]), {"ca.pem": 0o644, "node.pem": 0o644, "node.key": 0o600})
        again = trib("credentials", self.keys, "--node", "leaf0")
        self.assertEqual((again.returncode, f"{self.keys}/nodes/leaf0" in again.stderr), (1, True))
        self.assertEqual(trib("credentials", self.keys, "--node", "../leaf0").returncode, 2)
        fabric = Renewed(self, TWO_LEVELS)
        # Whose certificate does not say the name is told so, whatever lies in ca.pem besides.
        fabric.node("leaf1", folders[0]).reads("the certificate is that of node `leaf0`", "--name leaf0")
        for name in ("leaf0", "root"):
            # A node finds its own files in the operator's folder, too.
            fabric.node(name, self.keys).wait_for("X_TRIB_ADDRESS")
        self.assertEqual(fabric.connected(), {"leaf0", "root"})

    def test_without_the_authoritys_key_words_say_what_to_do(self):
        trib("credentials", self.keys)
        self.assertEqual(self.modes(self.keys)["authority-key.pem"], 0o600)
        away = self.top / "safe.pem"
        (self.keys / "authority-key.pem").rename(away)
        refused = trib("credentials", self.keys, "--node", "leaf0")
        self.assertEqual(refused.returncode, 3)
        for word in ("--authority-key FILE", "trib credentials NEW", "ca.pem of every host"):
            self.assertIn(word, refused.stderr)
        self.assertEqual(trib("credentials", self.keys, "--node", "leaf0", "--authority-key", away).returncode, 0)
        away.chmod(0o640)
        refused = trib("credentials", "renew", self.keys, "--node", "leaf0", "--authority-key", away)
        self.assertEqual((refused.returncode, "chmod 600" in refused.stderr), (3, True), refused.stderr)

    def test_what_is_due_is_renewed_and_nothing_else(self):
        trib("credentials", self.keys, "--days", "61")
        trib("credentials", self.keys, "--node", "leaf0", "--days", "59")
        trib("credentials", self.keys, "--tenant", "astro", "--days", "61")

        def serials():
            return {path: certificate(path)["serialNumber"] for path in self.keys.rglob("*.pem") if "authority" not in path.name}

        before = serials()
        renewed = trib("credentials", "renew", self.keys)
        self.assertIn("node leaf0: until ", renewed.stdout, renewed.stderr)
        changed = {path for path, serial in serials().items() if serial != before[path]}
        self.assertEqual(changed, {self.keys / "nodes/leaf0/node.pem"})
        self.assertIn("nothing ends within 60 days", trib("credentials", "renew", self.keys).stdout)
        trib("credentials", "renew", self.keys, "--all")
        changed = {path for path, serial in serials().items() if serial != before[path]}
        self.assertEqual(changed, {path for path in before if path.name != "ca.pem"})

    def test_a_job_runs_while_all_certificates_are_renewed_and_another_starts_after(self):
        trib("credentials", self.keys, "--seconds", "30")
        trib("credentials", self.keys, "--node", "leaf0", "--seconds", "30")
        fabric = Renewed(self, ONE_NODE, "--metrics", "127.0.0.1:0")
        fabric.node("leaf0", self.keys).wait_for("X_TRIB_ADDRESS")
        stop = self.top / "stop"
        argument = {"counts": [3, 700, 60_000], "stop": str(stop), "pause": 0.02}
        with Ranks(fabric, 2, "loop_worker", "loop", argument) as ranks:
            ranks.reach(lambda: all(ranks.progress(rank) > 5 for rank in range(2)), 60, "operations")
            renewed = trib("credentials", "renew", self.keys, "--all")
            self.assertEqual(renewed.stdout.count("until"), 3, renewed.stderr)
            serial = certificate(self.keys / "manager.pem")["serialNumber"]
            # Also after the end of the old ones: both ends have long been given new ones.
            wait_until(lambda: fabric.manager_serial() == serial, 20, "the manager shows the renewed certificate")
            renewed = ends(self.keys / "nodes/leaf0/node.pem")
            wait_until(lambda: fabric.nodes()[0]["certificate_ends"] == renewed, 30, "the node tells that it was renewed")
            self.assertIsNone(fabric.doctor_finds("certificate of node leaf0"))
            self.assertGreater(fabric.metric("tributary_certificate_seconds"), 300 * 86400)
            wait_until(lambda: fabric.old_have_ended(), 40, "the old certificates end")
            before = [ranks.progress(rank) for rank in range(2)]
            ranks.reach(lambda: all(ranks.progress(rank) > before[rank] + 5 for rank in range(2)), 60, "more operations")
            second = ["run", "-n", "2", "--", TRIB, "bench", "--min", "8", "--max", "8", "--iterations", "5"]
            done = trib(*second, env={"TRIB_MANAGER": fabric.manager})
            self.assertEqual(done.returncode, 0, done.stderr)
            stop.touch()
            self.assertEqual(len(ranks.results(60)), 2)
        self.assertEqual(fabric.connected(), {"leaf0"})

    def test_a_certificate_whose_key_the_node_cannot_use_is_not_reported_as_taken(self):
        trib("credentials", self.keys)
        trib("credentials", self.keys, "--node", "leaf0", "--days", "100")
        fabric = Renewed(self, ONE_NODE)
        issued, folder = self.keys / "nodes/leaf0", self.top / "leaf0"
        shutil.copytree(issued, folder)
        node = fabric.node("leaf0", folder)
        node.wait_for("X_TRIB_ADDRESS")
        before = ends(folder / "node.pem")
        # A copy leaves a key that the daemon may not read. Tests run as root, who may read all.
        (folder / "node.key").write_text("")
        trib("credentials", "renew", self.keys, "--node", "leaf0")
        shutil.copy(issued / "node.pem", folder)
        node.reads("cannot be used", "node.key", "stays connected")
        self.assertEqual(fabric.nodes()[0]["certificate_ends"], before)
        shutil.copy(issued / "node.key", folder)
        after = ends(issued / "node.pem")
        self.assertGreater(after, before)
        wait_until(lambda: fabric.nodes()[0]["certificate_ends"] == after, 30, "the node tells that it was renewed")

    def test_a_reload_tells_what_it_does_not_read(self):
        trib("credentials", self.keys)
        fabric = Renewed(self, ONE_NODE)
        fabric.am.process.send_signal(signal.SIGHUP)
        fabric.am.reads("the list of withdrawn certificates is read")
        self.assertNotIn("is not read again", fabric.am.log.read_text())
        topology = self.top / "topology.toml"
        topology.write_text(topology.read_text() + "\n")
        fabric.am.process.send_signal(signal.SIGHUP)
        fabric.am.reads("is not read again", str(topology), "restart the manager")

    def test_a_withdrawn_certificate_ends_its_connections_and_jobs_go_on(self):
        trib("credentials", self.keys)
        trib("credentials", self.keys, "--node", "leaf0")
        fabric = Renewed(self, ONE_NODE, "--metrics", "127.0.0.1:0")
        node = fabric.node("leaf0", self.keys)
        node.wait_for("X_TRIB_ADDRESS")
        stop = self.top / "stop"
        argument = {"counts": [3, 60_000], "stop": str(stop), "pause": 0.02}
        with Ranks(fabric, 2, "loop_worker", "loop", argument) as ranks:
            ranks.reach(lambda: all(ranks.progress(rank) > 5 for rank in range(2)), 60, "operations")
            done = trib("credentials", "withdraw", self.keys, "--node", "leaf0")
            self.assertEqual((done.returncode, done.stdout.strip()), (0, certificate(self.keys / "nodes/leaf0/node.pem")["serialNumber"]))
            # The manager's folder may be another one than the operator's.
            for word in (f"copy {self.keys}/withdrawn.txt there", "systemctl reload"):
                self.assertIn(word, done.stderr)
            self.assertEqual(fabric.connected(), {"leaf0"}, "the list is not read yet")
            fabric.am.process.send_signal(signal.SIGHUP)
            # Both ends say why, for the connection that was there and for the next.
            node.reads("the certificate of node leaf0", "was withdrawn", "ask the operator")
            fabric.am.reads("the certificate was withdrawn; the connection is closed", "makes a new one")
            self.assertEqual(fabric.connected(), set())
            before = [ranks.progress(rank) for rank in range(2)]
            ranks.reach(lambda: all(ranks.progress(rank) > before[rank] + 5 for rank in range(2)), 60, "the job goes on")
            trib("credentials", "renew", self.keys, "--node", "leaf0")
            wait_until(lambda: fabric.connected() == {"leaf0"}, 20, "the node is let in with its new certificate")
            stop.touch()
            ranks.results(60)
        trib("credentials", "withdraw", self.keys, "--users")
        fabric.am.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "was withdrawn" in fabric.ask("status").stderr, 20, "users are refused")
        refused = 'tributary_handshakes_refused_total{reason="withdrawn_certificate"}'
        wait_until(lambda: fabric.metric(refused) >= 1, 20, "it is counted")
        self.assertEqual(fabric.metric("tributary_certificates_withdrawn"), 2)
        # A list with an error stays as it was.
        (self.keys / "withdrawn.txt").write_text("leaf0\n")
        fabric.am.process.send_signal(signal.SIGHUP)
        fabric.am.reads("withdrawn.txt, line 1", "stays as it was")
        self.assertIn("was withdrawn", fabric.ask("status").stderr)

    def test_a_certificate_that_has_ended_is_told_by_name_date_and_remedy(self):
        trib("credentials", self.keys)
        trib("credentials", self.keys, "--node", "leaf0", "--seconds", "1")
        fabric = Renewed(self, ONE_NODE)
        wait_until(lambda: ends(self.keys / "nodes/leaf0/node.pem") + 1 < time.time(), 20, "the certificate ends")
        words = ("certificate of node leaf0 ended on ", "renew it with `trib credentials renew DIR --node leaf0`")
        fabric.node("leaf0", self.keys).reads(*words)
        fabric.am.reads(*words)
        trib("credentials", "renew", self.keys, "--users", "--days", "29")
        found = fabric.doctor_finds("certificate of users")
        self.assertEqual((found["state"], "renew DIR --users" in found["remedy"]), ("warning", True), found)
        trib("credentials", "renew", self.keys, "--am", "--seconds", "1")
        wait_until(lambda: "manager ended on " in fabric.ask("status").stderr, 30, "the manager's certificate ends")

    def test_a_daemon_refuses_a_key_that_others_can_read(self):
        trib("credentials", self.keys)
        (self.keys / "manager.key").chmod(0o604)
        (self.top / "topology.toml").write_text(ONE_NODE)
        am = trib("am", "--topology", self.top / "topology.toml", "--credentials", self.keys, "--listen", "127.0.0.1:0")
        self.assertEqual((am.returncode, f"chmod o= {self.keys}/manager.key" in am.stderr), (3, True), am.stderr)
        doctor = trib("doctor", "--json", env={"TRIB_MANAGER": f"tls://127.0.0.1:1?credentials={self.keys}"})
        found = [check["remedy"] for check in json.loads(doctor.stdout)["checks"] if check["state"] == "failed"]
        self.assertIn(f"chmod o= {self.keys}/manager.key", found)

    @unittest.skipIf(os.getuid() != 0, "takes root, to become an ordinary user")
    def test_an_ordinary_user_gets_in_with_the_users_folder_alone(self):
        self.top.chmod(0o755)
        program = self.top / "trib"
        shutil.copy(TRIB, program)
        made = trib("credentials", self.keys, "--group", GROUP)
        self.assertEqual(made.returncode, 0, made.stderr)
        (self.top / "topology.toml").write_text(ONE_NODE)
        where = ["--topology", self.top / "topology.toml", "--credentials", self.keys, "--listen", "127.0.0.1:0"]
        manager = Daemon(self.top, "am", ["am", *where])
        self.addCleanup(manager.close)
        address = manager.wait_for("X_TRIB_ADDRESS")
        nobody = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": [], "cwd": "/"}

        def ask(folder, what="status", **who):
            return trib(what, program=program, env={"TRIB_MANAGER": f"tls://{address}?credentials={folder}"}, **who)

        served = ask(self.keys / "users", **nobody)
        self.assertEqual(served.returncode, 0, served.stderr)
        self.assertIn("leaf0", served.stdout)
        # A user who names the fabric's own folder is sent to the users' one, and not told to copy
        # anything.
        for what in ("status", "doctor"):
            refused = ask(self.keys, what, **nobody)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(f"{self.keys}/users", refused.stdout + refused.stderr)
            self.assertNotIn("copy", refused.stdout + refused.stderr)
        # Another user, who is not of the group, is told of the group.
        other = {**nobody, "group": NOBODY.pw_gid - 1}
        refused = ask(self.keys / "users", **other)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("--users --group GROUP", refused.stderr)
        for key in ("manager.key", "authority-key.pem"):
            read = subprocess.run(["cat", self.keys / key], capture_output=True, **nobody)
            self.assertNotEqual(read.returncode, 0)


if __name__ == "__main__":
    unittest.main()
