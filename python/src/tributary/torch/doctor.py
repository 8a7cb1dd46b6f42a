# SPDX-License-Identifier: Apache-2.0
"""Says whether `backend="tributary"` would work here, and if not, why.

    python -m tributary.torch.doctor            # Python, torch, the library, the launcher, the manager
    python -m tributary.torch.doctor --json

Exit code 0: all is well; 1: something keeps the backend from working; the line says what to do.
For the hosts, links and devices below it, `trib doctor` tells.
"""

import argparse
import json
import os
import platform
import sys
import uuid
from typing import NamedTuple

import torch
import torch.distributed as dist

import tributary
from tributary._native import lib
from tributary.torch import NAME


class Finding(NamedTuple):
    """What was looked at, whether it is well, and words for it."""

    what: str
    well: bool
    words: str


def findings() -> list[Finding]:
    """Looks at one thing after the other. That this module was imported says already that torch
    and the library are there."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    gloo = dist.is_gloo_available()
    return [
        Finding("python", sys.version_info >= (3, 11), f"{platform.python_version()}; 3.11 or later is needed"),
        Finding("torch", version >= (2, 6), f"{torch.__version__}; 2.6 or later is needed"),
        Finding("gloo", gloo, "does what the tree has no operation for: all_to_all, gather, scatter, send and recv"),
        Finding("library", True, lib._name),
        Finding("backend", NAME in dist.Backend.backend_list, f"torch knows {NAME!r}"),
        launcher(),
        manager(),
    ]


def launcher() -> Finding:
    """Who says which rank this is. A program on one's own terminal has none, and needs none to ask
    this question."""
    try:
        found = tributary.detect()
    except tributary.InvalidError:
        return Finding("launcher", True, "none here; torchrun, `trib run`, mpirun and srun are known")
    return Finding("launcher", True, f"{found.launcher}: rank {found.rank} of {found.size}")


def manager() -> Finding:
    """Joins a job of this rank alone, and leaves it."""
    address = os.environ.get("TRIB_MANAGER")
    if not address:
        return Finding("manager", False, "TRIB_MANAGER is not set: `trib fabric up --local` makes a fabric to try, and says it")
    os.environ["TRIB_RENDEZVOUS"] = f"doctor-{uuid.uuid4()}"
    try:
        with tributary.Context(0, 1, timeout=5) as context:
            context.group().barrier()
    except tributary.Error as failure:
        return Finding("manager", False, str(failure))
    return Finding("manager", True, f"{address.split('?')[0]} has admitted a job of one rank")


def main() -> int:
    """The command."""
    words = argparse.ArgumentParser(
        prog="python -m tributary.torch.doctor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--json", action="store_true", help="one object: findings, and whether all is well")
    options = words.parse_args()
    found = findings()
    well = all(each.well for each in found)
    if options.json:
        print(json.dumps({"well": well, "findings": [each._asdict() for each in found]}))
    else:
        for each in found:
            print(f"{'ok  ' if each.well else 'FAIL'} {each.what:10} {each.words}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
