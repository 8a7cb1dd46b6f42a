# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, as its launcher says it in the environment.

`crates/client/src/launch.rs` has the same table and the same rules: ranks in Python, C and Rust of
one job meet under one name.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tributary.errors import InvalidError

#: The name under which the ranks of a job meet at the manager.
RENDEZVOUS_ENV = "TRIB_RENDEZVOUS"


@dataclass(frozen=True)
class Launch:
    """A process of a job."""

    #: The launcher, for people.
    launcher: str
    #: Rank in the job, below `size`.
    rank: int
    #: Number of ranks of the job.
    size: int
    #: The name under which the ranks meet, the same on all of them and on no other job's; `None`
    #: if the launcher gives nothing from which one follows.
    rendezvous: str | None


@dataclass(frozen=True)
class _Launcher:
    """The variables of a launcher. A rendezvous is made of all of `names`."""

    name: str
    rank: str
    size: str
    names: tuple[str, ...]


_MASTER_ENV = "MASTER_ADDR"

#: The first one whose variables are set counts: a launcher that was started by another one, such as
#: mpirun in a job of Slurm's, stands before it.
LAUNCHERS = (
    _Launcher("trib run", "TRIB_RANK", "TRIB_SIZE", (RENDEZVOUS_ENV,)),
    _Launcher("torchrun", "RANK", "WORLD_SIZE", ("TORCHELASTIC_RUN_ID", _MASTER_ENV, "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")),
    _Launcher("mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("OMPI_MCA_ess_base_jobid",)),
    _Launcher("mpirun of Open MPI 5", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE",)),
    _Launcher("mpiexec of MPICH", "PMI_RANK", "PMI_SIZE", ("PMI_JOBID",)),
    _Launcher("srun", "SLURM_PROCID", "SLURM_NTASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)


def detect(environment: Mapping[str, str] = os.environ) -> Launch:
    """Rank, size and rendezvous from the variables of `trib run`, torchrun, mpirun or srun. An empty
    variable counts as not set.

    `TRIB_RENDEZVOUS` wins over what the launcher gives. Raises `InvalidError` if no launcher's
    variables are there, if they are no numbers, or if only one of `TRIB_RANK` and `TRIB_SIZE` is
    set.
    """
    own = LAUNCHERS[0]
    for name, missing in ((own.rank, own.size), (own.size, own.rank)):
        if environment.get(name) and not environment.get(missing):
            raise InvalidError(f"{name} is set and {missing} is not: set both, or neither")
    first = next((each for each in LAUNCHERS if environment.get(each.rank) and environment.get(each.size)), None)
    if first is None:
        raise InvalidError(
            "no launcher says which rank this is: start the program with `trib run -n RANKS -- PROGRAM`, torchrun, "
            "mpirun or srun, or give rank= and size="
        )
    # Some launchers have two ways to name a job: the one whose names are all there counts.
    ways = (each for each in LAUNCHERS if each.rank == first.rank)
    best = next((way for way in ways if all(environment.get(name) for name in way.names)), first)
    rendezvous = environment.get(RENDEZVOUS_ENV) or None
    if rendezvous is None and all(environment.get(name) for name in best.names):
        rendezvous = "-".join(environment[name] for name in best.names)
        if _MASTER_ENV in best.names and _is_local(environment[_MASTER_ENV]):
            # Torchrun's defaults are the same on every machine.
            rendezvous += f"-{_loopback()}"
    return Launch(best.name, _number(environment, best.rank), _number(environment, best.size), rendezvous)


def _is_local(address: str) -> bool:
    """Whether it is the address of whoever uses it."""
    return address in ("localhost", "::1") or address.startswith("127.")


def _loopback() -> str:
    """What tells this loopback interface from all others: the machine since it was started, and the
    network namespace."""
    with open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{boot.read().strip()}-{os.stat('/proc/self/ns/net').st_ino}"


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise InvalidError(f"{name}={environment[name]} is not a number") from None
