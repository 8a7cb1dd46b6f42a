"""An MPI program under its launcher: plain, counted (ours counts, and the MPI does everything), or
through the tree of a fabric."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import stacks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from harness import BUILD, ROOT  # noqa: E402, F401

COMPONENTS = BUILD / "tributary/openmpi"
HOWS = ("plain", "counted", "tree")
MODES = {"counted": "report", "tree": "force"}
#: So many characters are told of what a program has said that comes to no end.
SAID = 2000


class Failed(Exception):
    """What an application did wrong, for a person."""


class Late(Failed):
    """It came to no end within its limit."""


@dataclasses.dataclass(frozen=True)
class Way:
    """How programs of an MPI are started. Where ours is wanted, further variables and words in front of the program load it."""

    launcher: tuple
    env: dict
    ours: dict = dataclasses.field(default_factory=dict)
    words: tuple = ()


OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
#: Parameters of Open MPI that load and switch on the component.
PARAMETERS = {"mca_base_component_path": f"SYSTEM_DEFAULT:{COMPONENTS}:USER_DEFAULT", "coll_tributary_enable": "1"}
COMPONENT = Way(("mpirun",), OPEN_MPI, {f"OMPI_MCA_{name}": value for name, value in PARAMETERS.items()})


def preloaded(launcher, env):
    """The library that is preloaded: into the programs, not into the launcher."""
    return Way((str(launcher),), env, words=("env", f"LD_PRELOAD={BUILD / 'libtrib_mpi.so'}"))


class Outcome:
    """How a program ended: `seconds` by the clock on the wall, and our report."""

    def __init__(self, code, said, seconds, report):
        self.code, self.said, self.seconds, self.report = code, said, seconds, report

    def tail(self):
        return "\n".join(self.said.splitlines()[-15:])


def environment(way, how, manager, report):
    """The variables that say so to the programs."""
    values = {**os.environ, **way.env, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if how != "plain":
        values |= {**way.ours, "TRIB_MANAGER": manager, "TRIB_MPI": MODES[how], "TRIB_MPI_REPORT_FILE": str(report)}
    return values


def run(words, folder, limit, env=None):
    """(exit code, stdout and stderr, seconds). After the limit the code is None, and the end of what was said is followed by where its processes stood."""
    said, stood = folder / "said", ""
    begun = time.monotonic()
    with open(said, "w") as file:
        process = subprocess.Popen(
            [str(word) for word in words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code, stood = None, stacks.below(process.pid)
        finally:
            if process.poll() is None:
                end(process)
    text, seconds = said.read_text(errors="replace"), time.monotonic() - begun
    return code, text if code is not None else f"{text[-SAID:]}\n{stood}", seconds


def end(process):
    """mpirun ends its ranks, which it puts into sessions of their own."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def mpirun(place, how, ranks, words, folder, limit, way=COMPONENT):
    """Runs it to its end; raises Late if it takes longer than `limit` seconds, or as many times more as the place has patience."""
    limit *= place.patience
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    env = environment(way, how, place.manager, report)
    command = [*way.launcher, "-np", ranks, *(way.words if how != "plain" else ()), *words]
    code, said, seconds = run(command, folder, limit, env)
    if code is None:
        raise Late(f"it ran for more than {limit} s ({how}, {ranks} ranks):\n{said}")
    return Outcome(code, said, seconds, json.loads(report.read_text()) if report.exists() else None)


def with_us(outcome, how, ranks):
    """The outcome; raises Failed if a program of several ranks was to use the tree and made no call in it. Its results would be the
    MPI's, and agree with them."""
    calls = sum(each["tree"] for each in outcome.report["collectives"].values()) if outcome.report else 0
    if how == "tree" and ranks > 1 and calls == 0:
        raise Failed(f"no call went through the tree ({ranks} ranks):\n{outcome.tail()}")
    return outcome


def good(place, how, ranks, *arguments, **options):
    """The same for a program that must end with 0."""
    outcome = mpirun(place, how, ranks, *arguments, **options)
    if outcome.code != 0:
        raise Failed(f"it ended with {outcome.code} ({how}, {ranks} ranks):\n{outcome.tail()}")
    return with_us(outcome, how, ranks)
