"""Plays one round: a job, a fault during its operations, and everything as before after it."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from harness import TRIB, send, wait_until
from plan import NODES

#: Operations before the fault, after it, and when everything runs again.
WARM = {"256 B": 100, "4 MiB": 5, "64 MiB": 2, "1 GiB": 1, "mpi": 100}
AFTER = {"256 B": 200, "4 MiB": 20, "64 MiB": 4, "1 GiB": 2, "mpi": 200}
#: What a step may take, in seconds, besides the time for which a link is cut. On a machine with a
#: load of 37, eight ranks took longer than a minute for their first two operations of 64 MiB.
LIMIT = {"256 B": 120, "4 MiB": 120, "64 MiB": 300, "1 GiB": 900, "mpi": 120}
#: How long nodes and manager may take until they are there for the next job.
READY = 60


@dataclasses.dataclass
class Outcome:
    plan: object
    verdict: str = "ok"
    epochs: int = 0
    #: Milliseconds from the fault until the first rank has gone to another epoch, from there until
    #: all ranks were out of their standstill, and the longest standstill of a rank up to then
    #: (where no rank has gone to another epoch, until everything ran again).
    detected: float | None = None
    recovered: float | None = None
    stall: float | None = None
    #: The longest time of that standstill in which threads of one of the ranks were ready, and had
    #: no processor.
    waited: float | None = None
    #: The longest standstill in the second before the fault, from the recovery until the daemons
    #: were restarted, and after that.
    before: float | None = None
    later: float | None = None
    after: float | None = None
    #: Standstills of some rank that took a tenth of a second or longer: rank, from and to,
    #: milliseconds after the fault, and how long it waited for a processor in it; and when which
    #: rank was in which epoch.
    standstills: list = dataclasses.field(default_factory=list)
    moves: list = dataclasses.field(default_factory=list)
    operations: int = 0
    seconds: float = 0.0
    #: What an unsuccessful round left, in words.
    state: str = ""

    def line(self):
        plan = self.plan
        parts = f"detected after {told(self.detected)}, recovered in {told(self.recovered)}"
        return (f"seed {plan.seed:<5} {plan.size:>6}  {plan.what():<30} at {1000 * plan.when:4.0f} ms  epochs {self.epochs}  "
                f"stall {told(self.stall):>8} ({parts}, waited for a processor {told(self.waited)})  {self.verdict}")

    def json(self):
        values = dataclasses.asdict(self)
        return json.dumps({**values.pop("plan"), **values})


def told(milliseconds):
    return "-" if milliseconds is None else f"{milliseconds:.0f} ms"


class Stage:
    """A laboratory and what its daemons can suffer."""

    def __init__(self, lab):
        self.lab = lab

    def pid(self, daemon):
        return next(known["pid"] for known in self.lab.status()["daemons"] if known["name"] == daemon)

    def strike(self, plan):
        """Does what the plan wants and returns when."""
        if plan.hurts_all or plan.fault in ("kill", "stop"):
            pids = [self.pid(node) for node in (NODES if plan.hurts_all else [plan.where])]
            began = time.monotonic()
            for pid in pids:
                send(pid, signal.SIGSTOP if plan.fault == "stop" else signal.SIGKILL)
            return began
        began = time.monotonic()
        if plan.fault == "loss":
            self.lab.fault("loss", "--link", plan.where, "--percent", "5")
        else:
            self.lab.fault("cut", "--link", plan.where)
        return began

    def make_whole(self):
        """Ends all faults, and starts all daemons that have ended."""
        self.lab.fault("clear")
        for daemon in self.lab.status()["daemons"]:
            if daemon["state"] == "ended":
                self.lab.fault("start", "--process", daemon["name"])

    def wait_until_ready(self):
        """Until every node is there for another job and none is left of this one."""
        def is_ready():
            status = self.lab.manager_status()
            there = [node["connected"] and node["silent_since_ms"] is None for node in status["nodes"]]
            return all(there) and not status["jobs"]
        wait_until(is_ready, READY, "all nodes ready for the next job")

    def explain(self):
        """What manager, nodes and ranks say of the job."""
        env = {**os.environ, "TRIB_LAB": self.lab.name, "TRIB_MANAGER": self.lab.status()["manager"]}
        parts = []
        for words in (["lab", "fault", "list", "--name", self.lab.name], ["status"], ["jobs", "--all"]):
            parts.append(said([TRIB, *words], env))
        try:
            parts += [said([TRIB, "explain", str(job["id"])], env) for job in self.lab.manager_status()["jobs"]]
        except subprocess.CalledProcessError as failed:
            parts.append(f"the manager does not answer: {failed.stderr}")
        for daemon in self.lab.status()["daemons"]:
            log = pathlib.Path(daemon["log"]).read_text(errors="replace").splitlines()
            parts.append(f"{daemon['name']}: {daemon['state']}\n" + "\n".join(log[-20:]))
        return "\n".join(parts)


def said(command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    return f"$ {' '.join(map(str, command))}\n{done.stdout}{done.stderr}"


def play(lab, plan, job):
    """`job` is what jobs.prepare returned for the vectors."""
    stage, outcome, began = Stage(lab), Outcome(plan), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trib-round-") as folder:
        stop = pathlib.Path(folder) / "stop"
        with job.start(stop) as ranks:
            try:
                struck, whole = faults(stage, ranks, plan)
                stop.touch()
                measure(outcome, ranks.results(LIMIT[plan.size]), struck, whole)
            except (AssertionError, subprocess.SubprocessError) as failed:
                outcome.verdict = verdict_of(ranks, failed)
                outcome.state = f"{failed}\n{stage.explain()}"
    try:
        stage.make_whole()
        stage.wait_until_ready()
    except (AssertionError, subprocess.SubprocessError) as failed:
        outcome.verdict = outcome.verdict if outcome.verdict != "ok" else f"FAILED: {failed}"
        outcome.state += f"\n{failed}\n{stage.explain()}"
    outcome.seconds = time.monotonic() - began
    return outcome


def faults(stage, ranks, plan):
    """Returns when the fault came and when everything ran again."""
    more = lambda count: lambda start=progress(ranks): ended(ranks) or progress(ranks) >= start + count
    limit = LIMIT[plan.size]
    wait_until(lambda: ended(ranks) or progress(ranks) >= WARM[plan.size], limit, "first operations")
    if plan.without_manager:
        stage.lab.fault("kill", "--process", "manager")
    time.sleep(plan.when)
    struck = stage.strike(plan)
    if plan.mended_after:
        time.sleep(plan.mended_after)
        stage.lab.fault("mend", "--link", plan.where)
    wait_until(more(AFTER[plan.size]), limit, "operations after the fault")
    whole = time.monotonic()
    if plan.fault != "no nodes":
        stage.make_whole()
    wait_until(more(AFTER[plan.size]), limit, "operations after the daemons were restarted")
    return struck, whole


def progress(ranks):
    """How many operations every rank has done."""
    return min(ranks.progress(rank) for rank in range(ranks.ranks))


def ended(ranks):
    """Ranks end by themselves only when something has gone wrong, which `results` tells."""
    return ranks.process.poll() is not None


def verdict_of(ranks, failed):
    if ended(ranks):
        output = str(failed).splitlines()
        named = [line for line in output if "native.Failed" in line]
        return "ERROR: " + (named[0] if named else output[-1])
    return f"HANGS: {str(failed).splitlines()[0]}"


def measure(outcome, results, struck, whole):
    outcome.operations = results[0]["done"]
    outcome.epochs = max(result["counters"]["epochs"] for result in results)
    wrong = [(rank, wrong) for rank, result in enumerate(results) for wrong in result["wrong"]]
    if wrong:
        outcome.verdict = f"WRONG BITS: {wrong[0]}"
        outcome.state = "\n".join(map(str, wrong))
    gaps = [tuple(gap) for result in results for gap in result["gaps"]]
    hurt = [gap for gap in gaps if gap[1] > struck and gap[0] < whole]
    outcome.standstills = [
        (rank, milliseconds(gap[0] - struck), milliseconds(gap[1] - struck), milliseconds(gap[2]))
        for rank, result in enumerate(results) for gap in result["gaps"] if length(gap) >= 0.1 and gap[1] > struck
    ]
    outcome.moves = [(rank, milliseconds(at - struck), epochs) for rank, result in enumerate(results) for at, epochs in result["epochs"]]
    moved = [at for result in results for at, _ in result["epochs"] if struck <= at <= whole]
    # A rank stands still until its next operation ends, wherever in that time it has moved.
    over = max([gap[1] for gap in hurt if any(gap[0] <= at <= gap[1] for at in moved)] + moved, default=whole)
    # What a rank had waited before the fault is not the fault's.
    stalls = [(max(gap[0], struck), *gap[1:]) for gap in hurt if gap[0] < over]
    stall = max(stalls, key=length, default=None)
    if stall:
        outcome.stall = milliseconds(length(stall))
        waited = max(gap[2] for gap in hurt if gap[0] < stall[1] and gap[1] > stall[0])
        outcome.waited = milliseconds(min(waited, length(stall)))
    outcome.before = longest(gap for gap in gaps if struck - 1 < gap[0] and gap[1] <= struck)
    outcome.later = longest(gap for gap in hurt if gap[0] >= over)
    outcome.after = longest(gap for gap in gaps if gap[0] >= whole)
    if moved:
        # Shorter gaps than those that the move ends are the processor's.
        standing = [gap[1] for gap in hurt if gap[0] <= min(moved) <= gap[1]]
        outcome.detected = milliseconds(min(moved) - struck)
        outcome.recovered = milliseconds(max(standing, default=min(moved)) - min(moved))


def longest(gaps):
    return milliseconds(max(map(length, gaps), default=0))


def length(gap):
    return gap[1] - gap[0]


def milliseconds(seconds):
    return round(1000 * seconds, 1)
