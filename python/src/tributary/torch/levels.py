# SPDX-License-Identifier: Apache-2.0
"""Collectives over memory of devices on two levels: NCCL between the ranks of a host, the tree
between hosts.

    allreduce        NCCL reduce_scatter -> tree allreduce of the own part -> NCCL all_gather
    reduce_scatter   NCCL reduce_scatter -> tree reduce_scatter
    all_gather                              tree all_gather                -> NCCL all_gather
    broadcast        NCCL broadcast*     -> tree broadcast of the own part -> NCCL all_gather
                     * on the root's host

Each rank takes part in the tree with its part alone, together with the ranks of the same number on
the other hosts: so a host sends what one rank has, and every rank copies 1/k of that from and to its
device. A vector is cut into chunks, so that NCCL has the next one while the tree has this one.

What comes before the tree is queued on a stream of its own when the operation is called, and what
comes after it on another one, by a thread, when the tree is done.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from tributary._native import IN_PLACE, lib
from tributary.datatypes import OPERATORS
from tributary.errors import PeerError, UnsupportedError
from tributary.group import Group
from tributary.request import Request
from tributary.torch.hosts import Hosts
from tributary.torch.nccl import HostGroup
from tributary.torch.others import LEFT
from tributary.torch.pipeline import Chunk, Finisher, Pipeline
from tributary.torch.reduction import Reduction
from tributary.torch.streams import Side, refuse_capture
from tributary.torch.work import wants_inference_mode

#: How many bytes of a chunk a rank has in the tree. The library cuts them further.
CHUNK = 4 << 20
#: Vectors of fewer bytes the library reduces on the host, too: NCCL's two steps take longer.
LEAST = 256 << 10
#: The operators that NCCL has, too.
OPERATORS_OF_NCCL = {
    OPERATORS["sum"]: dist.ReduceOp.SUM,
    OPERATORS["prod"]: dist.ReduceOp.PRODUCT,
    OPERATORS["min"]: dist.ReduceOp.MIN,
    OPERATORS["max"]: dist.ReduceOp.MAX,
}


class Levels:
    """What a process group does on two levels. Its methods are called by all members in the same
    order, with vectors of one device."""

    def __init__(self, hosts: Hosts, rank: int, device: torch.device, on_host: HostGroup, between: Group | None) -> None:
        #: A rank has its place in `on_host` and the host's number in `between`; on a lone host there
        #: is nothing between hosts.
        self._hosts, self._host = hosts.ranks, next(n for n, ranks in enumerate(hosts.ranks) if rank in ranks)
        self._place = hosts.ranks[self._host].index(rank)
        self._on_host, self._between = on_host, between
        self._before = Side(device)
        #: Where results come.
        self.side = Side(device)
        self._beginning = threading.Lock()
        self._finisher = Finisher(self._before, self.side, self._give_up)
        # Blocks as NCCL wants them: those of a place side by side, hosts in their order.
        order = [ranks[place] for place in range(self._k) for ranks in hosts.ranks]
        self._order = torch.tensor(order, device=device)
        self.device = device

    @property
    def _k(self) -> int:
        """How many ranks a host has."""
        return len(self._hosts[0])

    # Operations. Vectors are flat, contiguous, and belong to the operation until it is over.

    def allreduce(self, vector: torch.Tensor, how: Reduction) -> Pipeline:
        """Reduces a vector in place on every rank."""
        return self._begin(self._allreduced(vector.detach().view(-1), how), (vector,))

    def reduce_scatter(self, whole: torch.Tensor, part: torch.Tensor, how: Reduction) -> Pipeline:
        """Reduces a vector of as many blocks as there are ranks, of which each gets its own."""
        chunks = self._reduce_scattered(whole.detach().view(-1), part.detach().view(-1), how)
        return self._begin(chunks, (whole, part))

    def all_gather(self, part: torch.Tensor, whole: torch.Tensor) -> Pipeline:
        """Every rank gives a block and gets all of them, in the order of ranks."""
        bytes_ = (part.detach().view(-1).view(torch.uint8), whole.detach().view(-1).view(torch.uint8))
        return self._begin(self._gathered(*bytes_), (part, whole))

    def broadcast(self, vector: torch.Tensor, root: int) -> Pipeline:
        """Copies the root's vector over those of the others."""
        return self._begin(self._broadcast(vector.detach().view(-1).view(torch.uint8), root), (vector,))

    def _allreduced(self, flat: torch.Tensor, how: Reduction) -> Iterator[Chunk]:
        op = OPERATORS_OF_NCCL[how.code]
        for chunk, whole in self._cut(flat):
            own = self._own(whole)
            self._on_host.reduce_scatter(own, whole, op)
            arguments = (IN_PLACE, own.data_ptr(), own.numel(), how.dtype.code, how.code)
            yield Chunk(self._post(lib.trib_allreduce_stream_nb, own, *arguments), self._gather(chunk, whole, own))

    def _reduce_scattered(self, flat: torch.Tensor, part: torch.Tensor, how: Reduction) -> Iterator[Chunk]:
        op = OPERATORS_OF_NCCL[how.code]
        blocks = flat.view(self._order.numel(), -1)
        for start, length in self._spans(part):
            target = part[start : start + length]
            whole = blocks.narrow(1, start, length).index_select(0, self._order)
            own = whole.new_empty(len(self._hosts) * length) if self._between else target
            self._on_host.reduce_scatter(own, whole.view(-1), op)
            arguments = (own.data_ptr(), target.data_ptr(), length, how.dtype.code, how.code)
            yield Chunk(self._post(lib.trib_reduce_scatter_stream_nb, (whole, own, target), *arguments), None)

    def _gathered(self, part: torch.Tensor, flat: torch.Tensor) -> Iterator[Chunk]:
        blocks = flat.view(self._order.numel(), -1)
        for start, length in self._spans(part):
            give = part[start : start + length]
            whole = flat.new_empty(self._order.numel() * length)
            own = self._own(whole)
            if self._between is None:
                own.copy_(give)
            arguments = (give.data_ptr(), own.data_ptr(), length)
            request = self._post(lib.trib_allgather_stream_nb, (give, own), *arguments)

            def after(own: torch.Tensor = own, whole: torch.Tensor = whole, start: int = start, length: int = length) -> None:
                self.side.uses(whole)
                self._on_host.all_gather(whole, own)
                blocks.narrow(1, start, length).index_copy_(0, self._order, whole.view(-1, length))

            yield Chunk(request, after)

    def _broadcast(self, flat: torch.Tensor, root: int) -> Iterator[Chunk]:
        host = next(n for n, ranks in enumerate(self._hosts) if root in ranks)
        for chunk, whole in self._cut(flat):
            if host == self._host:
                self._on_host.broadcast(whole, self._hosts[host].index(root))
            own = self._own(whole)
            request = self._post(lib.trib_bcast_stream_nb, own, own.data_ptr(), own.numel(), host)
            yield Chunk(request, self._gather(chunk, whole, own))

    def _cut(self, flat: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Chunks, each with itself or a copy of it, as what the ranks of a host share out."""
        length = self._k * max(CHUNK // flat.element_size(), 1)
        for start in range(0, flat.numel(), length):
            chunk = flat[start : start + length]
            whole, over = chunk, -chunk.numel() % self._k
            if over:
                whole = chunk.new_zeros(chunk.numel() + over)
                whole[: chunk.numel()].copy_(chunk)
            yield chunk, whole

    def _spans(self, block: torch.Tensor) -> Iterator[tuple[int, int]]:
        """Start and length of parts of a block; the tree has those of all hosts at once."""
        length = max(CHUNK // (block.element_size() * len(self._hosts)), 1)
        for start in range(0, block.numel(), length):
            yield start, min(length, block.numel() - start)

    def _own(self, whole: torch.Tensor) -> torch.Tensor:
        """This rank's part of what the ranks of a host share out."""
        length = whole.numel() // self._k
        return whole[self._place * length : (self._place + 1) * length]

    def _gather(self, chunk: torch.Tensor, whole: torch.Tensor, own: torch.Tensor) -> Callable[[], None]:
        def after() -> None:
            self._on_host.all_gather(whole, own)
            if whole is not chunk:
                self.side.uses(whole)
                chunk.copy_(whole[: chunk.numel()])

        return after

    def _post(self, call: Any, held: object, *arguments: Any) -> "Request[Any] | torch.cuda.Event":
        """What the tree does between hosts, after what is queued so far."""
        if self._between is None:
            return self._before.event()
        return self._between._post(call, *arguments, self._before.handle, held=held, value=None)

    # Their order

    def _begin(self, chunks: Iterator[Chunk], held: tuple[torch.Tensor, ...]) -> Pipeline:
        with self._beginning:
            if (failure := self._finisher.failure) is not None:
                raise PeerError(f"this rank has left the levels of its process group: {failure}") from failure
            self._finisher.start()
            try:
                refuse_capture()
                mode = torch.inference_mode() if wants_inference_mode(held) else contextlib.nullcontext()
                with self._before.after_current(), mode:
                    pipeline = Pipeline(self._finisher, list(chunks), held)
            except UnsupportedError:
                # All ranks are refused alike, before anything is begun.
                raise
            except BaseException as failure:
                self._finisher.keep(held, [self._before, self.side])
                # Others have this rank's first chunks, perhaps, and would take those of its next
                # operation for the rest.
                self._finisher.fail(PeerError(str(failure) if isinstance(failure, Exception) else "it was interrupted"))
                raise
            self._finisher.add(pipeline)
        return pipeline

    def leave(self) -> None:
        """Leaves both levels at once: what is outstanding fails. Other threads may be inside calls
        of both."""
        self._finisher.fail(PeerError(LEFT))
        self._finisher.end()

    def _give_up(self) -> None:
        try:
            if self._between is not None:
                self._between.abandon()
        finally:
            self._on_host.abort()

    def close(self, timeout: float) -> None:
        """Gives NCCL's communicators and the group between hosts up, after what is under way, for
        which it waits so many seconds."""
        self._finisher.close(timeout)
        self._on_host.close()
        if self._between is not None:
            self._between.free()
