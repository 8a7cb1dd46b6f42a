# SPDX-License-Identifier: Apache-2.0
"""A group of ranks and its collectives."""

import _thread
import contextlib
import ctypes
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from tributary._native import IN_PLACE, lib
from tributary.buffers import Vector, vector
from tributary.datatypes import operator
from tributary.errors import InvalidError, MismatchError, check, failure
from tributary.request import Request

if TYPE_CHECKING:
    from tributary.context import Context

V = TypeVar("V")

#: The ways to take sums, by `enum trib_sums`.
SUMS = ("plain", "fixed", "exact", "int8")
#: How long an operation is waited for before it gets a request of its own.
SOON_MS = 10


class Group:
    """A group of ranks of a job, made by `Context.group`. Ranks, roots among them, are counted in
    the group.

    Vectors are anything with a buffer (`tributary.buffers`). A reduction is done in place unless
    `out` is given, and its call returns where the result lies. Members post the operations of a
    group in the same order. An operation whose name begins with `i` returns at once; its vectors
    belong to the library until its request is done. `dtype` says the type of the elements where
    the vector's own does not: `numpy.uint16` holds `"bfloat16"`.

    Vectors of a CUDA device are reduced in the order of a stream: the current one of torch, or the
    one that the array names. Every member then gives vectors of a device. What its request waits
    for is the result; `Request.wait_stream` makes a stream wait instead.
    """

    def __init__(self, context: "Context", handle: ctypes.c_void_p, members: tuple[int, ...], name: str | None) -> None:
        self._context = context
        self._handle: ctypes.c_void_p | None = handle
        #: The members, as ranks of the job.
        self.members = members
        self.name = name
        self.rank = members.index(context.rank)
        self.size = len(members)
        self._is_abandoned = False

    def allreduce(self, source: V, op: str = "sum", out: V | None = None, *, dtype: str | None = None) -> V:
        """Reduces the members' vectors element by element; every member gets the result."""
        return self.iallreduce(source, op, out, dtype=dtype).wait()

    def iallreduce(self, source: V, op: str = "sum", out: V | None = None, *, dtype: str | None = None) -> Request[V]:
        """Begins `allreduce`."""
        give = vector(source, dtype)
        code = operator(op, give.dtype)
        get = give if out is None else vector(out, dtype)
        get.check_writable("where the result goes")
        _check_alike(give, get, get.nbytes)
        address = IN_PLACE if out is None else give.address
        count = give.count * give.dtype.values
        held, value = (give, get), source if out is None else out
        call, stream = _way("allreduce", give, get)
        return self._post(call, address, get.address, count, give.dtype.code, code, *stream, held=held, value=value)

    def reduce(self, source: V, root: int = 0, op: str = "sum", out: V | None = None, *, dtype: str | None = None) -> V | None:
        """Reduces the members' vectors element by element; the root gets the result, the others
        `None`."""
        return self.ireduce(source, root, op, out, dtype=dtype).wait()

    def ireduce(
        self, source: V, root: int = 0, op: str = "sum", out: V | None = None, *, dtype: str | None = None
    ) -> Request[V | None]:
        """Begins `reduce`."""
        self._check_root(root)
        give = vector(source, dtype)
        code = operator(op, give.dtype)
        count = give.count * give.dtype.values
        if self.rank != root:
            call, stream = _way("reduce", give)
            return self._post(call, give.address, None, count, give.dtype.code, code, root, *stream, held=(give,), value=None)
        get = give if out is None else vector(out, dtype)
        get.check_writable("where the result goes")
        _check_alike(give, get, get.nbytes)
        address = IN_PLACE if out is None else give.address
        held, value = (give, get), source if out is None else out
        call, stream = _way("reduce", give, get)
        return self._post(call, address, get.address, count, give.dtype.code, code, root, *stream, held=held, value=value)

    def broadcast(self, buffer: V, root: int = 0) -> V:
        """Copies the root's vector, of any type, over every other member's."""
        return self.ibroadcast(buffer, root).wait()

    def ibroadcast(self, buffer: V, root: int = 0) -> Request[V]:
        """Begins `broadcast`."""
        self._check_root(root)
        whole = vector(buffer, "uint8")
        if self.rank != root:
            whole.check_writable("where the root's vector goes")
        call, stream = _way("bcast", whole)
        return self._post(call, whole.address, whole.nbytes, root, *stream, held=whole, value=buffer)

    def barrier(self) -> None:
        """Returns when every member has called it."""
        self.ibarrier().wait()

    def ibarrier(self) -> Request[None]:
        """Begins `barrier`."""
        return self._post(lib.trib_barrier_nb, held=None, value=None)

    def reduce_scatter(self, source: Any, out: V, op: str = "sum", *, dtype: str | None = None) -> V:
        """Reduces vectors of `size` blocks; each member gets its block of the result in `out`."""
        return self.ireduce_scatter(source, out, op, dtype=dtype).wait()

    def ireduce_scatter(self, source: Any, out: V, op: str = "sum", *, dtype: str | None = None) -> Request[V]:
        """Begins `reduce_scatter`."""
        give, get = vector(source, dtype), vector(out, dtype)
        code = operator(op, give.dtype)
        get.check_writable("where the result goes")
        _check_alike(give, get, self.size * get.nbytes)
        count = get.count * get.dtype.values
        call, stream = _way("reduce_scatter", give, get)
        return self._post(
            call, give.address, get.address, count, give.dtype.code, code, *stream, held=(give, get), value=out
        )

    def allgather(self, source: Any, out: V) -> V:
        """Every member gives a block, of any type, and gets all of them in `out`, in the order of
        ranks."""
        return self.iallgather(source, out).wait()

    def iallgather(self, source: Any, out: V) -> Request[V]:
        """Begins `allgather`."""
        give, get = vector(source, "uint8"), vector(out, "uint8")
        get.check_writable("where the result goes")
        if get.nbytes != self.size * give.nbytes:
            raise InvalidError(f"{self.size} blocks of {give.nbytes} bytes do not go into {get.nbytes} bytes")
        call, stream = _way("allgather", give, get)
        return self._post(call, give.address, get.address, give.nbytes, *stream, held=(give, get), value=out)

    def set_sums(self, sums: str) -> None:
        """Says how the group takes sums of floating-point numbers from now on: `"plain"`, in the
        order of the tree, so that their bits depend on no order, `"fixed"` or `"exact"`
        (docs/exact-sums.md), or quantised, `"int8"`, which is for gradients
        (docs/quantised-sums.md). All members say the same between the same operations."""
        if sums not in SUMS:
            raise InvalidError(f"{sums!r} is no way to take sums: {', '.join(SUMS)}")
        check(lib.trib_group_set_sums(self._live(), SUMS.index(sums)))

    def check(self) -> None:
        """Raises what broke the group; a broken group never recovers."""
        status = lib.trib_group_status(self._live())
        if status:
            words = ctypes.create_string_buffer(1024)
            lib.trib_group_error(self._live(), words, len(words))
            raise type(failure(status))(words.value.decode(errors="replace"))

    def leave(self) -> None:
        """Leaves the group. What is outstanding fails, as does all that is posted later; the call
        is local. One that has been freed is left already."""
        if self._handle:
            check(lib.trib_group_leave(self._handle))

    def abandon(self) -> None:
        """Leaves the group while other threads may be inside its calls. Its memory is given up once
        nobody holds it any more, by a thread of its own: that may wait for a device."""
        self._is_abandoned = True
        self.leave()

    def free(self) -> None:
        """Leaves the group and gives up its memory. A second call does nothing. No other thread is
        inside a call of the group; `abandon` is for that."""
        handle, self._handle = self._handle, None
        if handle:
            check(lib.trib_group_free(handle))

    def _begin(self, call: Any, arguments: tuple[Any, ...], handle: ctypes.c_void_p) -> None:
        """Begins an operation, whose handle is for a request."""
        status = call(self._handle or self._live(), *arguments, handle)
        if status:
            raise failure(status)
        if self._context._orphans:
            self._context._reap()

    def _post(self, call: Any, *arguments: Any, held: object, value: V) -> Request[V]:
        # A signal may raise between any two steps: the request is there before its operation.
        handle = ctypes.c_void_p()
        request = Request(self._context, handle, held, value)
        self._begin(call, arguments, handle)
        return request

    def _at_once(self, call: Any, arguments: tuple[Any, ...], held: object) -> Request[None] | None:
        """Does an operation, or begins one that is not over soon."""
        handle = ctypes.c_void_p()
        # Most operations end here, and a request would cost more than they do.
        try:
            self._begin(call, arguments, handle)
            status = lib.trib_finish(handle, SOON_MS)
        except BaseException:
            # Interrupted: the context holds the vectors of a request that is dropped.
            if handle:
                Request(self._context, handle, held, None)
            raise
        return Request(self._context, handle, held, None) if status else None

    def _live(self) -> ctypes.c_void_p:
        if not self._handle:
            raise InvalidError("the group has been freed already")
        return self._handle

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise InvalidError(f"root {root} does not exist in a group of {self.size}")

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if not handle:
            return
        if not self._is_abandoned:
            lib.trib_group_free(handle)
        elif not sys.is_finalizing():
            # Where no thread can be made, the memory stays. `threading` would wait for its start.
            with contextlib.suppress(RuntimeError):
                _thread.start_new_thread(_free, (handle, self._context))

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<tributary.Group{name} rank {self.rank} of {self.size}{'' if self._handle else ', freed'}>"


def _free(handle: ctypes.c_void_p, context: "Context") -> None:
    """Gives up the memory of a group. Meanwhile the context holds the vectors of its operations."""
    lib.trib_group_free(handle)
    context._reap()


def _way(operation: str, *vectors: Vector) -> tuple[Any, tuple[int, ...]]:
    """The library's function for an operation over these vectors, and the stream that it takes if
    one of them is memory of a device."""
    streams = tuple({each.stream for each in vectors if each.stream is not None})
    if len(streams) > 1:
        raise InvalidError("the vectors are used in different streams: make one wait for the other first")
    return getattr(lib, f"trib_{operation}_stream_nb" if streams else f"trib_{operation}_nb"), streams


def _check_alike(give: Vector, get: Vector, nbytes: int) -> None:
    """Raises unless the vectors have one type, and the input so many bytes: as many as the result takes."""
    if give.dtype is not get.dtype:
        raise MismatchError(f"the input is {give.dtype.name} and the result {get.dtype.name}")
    if give.nbytes != nbytes:
        raise InvalidError(f"an input of {give.nbytes} bytes does not fit a result of {get.nbytes}")
