# SPDX-License-Identifier: Apache-2.0
"""The process group: torch's collectives as operations of a group of the tree.

It is a `ProcessGroup` and no `Backend`: torch calls its methods without a way through the
dispatcher, which is a third of the cost, and hands a program the `Work` as it is, so that asking
whether it is done works. One set of methods serves torch from 2.6 on: where torch has renamed one,
it is here under both names.
"""

import collections
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tributary._native import IN_PLACE, lib
from tributary.context import Context
from tributary.datatypes import OPERATORS
from tributary.errors import Error
from tributary.group import Group
from tributary.request import Request
from tributary.torch import hosts, jobs
from tributary.torch.departure import Departure
from tributary.torch.levels import LEAST, OPERATORS_OF_NCCL, Levels
from tributary.torch.naming import NAME, NamedGroup
from tributary.torch.nccl import TYPES as TYPES_OF_NCCL
from tributary.torch.nccl import HostGroup
from tributary.torch.others import LEFT, GlooGroup
from tributary.torch.pipeline import Pipeline
from tributary.torch.recorder import Record
from tributary.torch.reduction import TYPES, Reduction, average, reduction
from tributary.torch.staging import is_staged_by_library, joined, room, split, staged
from tributary.torch.streams import Arrival, current, refuse_capture
from tributary.torch.work import Completer, Work, Works, in_their_mode, is_in_callback

Tensors = torch.Tensor | Sequence[torch.Tensor]


T = TypeVar("T")


class Operation(NamedTuple):
    """A collective of the tree."""

    #: What torch calls it, and what `counters` does.
    name: str
    counter: str
    #: The library's functions for memory of the host, and for that of a device.
    on_host: Any
    in_stream: Any


def _operation(name: str, call: str) -> Operation:
    """The operation that the library calls so."""
    on_host, in_stream = getattr(lib, f"trib_{call}_nb"), getattr(lib, f"trib_{call}_stream_nb", None)
    return Operation(name, f"tree.{name}", on_host, in_stream)


_ALLREDUCE = _operation("allreduce", "allreduce")
_REDUCE = _operation("reduce", "reduce")
_REDUCE_SCATTER = _operation("reduce_scatter", "reduce_scatter")
_BROADCAST = _operation("broadcast", "bcast")
_ALL_GATHER = _operation("all_gather", "allgather")
_BARRIER = _operation("barrier", "barrier")

#: Whether torch takes no work for an operation that a program waits for at once. Older versions wait
#: for the work themselves, and do not say of every call which kind it is.
_WAITS_HERE = hasattr(c10d.AllreduceOptions, "asyncOp")
#: How many works are kept before it is looked which of them are over.
KEPT = 16
_REDUCTIONS = (dist.ReduceOp, dist.ReduceOp.RedOpType)


class Call(NamedTuple):
    """What is asked for, besides what the library is told."""

    #: What the record shows, if it has a shape.
    tensor: torch.Tensor | None
    #: What is to be done with the result.
    finish: Callable[[], None] | None
    results: list[torch.Tensor]
    options: Any
    #: What the library reads and writes meanwhile.
    held: object


