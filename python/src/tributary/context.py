# SPDX-License-Identifier: Apache-2.0
"""One rank of one job: joining it, making groups of its ranks, leaving it."""

import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from tributary import launch
from tributary._native import BROADCAST, GATHER, PROGRESS, Counters, OutOfBand, Params, Prediction, lib
from tributary.errors import Error, InvalidError, check
from tributary.group import Group
from tributary.request import Request


class Exchange(Protocol):
    """The caller's own way to exchange a few bytes between all ranks, while they join."""

    def gather(self, mine: bytes) -> Sequence[bytes] | None:
        """Every rank gives bytes of the same length; rank 0 gets them all, in the order of ranks."""

    def broadcast(self, mine: bytes | None, length: int) -> bytes:
        """Rank 0 gives `mine`, and every rank gets these `length` bytes."""


class Forecast(NamedTuple):
    """The operations for which the tree is predicted to be at least as fast as the hosts' own
    algorithms. Ranges are in bytes of the vector, both ends included."""

    barrier: bool
    allreduce: tuple[tuple[int, int], ...]
    reduce: tuple[tuple[int, int], ...]
    #: The ranks share a host, and do all in memory that they share: nothing else is predicted.
    in_memory: bool


class Context:
    """One rank of a job.

    Joining is collective over all ranks, and all of them get the same verdict. Without `rank` and
    `size` the launcher's variables say who this is (`tributary.launch`). Ranks meet at the manager
    under the launcher's name for the job, or by `exchange`. `timeout` is in seconds and limits
    joining alone. `quota` says what the job would like to use, as `TRIB_QUOTA` does. `calls` has
    the names that the program's users know collectives by, so that errors say them. `progress` is
    called about every millisecond by a thread that waits in the library.

    It may be used by several threads. A child process that was forked later cannot use it
    (`ForkedError`) and does no harm to it.
    """

    def __init__(
        self,
        rank: int | None = None,
        size: int | None = None,
        *,
        manager: str | None = None,
        host: str | None = None,
        exchange: Exchange | None = None,
        timeout: float | None = None,
        quota: str | None = None,
        calls: str | None = None,
        progress: Callable[[], None] | None = None,
    ) -> None:
        if (rank is None) != (size is None):
            raise InvalidError("give rank and size together, or neither")
        if rank is None or size is None:
            found = launch.detect()
            rank, size = found.rank, found.size
            if exchange is None:
                check_meeting(found)
        if not 0 <= rank < 2**32 or not 0 < size < 2**32:
            raise InvalidError(f"rank {rank} of {size} is impossible")
        self.rank = rank
        self.size = size
        self._lock = threading.Lock()
        self._orphans: list[tuple[ctypes.c_void_p, object]] = []
        self._groups: weakref.WeakSet[Group] = weakref.WeakSet()
        self._progress = PROGRESS(lambda _: progress()) if progress else PROGRESS()
        self._handle: ctypes.c_void_p | None = None
        self._handle = self._join(exchange, manager, host, timeout, quota, calls)

    def _join(
        self,
        exchange: Exchange | None,
        manager: str | None,
        host: str | None,
        timeout: float | None,
        quota: str | None,
        calls: str | None,
    ) -> ctypes.c_void_p:
        caller = _OutOfBand(exchange, self.rank, self.size) if exchange else None
        params = Params(
            struct_size=ctypes.sizeof(Params),
            rank=self.rank,
            size=self.size,
            manager=_text(manager),
            host=_text(host),
            oob=ctypes.pointer(caller.table) if caller else None,
            timeout_ms=0 if timeout is None else _milliseconds(timeout),
            progress=self._progress,
            quota=_text(quota),
            calls=_text(calls),
        )
        handle = ctypes.c_void_p()
        status = lib.trib_init(params, handle)
        if caller and caller.failure:
            # The library knows only that the exchange failed; the exchange knows why.
            if status == 0:
                lib.trib_finalize(handle)
            raise caller.failure
        check(status)
        return handle

    def group(self, ranks: Iterable[int] | None = None, tag: int = 0, name: str | None = None) -> Group:
        """Makes a group of these ranks of the job, or of all; their order gives the ranks in it.

        Collective over the members only. Two groups of equal members that are made at the same
        time must differ in `tag`. `name` is for people: errors and `trib explain` show it. Raises
        what keeps the group from being made.
        """
        return self.igroup(ranks, tag, name).wait()

    def igroup(self, ranks: Iterable[int] | None = None, tag: int = 0, name: str | None = None) -> Request[Group]:
        """Does the same without waiting. Its operations may be posted at once, by way of the
        request's `Group`, only when it is done."""
        members = tuple(range(self.size) if ranks is None else ranks)
        if self.rank not in members:
            raise InvalidError(f"rank {self.rank} makes a group that it is not in")
        group, ready = ctypes.c_void_p(), ctypes.c_void_p()
        with self._open() as handle:
            list_ = (ctypes.c_uint32 * len(members))(*members)
            check(lib.trib_group_create_named_nb(handle, list_, len(members), tag, _text(name), group, ready))
            made = Group(self, group, members, name)
            self._groups.add(made)
        return Request(self, ready, None, made)

    def progress(self) -> None:
        """Polls everything outstanding once, and never waits."""
        with self._open() as handle:
            check(lib.trib_progress(handle))

    def fall_back(self, why: str) -> None:
        """Tells the manager that the program goes on without the tree, and why: `trib jobs` says
        so. The first call of rank 0 counts."""
        with self._open() as handle:
            check(lib.trib_fall_back(handle, why.encode()))

    def counters(self) -> dict[str, int]:
        """Counters of this rank since it joined, by the names of `tributary.h`."""
        counters = Counters(struct_size=ctypes.sizeof(Counters))
        with self._open() as handle:
            check(lib.trib_get_counters(handle, counters))
        return {name: getattr(counters, name) for name, *_ in Counters._fields_[1:]}

    def predict(self, ranks: Iterable[int] | None = None) -> Forecast | None:
        """What the manager predicted for a group of these ranks when it admitted the job: the same
        on every rank. `None` where it has predicted nothing."""
        members = tuple(range(self.size) if ranks is None else ranks)
        told = Prediction(struct_size=ctypes.sizeof(Prediction))
        with self._open() as handle:
            check(lib.trib_predict(handle, (ctypes.c_uint32 * len(members))(*members), len(members), told))
        if not told.known:
            return None
        ranges = ((told.allreduce, told.allreduces), (told.reduce, told.reduces))
        allreduce, reduce = (tuple((r.start, r.end) for r in which[:count]) for which, count in ranges)
        return Forecast(bool(told.barrier), allreduce, reduce, bool(told.in_memory))

    def close(self) -> None:
        """Leaves the job: its groups are left, and what is outstanding fails. It waits at most a
        second for frames that are still to be sent. A second call does nothing. No other thread is
        inside a call of a group; `abandon` is for that."""
        for group in list(self._groups):
            group.free()
        with self._lock:
            handle, self._handle = self._handle, None
        self._finalize(handle)

    def abandon(self) -> None:
        """Leaves the job as `close` does, while other threads may be inside calls of its groups,
        and waits for no device. The memory of a group is given up once nobody holds it any more."""
        with self._lock:
            # No group is made from here on.
            handle, self._handle = self._handle, None
            groups = list(self._groups)
        for group in groups:
            # One that cannot be left is left with the job.
            with contextlib.suppress(Error):
                group.abandon()
        self._finalize(handle)

    def _finalize(self, handle: ctypes.c_void_p | None) -> None:
        if handle:
            check(lib.trib_finalize(handle))
        self._reap()

    @contextlib.contextmanager
    def _open(self):  # type: ignore[no-untyped-def]
        """The handle, which nobody frees meanwhile."""
        self._reap()
        with self._lock:
            if not self._handle:
                raise InvalidError("the job has been left already")
            yield self._handle

    def _adopt(self, handle: ctypes.c_void_p, held: object) -> None:
        """Holds the vectors of an operation whose request is gone, until it is over."""
        self._orphans.append((handle, held))

    def _reap(self) -> None:
        for _ in range(len(self._orphans)):
            try:
                orphan = self._orphans.pop()
            except IndexError:
                return
            over = ctypes.c_int()
            lib.trib_test(orphan[0], over)
            if over.value:
                lib.trib_request_free(orphan[0])
            else:
                self._orphans.insert(0, orphan)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            # Nobody is there to be told.
            with contextlib.suppress(Exception):
                self.close()

    def __repr__(self) -> str:
        return f"<tributary.Context rank {self.rank} of {self.size}{'' if self._handle else ', left'}>"


