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
comes after it on another one when somebody waits: in the order of the calls, because the ranks of a
host have to queue NCCL's operations alike, and wait as they like.
"""

import collections
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from tributary._native import IN_PLACE, lib
from tributary.datatypes import OPERATORS
from tributary.errors import TimeoutError
from tributary.group import Group
from tributary.request import Request
from tributary.torch.hosts import Hosts
from tributary.torch.nccl import HostGroup
from tributary.torch.reduction import Reduction
from tributary.torch.streams import Side

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


class Chunk:
    """A part of an operation: what the tree does, and what NCCL does then."""

    def __init__(self, request: Request[Any] | None, after: Callable[[], None] | None) -> None:
        self.request = request
        self.after = after


class Pipeline:
    """An operation under way, which can be waited for like a request."""

    def __init__(self, levels: "Levels", chunks: list[Chunk], held: object) -> None:
        self.chunks = collections.deque(chunks)
        self.held = held
        #: Whether all is queued, or something went wrong.
        self.over = False
        self.failure: BaseException | None = None
        #: Comes when the result is there.
        self.event: Any = None
        self._levels = levels

    def done(self) -> bool:
        """Whether the tree is done with this operation and those before it."""
        return self._levels.are_done(self)

    def wait_stream(self, stream: int, timeout: float | None = None) -> None:
        """Makes a stream wait for the result. The call itself waits for the tree alone. Raises what
        went wrong, and `TimeoutError` after `timeout` seconds; the operation goes on then."""
        self._levels.finish(self, timeout)
        if self.failure is not None:
            raise self.failure
        self._levels.side.wait_event(stream, self.event)


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
        # Who waits for the tree has `_finishing`, and holds nobody up that begins an operation.
        self._beginning, self._finishing = threading.Lock(), threading.Lock()
        self._under_way: collections.deque[Pipeline] = collections.deque()
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
        return self._begin(self._allreduced(vector.detach().view(-1), how), vector)

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
        return self._begin(self._broadcast(vector.detach().view(-1).view(torch.uint8), root), vector)

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

    def _post(self, call: Any, held: object, *arguments: Any) -> Request[Any] | None:
        """What the tree does between hosts, after what is queued so far."""
        if self._between is None:
            return None
        return self._between._post(call, *arguments, self._before.handle, held=held, value=None)

    # Their order

    def _begin(self, chunks: Iterator[Chunk], held: object) -> Pipeline:
        with self._beginning, self._before.after_current():
            pipeline = Pipeline(self, list(chunks), held)
            self._under_way.append(pipeline)
        return pipeline

    def are_done(self, last: Pipeline) -> bool:
        """Whether the tree is done with all operations up to this one."""
        # Who has the lock is waiting for one of them.
        if last.over or not self._finishing.acquire(blocking=False):
            return last.over
        try:
            for pipeline in list(self._under_way):
                if not all(chunk.request is None or chunk.request.done() for chunk in pipeline.chunks):
                    return False
                if pipeline is last:
                    break
            return True
        finally:
            self._finishing.release()

    def finish(self, last: Pipeline, timeout: float | None) -> None:
        """Queues what comes after the tree, of all operations up to this one."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._finishing.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            raise TimeoutError(f"not done after {timeout} s: another thread waits for an operation before this one")
        try:
            while not last.over:
                self._finish_one(self._under_way[0], deadline)
                self._under_way.popleft()
        finally:
            self._finishing.release()

    def _finish_one(self, pipeline: Pipeline, deadline: float | None) -> None:
        try:
            with self.side.current():
                while pipeline.chunks:
                    chunk = pipeline.chunks[0]
                    if chunk.request is not None:
                        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
                        chunk.request.wait_stream(self.side.handle, left)
                    else:
                        self.side.wait_for(self._before)
                    if chunk.after is not None:
                        chunk.after()
                    pipeline.chunks.popleft()
                pipeline.event = self.side.event()
        except TimeoutError as late:
            request = pipeline.chunks[0].request
            if request is not None and not request.done():
                raise
            pipeline.failure = late
        except Exception as failure:
            pipeline.failure = failure
        pipeline.over = True
        pipeline.held = None

    def leave(self) -> None:
        """Leaves both levels at once: what is outstanding fails. Other threads may be inside calls
        of both."""
        try:
            if self._between is not None:
                self._between.abandon()
        finally:
            self._on_host.abort()

    def close(self) -> None:
        """Gives NCCL's communicators and the group between hosts up."""
        self._on_host.close()
        if self._between is not None:
            self._between.free()
