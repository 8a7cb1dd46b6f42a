"""What happens in a round, drawn from its seed."""

import dataclasses
import random

#: (fault, its share of all rounds). A cut is mended after so many seconds.
FAULTS = [("kill", 7), ("stop", 4), ("cut 2 s", 3), ("cut 20 s", 2), ("loss", 4), ("kill all", 2)]
NODES = ["spine", "leaf0", "leaf1"]
HOSTS = 8
LINKS = ["leaf0", "leaf1"] + [f"h{host}" for host in range(HOSTS)]
SIZES = {"256 B": 3, "64 MiB": 1}


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
    def mended_after(self):
        """Seconds, or None."""
        return float(self.fault.split()[1]) if self.fault.startswith("cut") else None

    def what(self):
        return f"{self.fault} {self.where}" + (" without manager" if self.without_manager else "")


def plan(seed, quick=False):
    """The round of this seed. Of ten quick ones one has vectors of 4 MiB, the others short ones;
    cuts are short, and the manager dies in one."""
    draw = random.Random(seed)
    fault = draw.choices(*zip(*FAULTS))[0]
    size = draw.choices(list(SIZES), SIZES.values())[0]
    if quick:
        size, fault = ("4 MiB", "kill") if seed % 10 == 0 else ("256 B", fault.replace("20 s", "2 s"))
    where = "nodes" if fault == "kill all" else draw.choice(NODES if fault in ("kill", "stop") else LINKS)
    when = draw.uniform(0, 4 if size == "64 MiB" else 0.5)
    without_manager = seed % 10 == 3 if quick else seed % 3 == 0
    return Plan(seed, size, fault, where, without_manager, when)
