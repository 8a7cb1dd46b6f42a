"""Fabrics, ranks and processes for the system tests. Everything started here is stopped here."""

import contextlib
import ctypes
import json
import os
import pathlib
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from urllib.parse import parse_qs, urlsplit

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("TRIB_PROFILE", "release")
TRIB = BUILD / "trib"
LIBRARY = BUILD / "libtributary.so"
PYTHON = "/usr/bin/python3"

# What tests hand to the hosts of a laboratory is in files, and each host has a /tmp of its own.
tempfile.tempdir = "/var/tmp"


class Fabric:
    """A local fabric of the test's own, as `trib fabric up --local` makes it: leaf nodes
    leaf0.., a root and a manager."""

    count = 0

    def __init__(self, leaves=2, workers=1, env=None, backups=0, shared_host=False):
        Fabric.count += 1
        # A run that was killed leaves its fabrics, and process numbers come back.
        self.name = f"test{os.getpid()}-{secrets.token_hex(3)}-{Fabric.count}"
        self.env = {**os.environ, "TRIB_LOG": "warn", **(env or {})}
        command = [TRIB, "fabric", "up", "--local", "--name", self.name, "--leaves", str(leaves), "--workers", str(workers)]
        if backups:
            command += ["--backups", str(backups)]
        if shared_host:
            command += ["--shared-host"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"fabric up failed: {done.stderr}")
        lines = done.stdout.splitlines()
        assert lines and all(line.startswith("export TRIB_MANAGER=") for line in lines), done.stdout
        self.manager = shlex.split(lines[-1])[1].split("=", 1)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes().values():
            send(process, signal.SIGCONT)
        down = [TRIB, "fabric", "down", "--local", "--name", self.name]
        subprocess.run(down, env=self.env, capture_output=True, timeout=60, check=True)

    def folder(self):
        """Where its daemons keep their logs."""
        return pathlib.Path(parse_qs(urlsplit(self.manager).query)["credentials"][0]).parent

    def processes(self):
        """{daemon name: pid} of the daemons that run."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            line = b" ".join(words).decode(errors="replace")
            if f"/{self.name}/" in line and words[0].endswith(b"trib"):
                verb = words[1].decode()
                if verb == "am":
                    found["manager"] = int(entry.name)
                elif verb == "an":
                    found[words[words.index(b"--name") + 1].decode()] = int(entry.name)
        return found

    def status(self):
        done = subprocess.run(
            [TRIB, "status", "--json"], env={**self.env, "TRIB_MANAGER": self.manager},
            capture_output=True, text=True, timeout=30,
        )
        if done.returncode != 0:
            raise AssertionError(f"trib status ended with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def node_counters(self):
        """{node name: {counter: value}}."""
        return {node["name"]: node["counters"] for node in self.status()["nodes"]}


def send(pid, number):
    """Once this returns, a process that is to stop has stopped: one of its threads takes the signal
    and has the others stop, milliseconds later on a busy machine, in which these go on."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    if number == signal.SIGSTOP:
        wait_until(lambda: states(pid) <= set("TtZX"), 30, f"process {pid} stopped", every=0.001)


def states(pid):
    """The states of a process's threads, a letter each, as in /proc/PID/stat (proc(5))."""
    found = set()
    for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.add(thread.read_text().rpartition(")")[2].split()[0])
    return found


def rank_env(fabric=None, quota=None, env=None):
    values = {**os.environ, "PYTHONPATH": str(HERE), "OPENBLAS_NUM_THREADS": "1"}
    if fabric is not None:
        values["TRIB_MANAGER"] = fabric.manager
    if quota:
        values["TRIB_QUOTA"] = ",".join(f"{k}={v}" for k, v in quota.items())
    values.update(env or {})
    return values