def check_meeting(found: launch.Launch) -> None:
    """Raises `InvalidError` if there is no name under which the ranks could meet. The library finds
    the same name by itself, for a rank that is what its launcher says."""
    if not os.environ.get(launch.RENDEZVOUS_ENV) and found.rendezvous is None:
        raise InvalidError(
            f"{found.launcher} gives no name under which the ranks could meet: set {launch.RENDEZVOUS_ENV} to the same "
            "text on all ranks, another one for each job"
        )

def _milliseconds(timeout: float) -> int:
    """A limit in seconds as a C int, in which 0 would stand for the usual one. The longest is 24 days."""
    return int(min(max(1000 * timeout, 1), 2**31 - 1))


def _text(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


class _OutOfBand:
    """`trib_oob` over a caller's exchange. An exception may not pass through the library, so the
    first one is kept."""

    def __init__(self, exchange: Exchange, rank: int, size: int) -> None:
        self._exchange, self._rank, self._size = exchange, rank, size
        self.failure: BaseException | None = None
        self.table = OutOfBand(None, GATHER(self._gather), BROADCAST(self._broadcast))

    def _gather(self, _: int, mine: int, all_: int | None, length: int) -> int:
        def run() -> None:
            parts = self._exchange.gather(ctypes.string_at(mine, length))
            if all_:
                whole = b"".join(parts or ())
                if len(whole) != self._size * length:
                    raise InvalidError(f"the exchange gathered {len(whole)} bytes, not {self._size} times {length}")
                ctypes.memmove(all_, whole, len(whole))

        return self._guard(run)

    def _broadcast(self, _: int, buffer: int, length: int) -> int:
        def run() -> None:
            mine = ctypes.string_at(buffer, length) if self._rank == 0 else None
            told = self._exchange.broadcast(mine, length)
            if len(told) != length:
                raise InvalidError(f"the exchange broadcast {len(told)} bytes, not {length}")
            ctypes.memmove(buffer, told, length)

        return self._guard(run)

    def _guard(self, run: Callable[[], None]) -> int:
        try:
            run()
        except BaseException as failure:
            self.failure = self.failure or failure
            return -1
        return 0


