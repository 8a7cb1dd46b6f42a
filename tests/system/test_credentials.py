"""Who gets which key: an ordinary user reaches the manager with the folder for users, and with nothing of a daemon's."""

import grp
import json
import os
import pathlib
import pwd
import shutil
import stat
import subprocess
import tempfile
import unittest

from daemons import Daemon, ONE_NODE, TWO_LEVELS
from harness import TRIB, wait_until

NOBODY = pwd.getpwnam("nobody")
GROUP = grp.getgrgid(NOBODY.pw_gid).gr_name


def trib(*arguments, program=TRIB, env=None, **options):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TRIB_")}
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, env={**plain, **(env or {})}, capture_output=True, text=True, timeout=60, **options)


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
        self.assertEqual({modes["manager.key"], modes["node.key"], modes["user.key"]}, {0o600})

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

    def test_a_node_with_a_certificate_of_its_own_has_its_name_for_itself(self):
        trib("credentials", self.keys)
        made = trib("credentials", self.keys, "--node", "leaf0")
        self.assertEqual((made.returncode, made.stdout), (0, f"{self.keys}/nodes/leaf0\n"), made.stderr)
        self.assertEqual(self.modes(self.keys / "nodes" / "leaf0"), {"ca.pem": 0o644, "node.pem": 0o644, "node.key": 0o600})
        again = trib("credentials", self.keys, "--node", "leaf0")
        self.assertEqual((again.returncode, f"{self.keys}/nodes/leaf0" in again.stderr), (1, True))
        self.assertEqual(trib("credentials", self.keys, "--node", "../leaf0").returncode, 2)
        (self.top / "topology.toml").write_text(TWO_LEVELS)
        where = ["--topology", self.top / "topology.toml", "--credentials", self.keys, "--listen", "127.0.0.1:0"]
        manager = Daemon(self.top, "am", ["am", *where])
        self.addCleanup(manager.close)
        address = manager.wait_for("X_TRIB_ADDRESS")

        def node(name, folder):
            url = f"tls://{address}?credentials={folder}"
            daemon = Daemon(self.top, f"{name}-{folder.name}", ["an", "--name", name, "--manager", url, "--listen", "127.0.0.1:0"])
            self.addCleanup(daemon.close)
            return daemon

        def refused(name, folder, *words):
            daemon = node(name, folder)
            wait_until(lambda: all(word in daemon.log.read_text() for word in words), 20, f"{name} is told {words}")

        own = self.keys / "nodes" / "leaf0"
        # Not even while the node is away does another get its name, nor does its key get another.
        refused("leaf0", self.keys, "has a certificate of its own", "--node leaf0")
        refused("leaf1", own, "the certificate is that of node `leaf0`", "--name leaf0")
        node("leaf0", own).wait_for("X_TRIB_ADDRESS")
        # A node without one registers as before.
        node("root", self.keys).wait_for("X_TRIB_ADDRESS")
        status = trib("status", "--json", env={"TRIB_MANAGER": f"tls://{address}?credentials={self.keys}"})
        connected = {told["name"] for told in json.loads(status.stdout)["nodes"] if told["connected"]}
        self.assertEqual(connected, {"leaf0", "root"})

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
        for key in ("manager.key", "node.key"):
            read = subprocess.run(["cat", self.keys / key], capture_output=True, **nobody)
            self.assertNotEqual(read.returncode, 0)


if __name__ == "__main__":
    unittest.main()