class Ranks:
    """One function of a worker file on every rank: `trib run -n RANKS -- python3 WORKER FUNCTION
    ARGS`.

    The function gets the parsed JSON argument and returns something that JSON can express; that
    becomes `results()[rank]`. With `hosts`, the ranks report these in equal blocks.
    """

    def __init__(self, fabric, ranks, worker, function, argument=None, quota=None, env=None, through=(), hosts=()):
        self.ranks = ranks
        self.folder = tempfile.TemporaryDirectory(prefix="trib-test-")
        script = [PYTHON, str(HERE / "rank.py"), worker, function, self.folder.name, json.dumps(argument)]
        named = ["--hosts", ",".join(hosts)] if hosts else []
        command = [str(TRIB), "run", "-n", str(ranks), *named, "--", *through, *script]
        self.process = subprocess.Popen(
            command, env=rank_env(fabric, quota, env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def results(self, timeout=120):
        """Waits for all ranks. Fails with their output unless every rank ended by itself."""
        try:
            output, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            noted = ", ".join(f"rank {rank} {self.noted(rank)}" for rank in range(self.ranks))
            self.stop()
            output, _ = self.process.communicate()
            raise AssertionError(f"ranks run or hang after {timeout} s ({noted}):\n{output[-4000:]}") from None
        if self.process.returncode != 0:
            raise AssertionError(f"ranks failed with {self.process.returncode}:\n{output[-4000:]}")
        folder = pathlib.Path(self.folder.name)
        return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(self.ranks)]

    def progress(self, rank):
        """The last number that this rank has noted with `note`, or -1."""
        try:
            return int((pathlib.Path(self.folder.name) / f"{rank}.note").read_text() or -1)
        except (OSError, ValueError):
            return -1

    def noted(self, rank):
        """What this rank has noted and how long ago: tells a slow rank from one that hangs."""
        try:
            age = time.time() - (pathlib.Path(self.folder.name) / f"{rank}.note").stat().st_mtime
        except OSError:
            return "noted nothing"
        return f"noted {self.progress(rank)} {age:.1f} s ago"

    def reach(self, condition, limit, what):
        """Waits until a condition holds. Fails with what the ranks say, at once if they end first."""
        ends = lambda: self.process.poll() is not None
        try:
            wait_until(lambda: ends() or condition(), limit, what)
        except AssertionError as late:
            folder = pathlib.Path(self.folder.name)
            ended = {rank: file.read_text()[:300] for rank in range(self.ranks) if (file := folder / f"{rank}.json").exists()}
            noted = ", ".join(f"rank {rank} {self.noted(rank)}" for rank in range(self.ranks))
            raise AssertionError(f"{late} ({noted}; over: {ended or 'none'})") from None
        if not condition():
            raise AssertionError(f"{what}: the ranks ended first: {self.results()}")

    def pids(self):
        return [int((pathlib.Path(self.folder.name) / f"{rank}.pid").read_text()) for rank in range(self.ranks)]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self.folder.cleanup()


class RanksOnHosts(Ranks):
    """Puts one rank on each host of a laboratory: rank n on host hn; or several, rank n on host
    h(n / per_host); or leaves hosts without a rank, rank n on host h(n * apart). Without a name, the
    laboratory is the one that TRIB_LAB names."""

    def __init__(self, lab, ranks, worker, function, argument, quota=None, per_host=1, apart=1):
        which = f'--name "{lab}" ' if lab else ""
        # The launcher gives every rank its number; the shell turns it into a host.
        host = f"h$((TRIB_RANK * {apart} / {per_host}))"
        through = ["sh", "-c", f'exec "{TRIB}" lab exec {which}"{host}" -- "$@"', "sh"]
        super().__init__(None, ranks, worker, function, argument, quota, through=through)


def wait_until(condition, limit=20.0, what="condition", every=0.05):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(every)
    raise AssertionError(f"{what} not within {limit} s")


def has_cuda():
    """Whether this machine has a CUDA driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if not TRIB.exists() or not LIBRARY.exists():
    sys.exit(f"{TRIB} or {LIBRARY} is missing: build first with `make build`")

# Tests share modules with their ranks, and these modules load the library.
os.environ["TRIB_TEST_LIBRARY"] = str(LIBRARY)
