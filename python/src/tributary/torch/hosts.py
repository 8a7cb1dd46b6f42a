# SPDX-License-Identifier: Apache-2.0
"""Which ranks of a process group share a host, and whether NCCL is to reduce there what the tree then
reduces between hosts. All ranks are told the same.
"""

import collections
import json
import os
import socket
from datetime import timedelta
from typing import NamedTuple

import torch
import torch.distributed as dist

#: With "off" on one rank NCCL is not used: the library does what is to be done on a host, too.
SWITCH_ENV = "TRIB_TORCH_NCCL"
#: How sums of floating-point numbers are taken.
SUMS_ENV = "TRIB_SUMS"


class Hosts(NamedTuple):
    """The ranks of each host, ascending; or, with none, why NCCL is not used."""

    ranks: tuple[tuple[int, ...], ...]
    why_not: str


class Rank(NamedTuple):
    """What a rank says of itself."""

    host: str
    #: What NCCL takes for the host, and the device there: it wants them different on all ranks.
    device: tuple[str, str]
    #: Why this rank does not use NCCL, if it does not.
    why_not: str


def agree(store: dist.Store, rank: int, size: int, device: torch.device, timeout: timedelta) -> Hosts:
    """Finds out with the other ranks. Collective over the process group."""
    store.set(f"rank/{rank}", json.dumps(_self(device)))
    if rank == 0:
        names = [f"rank/{other}" for other in range(size)]
        store.wait(names, timeout)
        told = [json.loads(store.get(name)) for name in names]
        found = decide([Rank(host, tuple(where), why_not) for host, where, why_not in told])
        store.set("hosts", json.dumps(found))
    store.wait(["hosts"], timeout)
    ranks, why_not = json.loads(store.get("hosts"))
    return Hosts(tuple(map(tuple, ranks)), why_not)


def decide(told: list[Rank]) -> Hosts:
    """What follows from what the ranks, in their order, have said."""
    for rank, each in enumerate(told):
        if each.why_not:
            return Hosts((), f"rank {rank}: {each.why_not}")
    hosts: dict[str, list[int]] = {}
    for rank, each in enumerate(told):
        hosts.setdefault(each.host, []).append(rank)
    counts = {len(ranks) for ranks in hosts.values()}
    if counts == {1}:
        return Hosts((), "no two ranks share a host")
    if len(counts) > 1:
        return Hosts((), f"hosts have different numbers of ranks, from {min(counts)} to {max(counts)}")
    shared = [device for device, count in collections.Counter(each.device for each in told).items() if count > 1]
    if shared:
        return Hosts((), f"ranks of {shared[0][0]} share a device, which NCCL does not do")
    return Hosts(tuple(map(tuple, hosts.values())), "")


def _self(device: torch.device) -> Rank:
    host = os.environ.get("TRIB_HOST") or socket.gethostname()
    if os.environ.get(SWITCH_ENV) in ("off", "0"):
        return Rank(host, ("", ""), f"{SWITCH_ENV} is off")
    if os.environ.get(SUMS_ENV) not in (None, "", "plain"):
        return Rank(host, ("", ""), f"NCCL sums in its own order and way, and {SUMS_ENV} asks for another")
    if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        # A thread that begins an operation and one that ends another then wait for other ranks, each
        # with the device's context in its hands.
        return Rank(host, ("", ""), "with CUDA_LAUNCH_BLOCKING two operations of NCCL wait for each other")
    if not dist.is_nccl_available():
        return Rank(host, ("", ""), "this torch has no NCCL")
    # NCCL tells hosts apart by this variable first.
    of_nccl = os.environ.get("NCCL_HOSTID") or host
    return Rank(host, (of_nccl, str(torch.cuda.get_device_properties(device).uuid)), "")
