"""What an operator does with the daemons: settings, logs, the watchdog, services and
installation."""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from daemons import Watched
from harness import ROOT, TRIB, wait_until


def trib(*arguments, env=None):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TRIB_")}
    return subprocess.run(
        [TRIB, *map(str, arguments)], env={**plain, **(env or {})}, capture_output=True, text=True, timeout=60
    )


class Settings(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="trib-settings-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_a_slip_in_a_file_is_told_with_line_and_remedy(self):
        file = self.folder / "an.toml"
        for text, words in [
            ('name = "leaf0"\nlisen = "127.0.0.1:0"\n', [":2:", "lisen is no setting of `trib an`", "listen"]),
            ("\n\nworkers = 65\n", [":3:", "65 lies outside 1..=64", "1 to 64"]),
            ('name = "leaf0"\n', ["manager", "TRIB_MANAGER", "--manager"]),
        ]:
            file.write_text(text)
            done = trib("an", "--config", file)
            self.assertEqual(done.returncode, 2, done)
            for word in words:
                self.assertIn(word, done.stderr)
        am = self.folder / "am.toml"
        am.write_text('topology = "t.toml"\ncredentials = "."\nlisten = "127.0.0.1:7070"\nmetrics = "127.0.0.1:7070"\n')
        done = trib("am", "--config", am)
        self.assertEqual(done.returncode, 2, done)
        for word in (f"{am}:4: metrics = 127.0.0.1:7070 contradicts listen", f"(configuration {am}:3)", "another port"):
            self.assertIn(word, done.stderr)
        print(done.stderr.strip())
        done = trib("am", "--config", self.folder / "none.toml")
        self.assertEqual(done.returncode, 3, done)
        self.assertIn("none.toml", done.stderr)

    def test_a_node_runs_from_a_file_that_began_as_the_printed_one(self):
        printed = trib("an", "--print-config")
        self.assertEqual(printed.returncode, 0, printed)
        with Watched() as daemons:
            text = re.sub(r"(?m)^name = .*", 'name = "leaf0"', printed.stdout)
            text = re.sub(r"(?m)^manager = .*", f'manager = "{daemons.url}"', text)
            text = re.sub(r"(?m)^listen = .*", 'listen = "127.0.0.1:0"', text)
            text = re.sub(r"(?m)^#workers = .*", "workers = 3", text)
            file = self.folder / "an.toml"
            file.write_text(re.sub(r"(?m)^#log_file = .*", 'log_file = "an.log"', text))
            self.assertEqual(daemons.an.stop(), 0)
            # The environment takes precedence over the file, and the command line over both.
            again = daemons.start("again", ["an", "--config", file, "--workers", "2"], {"TRIB_AN_WORKERS": "64"})
            again.wait_for("READY")
            status = trib("status", "--json", "--manager", daemons.url)
            self.assertIn('"workers": 2', status.stdout)
            self.assertEqual(again.stop(), 0)
        # A relative path is relative to the file's folder.
        self.assertIn("registered", (self.folder / "an.log").read_text())


class Logs(unittest.TestCase):
    def test_the_journal_gets_levels_and_everybody_else_the_time(self):
        with Watched() as daemons:
            self.assertRegex(daemons.am.log.read_text(), r"(?m)^20\d\d-\d\d-\d\dT\S+ .*INFO.* trib_manager")
            read, write = os.pipe()
            stat = os.fstat(write)
            process = subprocess.Popen(
                [TRIB, "am", "--topology", daemons.folder / "topology.toml", "--credentials", daemons.folder / "keys",
                 "--listen", "127.0.0.1:0"],
                stderr=write, env={**os.environ, "TRIB_LOG": "info", "JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"},
            )
            os.close(write)
            with open(read, encoding="utf-8") as stderr:
                said = ""
                while "manager ready" not in said and (line := stderr.readline()):
                    said += line
                process.terminate()
                said += stderr.read()
            self.assertEqual(process.wait(20), 0, said)
        self.assertRegex(said, r"(?m)^<6>trib_manager: predictions constants=\S")
        self.assertRegex(said, r"(?m)^<6>trib_manager: manager ready address=127\.0\.0\.1:\d+$")
        self.assertTrue(all(re.match(r"<[3-7]>\S", line) for line in said.splitlines()), said)
        with Watched(env={"JOURNAL_STREAM": "1:1"}) as daemons:
            self.assertNotIn("<6>", daemons.am.log.read_text(), "stderr is another file than the journal's")


class Watchdog(unittest.TestCase):
    LIMIT = 0.9

    def test_the_word_comes_as_long_as_every_thread_answers(self):
        env = {"WATCHDOG_USEC": str(int(self.LIMIT * 1e6))}
        with Watched(env=env) as daemons:
            for daemon in (daemons.am, daemons.an):
                for _ in range(4):
                    self.assertEqual(self.word(daemon), "1")
            worker = self.thread(daemons.an.process.pid, "worker-0")
            try:
                stopped = Stopped(worker)
            except OSError as error:
                self.skipTest(f"cannot stop a thread: {error}")
            with stopped:
                wait_until(lambda: "does not answer" in daemons.an.log.read_text(), 20, "the daemon's complaint")
                self.drain(daemons.an)
                with self.assertRaises(TimeoutError):
                    daemons.an.hear(2 * self.LIMIT)
                self.drain(daemons.am)
                self.assertEqual(self.word(daemons.am), "1", "the manager is well")
            self.assertEqual(self.word(daemons.an), "1", "it is well again")

    def word(self, daemon):
        """The next notification for the watchdog."""
        while True:
            said = daemon.hear(10 * self.LIMIT)
            if "WATCHDOG" in said:
                return said["WATCHDOG"]

    @staticmethod
    def drain(daemon):
        daemon.socket.setblocking(False)
        try:
            while True:
                daemon.socket.recv(4096)
        except BlockingIOError:
            pass

    @staticmethod
    def thread(pid, name):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().strip() == name:
                return int(task.name)
        raise AssertionError(f"no thread {name}")


class Stopped:
    """Stops one thread of a process while the others go on, as a debugger does."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, thread):
        self.libc, self.thread = ctypes.CDLL(None, use_errno=True), thread
        self.trace(self.SEIZE)

    def trace(self, what):
        none = ctypes.c_void_p()
        if self.libc.ptrace(ctypes.c_long(what), ctypes.c_long(self.thread), none, none) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def __enter__(self):
        self.trace(self.INTERRUPT)
        # This is __WALL, which waits for threads, too.
        os.waitpid(self.thread, 0x40000000)

    def __exit__(self, *_):
        self.trace(self.DETACH)


class Services(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="trib-image-")
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)

    def files(self):
        return sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file())

    def test_services_are_installed_understood_by_systemd_and_removed_without_a_trace(self):
        root = ["--root", self.root]
        done = trib("service", "install", *root)
        self.assertEqual(done.returncode, 0, done)
        done = trib("service", "install", "an", "--name", "leaf1", *root)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("systemctl enable --now tributary-an-leaf1.service", done.stdout)
        units = [self.root / "etc/systemd/system" / f"tributary-{name}.service" for name in ("am", "an", "an-leaf1")]
        self.assertTrue(all(unit.exists() for unit in units), self.files())
        if shutil.which("systemd-analyze"):
            for unit in units:
                verdict = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
                complaints = [line for line in verdict.stderr.splitlines() if "tributary" in line]
                self.assertEqual(complaints, [], verdict)
        else:
            print("systemd-analyze is not there: units not verified")
        for extra in (["an", "--name", "leaf1"], []):
            done = trib("service", "remove", *extra, *root)
            self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.files(), [])

    def test_a_dry_run_prints_the_unit_and_writes_nothing(self):
        done = trib("service", "install", "am", "--dry-run", "--root", self.root, "--prefix", "/usr")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("# /usr/lib/systemd/system/tributary-am.service\n[Unit]\n", done.stdout)
        self.assertIn("\nExecStart=/usr/bin/trib am --config /etc/tributary/am.toml --state /var/lib/tributary/am.jobs\n", done.stdout)
        self.assertIn("\nStateDirectory=tributary\n", done.stdout)
        self.assertEqual(self.files(), [])
        self.assertEqual(trib("service", "install", "am", "--name", "a/b", "--root", self.root).returncode, 2)


class ModuleFile(unittest.TestCase):
    def test_it_is_tcl_and_sets_the_paths_of_its_prefix(self):
        if not shutil.which("tclsh"):
            self.skipTest("tclsh is not there")
        text = (ROOT / "deploy/modulefiles/tributary.in").read_text()
        text = text.replace("@PREFIX@", "/opt/tributary").replace("@VERSION@", "1.2.3")
        self.assertTrue(text.startswith("#%Module1.0\n"))
        commands = "".join(
            f'proc {name} args {{ puts "{name} $args" }}\n' for name in ("module-whatis", "conflict", "setenv", "prepend-path")
        )
        done = subprocess.run(["tclsh"], input=commands + text, capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in ("prepend-path PATH /opt/tributary/bin", "setenv TRIBUTARY_MPI /opt/tributary/lib/libtrib_mpi.so"):
            self.assertIn(line, done.stdout.splitlines())


if __name__ == "__main__":
    unittest.main()
