"""The fabric dies in the middle of an application: a node, the manager or all nodes. The application ends with the results that it
has plainly."""

import contextlib
import dataclasses
import signal
import threading
import time

import lammps
import openfoam
from launch import Failed
from steps import Step

from harness import Fabric, send

RANKS, LEAVES = 4, 2
#: Each application, and so many fragments that a leaf node has summed when the fabric dies.
CASES = ((lammps.case("peptide"), 400), (openfoam.steady(), 20_000))
#: {name: (what happens, those of the fabric's processes that die)}
DEATHS = {
    "node": ("a node dies", lambda processes: ["leaf0"]),
    "manager": ("the manager dies", lambda processes: ["manager"]),
    "nodes": ("all nodes die", lambda processes: [name for name in processes if name != "manager"]),
}


class Killer(threading.Thread):
    """Kills once a leaf node has summed so many fragments; `at` is when that was, on the monotonic clock."""

    def __init__(self, fabric, victims, fragments):
        super().__init__()
        self.fabric, self.victims, self.fragments = fabric, victims, fragments
        self.over, self.at, self.failure = threading.Event(), None, None

    def run(self):
        try:
            self.kill()
        except Exception as failure:
            self.failure = failure

    def kill(self):
        while not self.over.wait(0.1):
            if self.fabric.node_counters()["leaf0"].get("fragments_folded", 0) > self.fragments:
                processes = self.fabric.processes()
                for name in self.victims(processes):
                    send(processes[name], signal.SIGKILL)
                self.at = time.monotonic()
                return


@contextlib.contextmanager
def dying(fabric, victims, fragments):
    """Yields what kills; the application runs meanwhile."""
    killer = Killer(fabric, victims, fragments)
    killer.start()
    try:
        yield killer
    finally:
        killer.over.set()
        killer.join()


def step(case, fragments, name):
    what, victims = DEATHS[name]

    def compare(place):
        filled = case.prepare(place.folder, RANKS)
        plain = case.once(place, "plain", RANKS, filled)
        with Fabric(leaves=LEAVES) as fabric:
            own = dataclasses.replace(place, manager=fabric.manager)
            with dying(fabric, victims, fragments) as killer:
                tree = case.once(own, "tree", RANKS, filled)
                ended = time.monotonic()
        if killer.failure is not None:
            raise killer.failure
        if killer.at is None or killer.at > ended:
            raise Failed(f"the program ended before leaf0 had summed {fragments} fragments, so that nothing died under it")
        if found := case.differences(plain.result, tree.result):
            raise Failed("\n".join(found))
        epochs = tree.report["counters"]["epochs"]
        if (epochs > 0) != (name != "manager"):
            raise Failed(f"the tree was mended {epochs} times where {what}")
        tree.words = f"{case.words(tree.result)}; {what} {ended - killer.at:.1f} s before the end, and the tree is mended {epochs} times"
        return {"plain": plain, "tree": tree}

    return Step(f"dies/{case.name.split('/')[0]}-{name}", RANKS, compare, f"{' '.join(case.program)}, and {what} in the middle")


def steps():
    return [step(case, fragments, name) for case, fragments in CASES for name in DEATHS]
