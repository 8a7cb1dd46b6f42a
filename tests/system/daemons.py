"""Single daemons, which the test supervises."""

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import tomllib

from harness import TRIB

# The ranks of these tests share this machine, and are children of aggregation nodes nevertheless.
ONE_NODE = """
[fabric]
name = "watched"
[limits]
levels = { default = "none" }
[[node]]
name = "leaf0"
[[host]]
name = "*"
leaf = "leaf0"
"""

TWO_LEVELS = """
[fabric]
name = "watched"
[limits]
levels = { default = "none" }
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


class Daemon:
    """One `trib` daemon with a notification socket; its stderr goes to a file."""

    def __init__(self, folder, name, arguments, env=None):
        self.path = folder / f"{name}.notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.log = folder / f"{name}.log"
        plain = {k: v for k, v in os.environ.items() if not k.startswith("TRIB_")}
        with open(self.log, "wb") as errors:
            self.process = subprocess.Popen(
                [TRIB, *map(str, arguments)], env={**plain, "NOTIFY_SOCKET": str(self.path), **(env or {})},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            )
        self.said = {}

    def hear(self, limit=20.0):
        """The next message, as {name: value}."""
        self.socket.settimeout(limit)
        message = self.socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in message.splitlines())

    def wait_for(self, name, limit=20.0):
        """What the daemon says under this name, now or earlier."""
        while name not in self.said:
            try:
                self.said.update(self.hear(limit))
            except TimeoutError:
                raise AssertionError(f"no {name} from the daemon:\n{self.log.read_text()}") from None
        return self.said[name]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the daemon does not end:\n{self.log.read_text()}") from None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.socket.close()


class Watched:
    """A manager and the nodes of its topology, started with the options given."""

    def __init__(self, manager=(), node=(), env=None, topology=ONE_NODE):
        self.temporary = tempfile.TemporaryDirectory(prefix="trib-watched-")
        self.folder = pathlib.Path(self.temporary.name)
        self.daemons = []
        try:
            keys = self.folder / "keys"
            names = [table["name"] for table in tomllib.loads(topology)["node"]]
            for words in ([], ["--node", ",".join(names)]):
                subprocess.run([TRIB, "credentials", keys, *words], check=True, timeout=60, stdout=subprocess.DEVNULL)
            (self.folder / "topology.toml").write_text(topology)
            where = ["--topology", self.folder / "topology.toml", "--credentials", keys, "--listen", "127.0.0.1:0"]
            self.am = self.start("am", ["am", *where, *manager], env)
            self.url = f"tls://{self.am.wait_for('X_TRIB_ADDRESS')}?credentials={keys}"
            where = ["--manager", self.url, "--listen", "127.0.0.1:0"]
            self.nodes = {name: self.start(name, ["an", "--name", name, *where, *node], env) for name in names}
            for daemon in self.nodes.values():
                daemon.wait_for("X_TRIB_ADDRESS")
            self.an = self.nodes["leaf0"]
        except BaseException:
            self.__exit__()
            raise

    def start(self, name, arguments, env):
        self.daemons.append(Daemon(self.folder, name, arguments, env))
        return self.daemons[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.close()
        self.temporary.cleanup()
