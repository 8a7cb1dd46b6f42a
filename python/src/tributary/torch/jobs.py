# SPDX-License-Identifier: Apache-2.0
"""The job that the ranks of a program form, which its process groups share.

The default process group joins it, with the program's own store for the exchange; process groups of
some of its ranks become groups of the same job. Where the default process group has another backend,
each of ours is a job of its own.
"""

import itertools
import os
import secrets
from collections.abc import Sequence
from datetime import timedelta

import torch.distributed as dist

from tributary.context import Context
from tributary.errors import ExchangeError
from tributary.group import Group
from tributary.torch import meeting

#: What users of torch call the collectives, so that errors say these names.
CALLS = "allreduce=all_reduce,bcast=broadcast,reduce_scatter=reduce_scatter,allgather=all_gather"

_current: Context | None = None


def current() -> Context | None:
    """The job of the default process group, if that one is ours."""
    return _current


class StoreExchange:
    """How the ranks meet: over the store of `torch.distributed`."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._round = itertools.count()
        self._names: list[str] = []

    def gather(self, mine: bytes) -> Sequence[bytes] | None:
        """Every rank leaves its bytes in the store, and rank 0 collects them."""
        name = f"gather/{next(self._round)}"
        self._names += [f"{name}/{rank}" for rank in range(self._size)]
        self._store.set(f"{name}/{self._rank}", mine)
        return [self._take(f"{name}/{rank}", rank) for rank in range(self._size)] if self._rank == 0 else None

    def broadcast(self, mine: bytes | None, length: int) -> bytes:
        """Rank 0 leaves its bytes in the store, and the others take them."""
        name = f"broadcast/{next(self._round)}"
        self._names.append(name)
        if mine is None:
            return self._take(name, 0)
        self._store.set(name, mine)
        return mine

    def clean_up(self) -> None:
        """The last rank that is done takes away what was left in the store."""
        if self._store.add("done", 1) == self._size:
            for name in [*self._names, "done"]:
                self._store.delete_key(name)

    def _take(self, name: str, other: int) -> bytes:
        """What another rank leaves there."""
        try:
            self._store.wait([name], self._timeout)
            return self._store.get(name)
        except RuntimeError as failure:
            raise ExchangeError(
                f"rank {other} has stopped joining: it has left nothing in the store within {self._timeout.total_seconds():g} s "
                f"({failure}). See what rank {other} has printed, and start all ranks again"
            ) from failure


def join(store: dist.Store, rank: int, size: int, timeout: timedelta, is_default: bool) -> Context:
    """Joins a job of the ranks that share the store."""
    global _current
    store = dist.PrefixStore("tributary", store)
    exchange = StoreExchange(meeting.meet(store, rank, size, timeout), rank, size, timeout)
    context = Context(
        rank,
        size,
        exchange=exchange,
        timeout=None if os.environ.get("TRIB_TIMEOUT_MS") else timeout.total_seconds(),
        calls=CALLS,
    )
    try:
        exchange.clean_up()
        meeting.part(store, rank)
    except BaseException:
        context.close()
        raise
    if is_default:
        _current = context
    return context


def leave(context: Context) -> None:
    """Leaves a job, with all its groups."""
    _forget(context)
    context.close()


def abandon(context: Context) -> None:
    """The same, at once, while other threads may be inside calls of its groups."""
    _forget(context)
    context.abandon()


def _forget(context: Context) -> None:
    global _current
    if _current is context:
        _current = None


def group(context: Context, ranks: Sequence[int] | None, name: str, timeout: timedelta) -> Group:
    """Makes a group of some ranks of the job; its name tells it from others of the same ranks."""
    return context.igroup(ranks, tag_of(name), name).wait(timeout.total_seconds())


def number(group: Group, timeout: timedelta) -> str:
    """A number that all members know and no other group has. Collective over them."""
    drawn = bytearray(secrets.token_bytes(8))
    return group.ibroadcast(drawn, 0).wait(timeout.total_seconds()).hex()


def tag_of(name: str) -> int:
    """A number for a name, the same on every rank: FNV-1a (Fowler, Noll and Vo), 64 bits."""
    tag = 0xCBF29CE484222325
    for byte in name.encode():
        tag = (tag ^ byte) * 0x100000001B3 % 2**64
    return tag
