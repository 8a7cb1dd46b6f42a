"""What happens in a round, drawn from its seed."""

import dataclasses
import random

#: (fault, its share of all rounds). A cut is mended after so many seconds.
FAULTS = [("kill", 7), ("stop", 4), ("cut 2 s", 3), ("cut 20 s", 2), ("loss", 4), ("kill all", 2)]
#: As `kill all`, but none is started again before the job has ended.
OTHER_FAULTS = ["no nodes"]
NODES = ["spine", "leaf0", "leaf1"]
HOSTS = 8
LINKS = ["leaf0", "leaf1"] + [f"h{host}" for host in range(HOSTS)]
#: What the ranks do, and its share: collectives on vectors of at most so many bytes. `mpi` is an
#: application under Open MPI (tests/mpi/conjugate_gradient.c).
VECTORS = {"256 B": 3, "64 MiB": 1}
OTHER_VECTORS = ["4 MiB", "1 GiB", "mpi"]


@dataclasses.dataclass(frozen=True)
class Plan:
    seed: int
    size: str
    fault: str
    #: The node that is hurt, or the link.
    where: str
    #: The manager is killed before the fault.
    without_manager: bool
    #: When the fault comes, in seconds after the first operations.
    when: float

    @property
    def hurts_all(self):
        return self.fault in ("kill all", "no nodes")

    @property
    def mended_after(self):
        """Seconds, or None."""
        return float(self.fault.split()[1]) if self.fault.startswith("cut") else None

    def what(self):
        return (self.fault if self.hurts_all else f"{self.fault} {self.where}") + (" without manager" if self.without_manager else "")


def plan(seed, quick=False, faults=None, vectors=None):
    """The round of this seed, with one of these faults and vectors, if any are named. Of ten quick
    rounds one has vectors of 4 MiB, the others short ones; cuts are short, and the manager dies in
    one."""
    draw = random.Random(seed)
    fault = draw.choices(*zip(*FAULTS))[0]
    size = draw.choices(list(VECTORS), VECTORS.values())[0]
    if quick:
        size, fault = ("4 MiB", "kill") if seed % 10 == 0 else ("256 B", fault.replace("20 s", "2 s"))
    if faults:
        fault = draw.choice(faults)
    if vectors:
        size = draw.choice(vectors)
    where = "nodes" if fault in ("kill all", "no nodes") else draw.choice(NODES if fault in ("kill", "stop") else LINKS)
    when = draw.uniform(0, 4 if size in ("64 MiB", "1 GiB") else 0.5)
    without_manager = seed % 10 == 3 if quick else seed % 3 == 0
    return Plan(seed, size, fault, where, without_manager, when)
