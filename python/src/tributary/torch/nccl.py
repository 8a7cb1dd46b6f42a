# SPDX-License-Identifier: Apache-2.0
"""NCCL among the ranks of a process group that share a host."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

#: The types that NCCL reduces, of those that the tree has.
TYPES = frozenset(
    (torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)
)


class HostGroup:
    """The ranks of a host as NCCL sees them. All is done in the order of the stream that is current.

    It has two communicators. What comes before the tree is queued when an operation is called, what
    comes after it when the tree is done, which is not at the same time on every rank; with one
    communicator the ranks of a host would queue both in different orders.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        self._before = dist.ProcessGroupNCCL(dist.PrefixStore("before", store), rank, size, timeout)
        self._after = dist.ProcessGroupNCCL(dist.PrefixStore("after", store), rank, size, timeout)
        self._groups = [self._before, self._after]

    def reduce_scatter(self, part: torch.Tensor, whole: torch.Tensor, op: dist.ReduceOp.RedOpType) -> None:
        """Before the tree: reduces `size` blocks, of which each rank gets its own."""
        options = c10d.ReduceScatterOptions()
        options.reduceOp = op
        _queue(self._before._reduce_scatter_base, part, whole, options)

    def broadcast(self, tensor: torch.Tensor, root: int) -> None:
        """Before the tree: copies the root's tensor over those of the others."""
        options = c10d.BroadcastOptions()
        options.rootRank = root
        _queue(self._before.broadcast, [tensor], options)

    def all_gather(self, whole: torch.Tensor, part: torch.Tensor) -> None:
        """After the tree: each rank gives a block and gets all of them."""
        _queue(self._after._allgather_base, whole, part, c10d.AllgatherOptions())

    def abort(self) -> None:
        """Ends what is under way, also where other ranks will never join it."""
        for group in self._taken():
            group.abort()

    def close(self) -> None:
        """Gives both communicators up, if they have not been aborted."""
        for group in self._taken():
            # Torch 2.6 has it under another name.
            (getattr(group, "shutdown", None) or group._shutdown)()

    def _taken(self) -> list[Any]:
        groups, self._groups = self._groups, []
        return groups


def _queue(call: Callable[..., Any], *arguments: Any) -> None:
    work = call(*arguments)
    if work is not None:
        # It makes the current stream wait, not the host.
        work.wait()
