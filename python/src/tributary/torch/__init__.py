# SPDX-License-Identifier: Apache-2.0
"""A backend of `torch.distributed` whose reductions are done inside the network.

    import torch.distributed as dist
    import tributary.torch  # registers the backend

    dist.init_process_group("tributary")

Everything else of a program stays as it is: DDP, FSDP, ZeRO, DeviceMesh, checkpoints. What the tree
has no operation for (send and recv, all_to_all, gather, scatter, sparse tensors) goes through a Gloo
group of the same ranks; `counters` says how often.
"""

import torch.distributed as dist

from tributary.torch import hooks
from tributary.torch.jobs import current
from tributary.torch.naming import NAME
from tributary.torch.process_group import ProcessGroupTributary, create
from tributary.torch.recorder import dump


def counters(group: dist.ProcessGroup | None = None) -> dict[str, int]:
    """How many operations of a process group, without one of the default group, went through the
    tree (`tree.` before the call's name) and how many through Gloo (`gloo.`). `nccl.` counts those of
    the tree that NCCL has reduced or spread on each host."""
    group = group or dist.group.WORLD
    if not isinstance(group, ProcessGroupTributary):
        raise ValueError(f"the process group is no {NAME} group")
    return dict(group.counts)


def set_sums(sums: str, group: dist.ProcessGroup | None = None) -> None:
    """Says how a process group, without one the default group, takes sums of floating-point numbers
    from its next operation on: `"plain"`, `"fixed"`, `"exact"` (docs/exact-sums.md) or `"int8"`
    (docs/quantised-sums.md). All its ranks say the same between the same operations."""
    group = group or dist.group.WORLD
    if not isinstance(group, ProcessGroupTributary):
        raise ValueError(f"the process group is no {NAME} group")
    group.set_sums(sums)


__all__ = ["NAME", "ProcessGroupTributary", "counters", "current", "dump", "hooks", "set_sums"]

if NAME not in dist.Backend.backend_list:
    dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu", "cuda"])