class ProcessGroupTributary(NamedGroup):
    """Ranks of a program whose collectives go through the tree."""

    def __init__(
        self, store: dist.Store, timeout: timedelta, context: Context, group: Group, name: str, owns_context: bool
    ) -> None:
        super().__init__(store, group.rank, group.size)
        self._prefixed_store = store
        self._timeout = timeout
        self._seconds = timeout.total_seconds()
        self._context = context
        self._group = group
        self._name = name
        self._owns_context = owns_context
        # How sums of floating-point numbers are taken.
        self._sums = os.environ.get(hosts.SUMS_ENV) or "plain"
        # Whether the members have agreed, with the first long vector of a device, if there is use for
        # NCCL on each host.
        self._is_agreed = False
        # What stands in the store of an earlier process group of that name leads nowhere.
        self._own_store = dist.PrefixStore(jobs.number(group, timeout), store)
        self._gloo = GlooGroup(dist.PrefixStore("gloo", self._own_store), group, timeout)
        self._completer = Completer(f"tributary {name}", group.leave)
        self._coalesced: list[Any] | None = None
        # Works under way, and of how many of them it is looked which are over.
        self._under_way: collections.deque[Work] = collections.deque()
        self._most_under_way = KEPT
        self._keeping, self._is_looking = threading.RLock(), False
        #: How many operations went which way, by `tree.` or `gloo.` and the call's name; `nccl.`
        #: counts those of the tree that NCCL has reduced or spread on each host.
        self.counts: collections.Counter[str] = collections.Counter()
        # It is left once: by a call, or when the program has dropped it. At the interpreter's exit
        # all is left as it is: the process ends, and the job hears of that.
        self._departure = Departure(self._completer, group, self._gloo, context if owns_context else None)
        self._at_drop = weakref.finalize(self, self._departure.leave_aside)
        self._at_drop.atexit = False

    # Reductions

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Any:
        """Reduces the tensor in place on every member."""
        tensor = _one(tensors)
        options = _options(opts, c10d.AllreduceOptions)
        if tensor.is_sparse:
            return self._by_gloo("allreduce", [tensor], options)
        how = reduction(options.reduceOp, tensor.dtype, self._group.size)
        buffer = staged(tensor)
        begin = self._on_levels(buffer, lambda levels: levels.allreduce(buffer, how), how)
        if how.factor is not None:
            self._check_alive()
            buffer.detach().mul_(how.factor)
        arguments = (IN_PLACE, buffer.data_ptr(), buffer.numel() * how.dtype.values, how.dtype.code, how.code)
        finish = self._finisher(buffer, tensor, how.averages)
        return self._do(_ALLREDUCE, Call(tensor, finish, [tensor], options, buffer), buffer, arguments, begin)

    def set_sums(self, sums: str) -> None:
        """Says how sums of floating-point numbers are taken from the next operation on, as
        `Group.set_sums` does. All members say the same between the same operations. NCCL, which adds
        in its own order and its own way, takes no part in others than plain ones."""
        self._group.set_sums(sums)
        self._sums = sums

    def allreduce_as(self, sums: str | None, tensor: torch.Tensor) -> Any:
        """Begins the sum of a tensor in place with sums taken so, or as they are taken if it is None,
        and those of later operations as before. Returns a work, always."""
        before, options = self._sums, c10d.AllreduceOptions()
        self.set_sums(sums or before)
        try:
            # While there is such a list, operations are only begun.
            outer, self._coalesced = self._coalesced, []
            return self.allreduce([tensor], options)
        finally:
            self._coalesced = outer
            self.set_sums(before)

    def allreduce_coalesced(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        """Reduces each of the tensors in place on every member."""
        options = _options(opts, c10d.AllreduceCoalescedOptions)
        return self._all(self.allreduce([tensor], options) for tensor in tensors)

    def reduce(self, tensors: Tensors, opts: Any = None) -> Any:
        """Reduces the tensor in place on the root; those of the others stay as they are."""
        tensor = _one(tensors)
        options = _options(opts, c10d.ReduceOptions)
        how = reduction(options.reduceOp, tensor.dtype, self._group.size)
        root = self._root(options.rootRank)
        gets = self._group.rank == root
        buffer = staged(tensor)
        if how.factor is not None:
            self._check_alive()
            # The tensor itself is multiplied only where the result comes over it.
            buffer = buffer.detach().clone() if buffer is tensor and not gets else buffer.detach()
            buffer.mul_(how.factor)
        addresses = (IN_PLACE, buffer.data_ptr()) if gets else (buffer.data_ptr(), None)
        arguments = (*addresses, buffer.numel() * how.dtype.values, how.dtype.code, how.code, root)
        finish = self._finisher(buffer, tensor, how.averages) if gets else None
        return self._do(_REDUCE, Call(tensor, finish, [tensor], options, buffer), buffer, arguments)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Sequence[torch.Tensor]], opts: Any = None) -> Any:
        """Reduces one tensor for each member; each gets its own one. They may differ in length."""
        output = _one(outputs)
        parts = self._parts(inputs, output, "reduce_scatter")
        options = _options(opts, c10d.ReduceScatterOptions)
        how = reduction(options.reduceOp, output.dtype, self._group.size)
        block = max(part.numel() for part in parts)
        flat = joined(parts, block)
        buffer = torch.empty(block, dtype=output.dtype, device=flat.device)
        return self._reduce_scattered(flat, buffer, output, how, options)

    def reduce_scatter_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        """Reduces one tensor of as many blocks as there are members; each gets its own block."""
        options = _options(opts, c10d.ReduceScatterOptions)
        how = reduction(options.reduceOp, output.dtype, self._group.size)
        if source.numel() != self._group.size * output.numel() or source.dtype != output.dtype:
            raise ValueError(f"reduce_scatter takes an input of {self._group.size} times the output, of one type")
        _check_device(source, output)
        flat = staged(source)
        if how.factor is not None and flat is source:
            flat = flat.clone()
        return self._reduce_scattered(flat, room(output), output, how, options)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        """Does `reduce_scatter_single` for each pair."""
        return self._all(self.reduce_scatter_single(o, i, opts) for o, i in zip(outputs, inputs, strict=True))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # Copies

    def broadcast(self, tensors: Tensors, opts: Any = None) -> Any:
        """Copies the root's tensor over those of the others."""
        tensor = _one(tensors)
        options = _options(opts, c10d.BroadcastOptions)
        root = self._root(options.rootRank)
        gives = self._group.rank == root
        buffer = staged(tensor) if gives else room(tensor)
        finish = None if gives else self._finisher(buffer, tensor, False)
        call = Call(tensor, finish, [tensor], options, buffer)
        begin = self._on_levels(buffer, lambda levels: levels.broadcast(buffer, root))
        return self._do(_BROADCAST, call, buffer, (buffer.data_ptr(), buffer.nbytes, root), begin)

    def allgather(self, outputs: Sequence[Sequence[torch.Tensor]], inputs: Tensors, opts: Any = None) -> Any:
        """Every member gets the tensors of all. They may differ in length: each output says how
        long its member's is."""
        tensor = _one(inputs)
        parts = self._parts(outputs, tensor, "all_gather")
        block = max(part.numel() for part in parts)
        give = staged(tensor) if tensor.numel() == block else joined([tensor], block)
        flat = torch.empty(self._group.size * block, dtype=tensor.dtype, device=give.device)
        options = _options(opts, c10d.AllgatherOptions)
        return self._gathered(give, flat, lambda: split(flat, parts, block), parts, options)

    def all_gather_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Any:
        """Every member gets the tensors of all, which are of one length, one after the other."""
        if output.numel() != self._group.size * source.numel() or source.dtype != output.dtype:
            raise ValueError(f"all_gather takes an output of {self._group.size} times the input, of one type")
        _check_device(source, output)
        flat = room(output)
        finish = self._finisher(flat, output, False)
        return self._gathered(staged(source), flat, finish, [output], _options(opts, c10d.AllgatherOptions))

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        """Does `all_gather_single` for each pair."""
        return self._all(self.all_gather_single(o, i, opts) for o, i in zip(outputs, inputs, strict=True))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(
        self, output_lists: Sequence[Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor], opts: Any = None
    ) -> Any:
        """Does `allgather` for each input."""
        return self._all(
            self.allgather([[outputs[number] for outputs in output_lists]], [tensor], opts) for number, tensor in enumerate(inputs)
        )

    def barrier(self, opts: Any = None) -> Any:
        """Is done when every member has come."""
        return self._do(_BARRIER, Call(None, None, [], _options(opts, c10d.BarrierOptions), None), None, ())

    # What the tree has no operation for

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Every member sends each other one its tensor."""
        return self._by_gloo("alltoall", outputs, inputs, _options(opts, c10d.AllToAllOptions))

    def all_to_all_single(self, output: Any, source: Any, output_splits: Any, input_splits: Any, opts: Any = None) -> Any:
        """Every member sends each other one its part of a tensor."""
        splits = (output_splits, input_splits)
        name = "all_to_all_single" if hasattr(dist.ProcessGroupGloo, "all_to_all_single") else "alltoall_base"
        return self._by_gloo(name, output, source, *splits, _options(opts, c10d.AllToAllOptions))

    alltoall_base = all_to_all_single

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """The root gets the tensors of all."""
        return self._by_gloo("gather", outputs, inputs, _options(opts, c10d.GatherOptions))

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        """Each member gets its tensor of the root's."""
        return self._by_gloo("scatter", outputs, inputs, _options(opts, c10d.ScatterOptions))

    def send(self, tensors: Any, target: int, tag: int = 0) -> Any:
        """Sends a tensor to one member."""
        return self._through_gloo("send", self._gloo.send, _all(tensors), target, tag)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Any:
        """Gets a tensor from one member."""
        return self._through_gloo("recv", self._gloo.recv, _all(tensors), source, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        """Gets a tensor from whichever member sends one."""
        return self._through_gloo("recv_anysource", self._gloo.recv_anysource, _all(tensors), tag)

    # Coalescing: several operations with one work

    def _start_coalescing(self, device: torch.device) -> None:
        self._coalesced = []

    start_coalescing = _start_coalescing

    def _end_coalescing(self, device: torch.device) -> Any:
        works, self._coalesced = self._coalesced or [], None
        return self._all(works)

    end_coalescing = _end_coalescing

    # Life

    def getBackendName(self) -> str:
        """The backend's name."""
        return NAME

    name = getBackendName

    def _get_backend(self, device: torch.device) -> "ProcessGroupTributary":
        return self

    def eager_connect_single_device(self, device: torch.device) -> None:
        """Nothing is left to connect: torch asks for it where a program names its device."""

    supports_splitting = True
    supports_coalescing = False
    _supports_time_estimate = False

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long an operation may take that names no limit of its own."""
        self._timeout, self._seconds = timeout, timeout.total_seconds()
        self._gloo.set_timeout(timeout)

    _set_default_timeout = set_timeout

    def get_group_store(self) -> dist.Store:
        """The store that the members share."""
        return self._prefixed_store

    def split_group(
        self,
        new_ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> "ProcessGroupTributary | None":
        """Makes a process group of some members of this one. Every member calls it; one that is not
        in `new_ranks` gets `None`."""
        if self._group.rank not in new_ranks:
            return None
        name = group_name or f"{self._name}:{','.join(map(str, new_ranks))}"
        timeout = timeout or self._timeout
        ranks = [self._group.members[rank] for rank in new_ranks]
        store = dist.PrefixStore(name, self._prefixed_store)
        group = jobs.group(self._context, ranks, name, timeout)
        made = ProcessGroupTributary(store, timeout, self._context, group, name, False)
        made._set_group_name(name)
        made._set_group_desc(group_desc or "")
        return made

    def abort(self) -> None:
        """Leaves the group at once, and the job if this group has joined it: what is outstanding fails,
        here and on the other members. Torch calls nothing else afterwards."""
        if self._at_drop.detach() is not None:
            self._departure.leave()

    def shutdown(self) -> None:
        """Leaves the group, and the job if this group has joined it. One that was aborted is left
        already."""
        if not self._at_drop.alive:
            return
        self._completer.close(self._seconds, self._departure.give_up)
        if self._at_drop.detach() is None:
            # Another thread has aborted it meanwhile.
            return
        self._gloo.close()
        if (levels := self._departure.levels) is not None:
            levels.close(self._completer.patience(self._seconds))
        self._group.free()
        if self._owns_context:
            jobs.leave(self._context)

    # Helpers

    def _do(
        self,
        operation: Operation,
        call: Call,
        buffer: torch.Tensor | None,
        arguments: tuple[Any, ...],
        begin: Callable[[], Pipeline] | None = None,
    ) -> Any:
        """Does what a program waits for at once, which then has no work; begins what it does not.
        Over memory of a device, all is done in the order of the stream that is current there, and
        `begin` begins it on two levels."""
        if is_in_callback():
            self._completer.is_chained = True
        self.counts[operation.counter] += 1
        if begin is not None:
            self.counts[f"nccl.{operation.name}"] += 1
        record = Record(self._name, operation.name, call.tensor)
        if call.finish is not None:
            call = call._replace(finish=in_their_mode(call.finish, call.results))
        device = None
        if buffer is not None and is_staged_by_library(buffer):
            device = buffer.device
            arguments = (*arguments, current(device))
        is_async = not _WAITS_HERE or call.options.asyncOp or self._coalesced is not None
        try:
            if is_async or device is not None:
                function = operation.on_host if device is None else operation.in_stream
                request = begin() if begin else self._group._post(function, *arguments, held=call.held, value=None)
                if is_async:
                    return self._begun(call, request, record, device)
                Arrival(device).settle(request, self._limit(call.options), call.finish, _of_device(call))
                record.end()
                return None
            late = self._group._at_once(operation.on_host, arguments, call.held)
            if late is not None:
                late.wait(self._limit(call.options))
        except Error as failure:
            record.fail(failure)
            words = self._completer.words(failure) if self._at_drop.alive else LEFT
            raise dist.DistBackendError(words) from failure
        if call.finish is not None:
            call.finish()
        record.end()
        return None

    def _limit(self, options: Any) -> float:
        """How many seconds an operation may take."""
        seconds = options.timeout.total_seconds()
        return seconds if seconds > 0 else self._seconds

    def _on_levels(
        self, vector: torch.Tensor, begin: Callable[[Levels], Pipeline], how: Reduction | None = None
    ) -> Callable[[], Pipeline] | None:
        """What begins an operation with NCCL on each host, if it is used for this vector: of all
        members or of none."""
        if vector.nbytes < LEAST or not is_staged_by_library(vector):
            return None
        if how is not None and self._sums != "plain":
            return None
        if how is not None and (vector.dtype not in TYPES_OF_NCCL or how.code not in OPERATORS_OF_NCCL):
            return None
        self._check_alive()
        if not self._is_agreed:
            try:
                self._departure.levels = self._agree(vector.device)
            except Error as failure:
                raise dist.DistBackendError(str(failure)) from failure
            self._is_agreed = True
        levels = self._departure.levels
        if levels is None:
            return None
        if vector.device != levels.device:
            raise ValueError(f"this process group has reduced vectors of {levels.device} and cannot take one of {vector.device}")
        return lambda: begin(levels)

    def _agree(self, device: torch.device) -> Levels | None:
        """Agrees with the other members whether NCCL is used on each host, and makes what it takes."""
        refuse_capture()
        group, store = self._group, dist.PrefixStore("hosts", self._own_store)
        found = hosts.agree(store, group.rank, group.size, device, self._timeout)
        if found.why_not:
            return None
        host, ranks = next((number, ranks) for number, ranks in enumerate(found.ranks) if group.rank in ranks)
        place = ranks.index(group.rank)
        members = [group.members[of_host[place]] for of_host in found.ranks]
        name = f"{self._name}, rank {place} of each host"
        between: Group | None = None
        if len(members) > 1:
            # The quota, say, may refuse the group of this rank and none of the others.
            between = self._jointly(lambda: jobs.group(self._context, members, name, self._timeout), Group.free)
            if between is None:
                return None
        on_host = self._jointly(
            lambda: HostGroup(dist.PrefixStore(str(host), store), place, len(ranks), self._timeout), HostGroup.close
        )
        if on_host is None:
            if between is not None:
                between.free()
            return None
        return Levels(found, group.rank, device, on_host, between)

    def _jointly(self, make: Callable[[], T], undo: Callable[[T], None]) -> T | None:
        """What is made here, or None if any member cannot make its own."""
        made: T | None = None
        words = ""
        try:
            made = make()
        except (Error, RuntimeError) as failure:
            words = f"{self._name}: the tree reduces on hosts, too, and not NCCL: {failure}"
        have_all = False
        try:
            have_all = self._all_have(made is not None)
        finally:
            if made is not None and not have_all:
                undo(made)
        if words:
            # A warning may be an error; others have the answer by now.
            warnings.warn(words, RuntimeWarning, stacklevel=5)
        return made if have_all else None

    def _all_have(self, mine: bool) -> bool:
        """Whether something is true on all members."""
        all_have = torch.tensor([mine], dtype=torch.int32)
        arguments = (IN_PLACE, all_have.data_ptr(), 1, TYPES[torch.int32].code, OPERATORS["min"])
        request = self._group._post(_ALLREDUCE.on_host, *arguments, held=all_have, value=None)
        request.wait(self._seconds)
        return bool(all_have.item())

    def _begun(self, call: Call, request: Request[Any] | Pipeline, record: Record, device: torch.device | None) -> Work:
        arrival = None if device is None else Arrival(device)
        limit = self._limit(call.options)
        used = [call.held] if device is None else _of_device(call)
        work = Work(request, call.finish, call.results, used, limit, record, self._completer, arrival)
        if self._coalesced is not None:
            self._coalesced.append(work)
        self._keep(work)
        return work

    def _keep(self, work: Work) -> None:
        """Keeps a work until it is over: torch 2.6 holds no more of one than the half that is in
        C++."""
        with self._keeping:
            while self._under_way and self._under_way[0].over:
                self._under_way.popleft()
            is_to_look = self._coalesced is None and not self._is_looking and len(self._under_way) >= self._most_under_way
            self._is_looking |= is_to_look
            known = list(self._under_way) if is_to_look else []
            self._under_way.append(work)
        if is_to_look:
            self._look(known)

    def _look(self, works: list[Work]) -> None:
        """Looks which works are over: nobody may ever look at the first of them. What hangs on their
        futures runs then, and begins others, so no lock is held."""
        try:
            for each in works:
                each.is_over()
        finally:
            with self._keeping:
                self._under_way = collections.deque(each for each in self._under_way if not each.over)
                self._most_under_way = 2 * len(self._under_way) + KEPT
                self._is_looking = False

    def _check_alive(self) -> None:
        """Refuses, before a tensor is changed, what a group that was left would refuse later."""
        if not self._at_drop.alive:
            raise dist.DistBackendError(LEFT)

    def _finisher(self, buffer: torch.Tensor, tensor: torch.Tensor, averages: bool) -> Callable[[], None] | None:
        """What is to be done with a result: an average is a sum that is divided, and a copy is
        copied back."""
        if buffer is tensor and not averages:
            return None

        def finish() -> None:
            with torch.no_grad():
                if averages:
                    average(self._group.size, buffer)
                if buffer is not tensor:
                    tensor.detach().copy_(buffer)

        return finish

    def _reduce_scattered(
        self, flat: torch.Tensor, buffer: torch.Tensor, output: torch.Tensor, how: Any, options: Any
    ) -> Any:
        begin = self._on_levels(flat, lambda levels: levels.reduce_scatter(flat, buffer, how), how)
        if how.factor is not None:
            flat.mul_(how.factor)
        count = buffer.numel() * how.dtype.values
        arguments = (flat.data_ptr(), buffer.data_ptr(), count, how.dtype.code, how.code)
        part = buffer if buffer is output else buffer.view(-1)[: output.numel()].view(output.shape)
        finish = self._finisher(part, output, how.averages)
        return self._do(_REDUCE_SCATTER, Call(output, finish, [output], options, (flat, buffer)), flat, arguments, begin)

    def _gathered(
        self, give: torch.Tensor, flat: torch.Tensor, finish: Callable[[], None] | None, results: list[torch.Tensor], options: Any
    ) -> Any:
        arguments = (give.data_ptr(), flat.data_ptr(), give.nbytes)
        begin = self._on_levels(flat, lambda levels: levels.all_gather(give, flat))
        return self._do(_ALL_GATHER, Call(give, finish, results, options, (give, flat)), give, arguments, begin)

    def _all(self, works: Iterable[Any]) -> Any:
        """One work of several, which are under way at once."""
        # While there is such a list, operations are only begun, whatever the call's options say.
        outer, self._coalesced = self._coalesced, []
        try:
            begun = list(works)
        finally:
            self._coalesced = outer
        if outer is not None:
            outer.extend(begun)
        return begun[0] if len(begun) == 1 else Works(begun)

    def _by_gloo(self, call: str, *arguments: Any) -> Any:
        return self._through_gloo(call, getattr(self._gloo.backend(), call), *arguments)

    def _through_gloo(self, call: str, function: Callable[..., Any], *arguments: Any) -> Any:
        self.counts["gloo." + call] += 1
        work = function(*arguments)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _root(self, root: int) -> int:
        if not 0 <= root < self._group.size:
            raise ValueError(f"root {root} does not exist in a group of {self._group.size}")
        return root

    def _parts(self, lists: Sequence[Sequence[torch.Tensor]], own: torch.Tensor, call: str) -> list[torch.Tensor]:
        """The tensors of all members, of which `own` is what this rank has on the other side."""
        (parts,) = lists
        if len(parts) != self._group.size:
            raise ValueError(f"{call} takes a tensor for each of {self._group.size} ranks, not {len(parts)}")
        if any(part.dtype != own.dtype for part in parts) or parts[self._group.rank].numel() != own.numel():
            raise ValueError(f"{call} takes tensors of one type, and this rank's one of the same length on both sides")
        return list(parts)


def create(options: Any, _: Any) -> ProcessGroupTributary:
    """Makes a process group, for `torch.distributed`: the default one joins a job, others become
    groups of that. Raises `DistBackendError`, with the reason of which every rank is told."""
    store, rank, size, timeout = options.store, options.group_rank, options.group_size, options.timeout
    ranks = list(options.global_ranks_in_group)
    name = options.group_id or "default"
    context = jobs.current() if ranks else None
    try:
        if context is not None:
            group = jobs.group(context, ranks, name, timeout)
            return ProcessGroupTributary(store, timeout, context, group, name, False)
        context = jobs.join(store, rank, size, timeout, is_default=not ranks)
        try:
            return ProcessGroupTributary(store, timeout, context, jobs.group(context, None, name, timeout), name, True)
        except BaseException:
            jobs.leave(context)
            raise
    except Error as failure:
        raise dist.DistBackendError(f"{failure}. See `python -m tributary.torch.doctor`") from failure


def _check_device(source: torch.Tensor, output: torch.Tensor) -> None:
    if source.device != output.device:
        raise ValueError(f"input and output are to be on one device, not on {source.device} and {output.device}")


def _of_device(call: Call) -> list[torch.Tensor]:
    """The tensors in memory of a device that the library, and what finishes the call, read and
    write."""
    held = call.held if isinstance(call.held, tuple) else (call.held,)
    return [each for each in (*call.results, *held) if is_staged_by_library(each)]


def _all(tensors: Tensors) -> Sequence[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def _one(tensors: Tensors) -> torch.Tensor:
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"tributary takes one tensor a call, not {len(tensors)}")
    return tensors[0]


def _options(given: Any, kind: Any) -> Any:
    """A call's options; some are called with an operator or a root alone."""
    if isinstance(given, kind):
        return given
    if given is None:
        return kind()
    if isinstance(given, _REDUCTIONS):
        options = kind()
        options.reduceOp = given
        return options
    if isinstance(given, int):
        options = kind()
        options.rootRank = given
        return options
    return given
