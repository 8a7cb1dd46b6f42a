"""The laboratory in which tests/apps/in_lab runs applications: eight hosts on two leaves, free,
loaded by another job, or with noise on hosts. What is started here ends here."""

import contextlib
import json
import os
import signal
import subprocess
import time

from launch import PARAMETERS, Failed, Outcome
from steps import Place

from harness import TRIB  # noqa: E402

HOSTS = 8
RATE = "200mbit"
#: HPC Challenge sends the same amounts however small its matrix is: 55 s of them at 200 Mbit/s.
RATES = {"hpcc/example": "2gbit"}
SETTINGS = ("free", "loaded", "noise")
#: TRIB_MPI, and whether there is a profile.
MODES = {"plain": None, "tree": "on", "profile of plain": "report", "profile of tree": "on"}
#: The other job's vectors. It always has one under way, so that it takes half of every link.
STREAM = ["bench", "--min", "4M", "--max", "4M", "--iterations", "1000000"]
NOISY = ("h1", "h6")
#: With noise, the cores of nodes and manager, and of hosts and busy loops.
OF_NODES, OF_HOSTS = 0, 1


def shape(application):
    """The options of `trib lab up`."""
    return ["--hosts", str(HOSTS), "--leaf-ports", "4", "--rate", RATES.get(application, RATE)]


class Laboratory(Place):
    """The one that TRIB_LAB names, in a setting."""

    def __init__(self, folder, setting):
        super().__init__(os.environ["TRIB_MANAGER"], folder, folder)
        self.through = ["taskset", "-c", str(OF_HOSTS)] if setting == "noise" else []

    def run(self, how, ranks, program, folder, limit):
        report = folder / "report.json"
        variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "WM_PROJECT_DIR": "/usr/share/openfoam"}
        parameters = {}
        if MODES[how] is not None:
            variables |= {"TRIB_MPI": MODES[how], "TRIB_MPI_REPORT_FILE": str(report)}
            parameters = PARAMETERS
        if "profile" in how:
            variables["TRIB_MPI_PROFILE"] = "1"
        command = [
            *self.through, TRIB, "lab", "mpirun", "--ranks-per-host", str(ranks // HOSTS), "--placement", "block", "--timeout", str(limit),
            *(word for name, value in variables.items() for word in ("--env", f"{name}={value}")),
            *(word for name, value in parameters.items() for word in ("--mca", name, value)), "--", *program,
        ]
        begun = time.monotonic()
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        seconds = time.monotonic() - begun
        outcome = Outcome(done.returncode, done.stdout, seconds, json.loads(report.read_text()) if report.exists() else None)
        if done.returncode != 0:
            raise Failed(f"it ended with {done.returncode} ({how}, {ranks} ranks, {seconds:.0f} s):\n{outcome.tail()}")
        # Which calls are worth the tree is decided there; that there is one is not.
        if MODES[how] == "on" and not (outcome.report and outcome.report["groups"]["made"]):
            raise Failed(f"there was no tree ({how}, {ranks} ranks):\n{outcome.tail()}")
        return outcome


def pin_daemons():
    status = json.loads(subprocess.run([TRIB, "lab", "status", "--json"], check=True, capture_output=True, text=True).stdout)
    for daemon in status["daemons"]:
        for thread in os.listdir(f"/proc/{daemon['pid']}/task"):
            os.sched_setaffinity(int(thread), {OF_NODES})


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def disturbed(setting):
    """What goes on beside the applications. Raises Failed if it has ended by itself."""
    commands = []
    if setting == "loaded":
        on_its_host = f'exec "$0" lab exec h$TRIB_RANK -- "$0" {" ".join(STREAM)}'
        commands = [[TRIB, "run", "-n", str(HOSTS), "--", "sh", "-c", on_its_host, TRIB]]
    if setting == "noise":
        pin_daemons()
        commands = [["taskset", "-c", str(OF_HOSTS), TRIB, "lab", "exec", host, "--", "sh", "-c", "while :; do :; done"] for host in NOISY]
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    try:
        time.sleep(2 if running else 0)
        yield
        if any(process.poll() is not None for process in running):
            raise Failed(f"what was to go on beside it ({setting}) has ended")
    finally:
        for process in running:
            end(process)
