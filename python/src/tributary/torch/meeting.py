# SPDX-License-Identifier: Apache-2.0
"""How the ranks that are started together find each other in a store that others have used before.

Torchrun's ranks may keep their store when they are started anew, with what those before them have
left there; and no number that a launcher gives a start is the same on all hosts, because torchrun's
agents count for themselves. So rank 0 draws a name, and tells it only to ranks that are there:

    rank r    hello/r = id, drawn anew
    rank 0    welcome/id = name, for each hello that it finds, again and again
    rank r    ack/name/r
    rank 0    go/name/r = nothing when it has every ack, or why it has not
    all       meet below that name

Rank 0 may answer a hello that another start has left. Nobody reads that answer, and the hello is
replaced when its rank comes.
"""

import secrets
import time
from datetime import timedelta

import torch.distributed as dist

from tributary.errors import ExchangeError

#: How long rank 0 waits before it looks again, in seconds: it begins with the least.
LEAST_PAUSE, MOST_PAUSE = 0.001, 0.05
#: How much longer than their limit others wait for rank 0, which knows who is missing, in seconds.
GRACE = 1.0


def meet(store: dist.Store, rank: int, size: int, timeout: timedelta) -> dist.Store:
    """The part of the store that those ranks have alone which are there now. Raises `ExchangeError`
    if they are not all there in time."""
    name = _lead(store, size, timeout.total_seconds()) if rank == 0 else _follow(store, rank, timeout)
    return dist.PrefixStore(name, store)


def part(store: dist.Store, rank: int) -> None:
    """Takes away what a rank has left in the store. It is called when all have met, rank 0 among
    them."""
    if rank != 0:
        store.delete_key(f"hello/{rank}")


def _lead(store: dist.Store, size: int, limit: float) -> str:
    name, probe = secrets.token_hex(8), secrets.token_hex(8)
    missing, answered = set(range(1, size)), set[str]()
    end, pause = time.monotonic() + limit, LEAST_PAUSE
    while True:
        for rank in sorted(missing):
            if _found(store, f"ack/{name}/{rank}", probe):
                missing.discard(rank)
            elif (hello := _found(store, f"hello/{rank}", probe)) is not None and hello not in answered:
                store.set(f"welcome/{hello}", name)
                answered.add(hello)
        if not missing:
            break
        if time.monotonic() > end:
            why = (
                f"after {limit:g} s only {size - len(missing)} of {size} ranks are there; missing: {_words(missing)}. Start all "
                "ranks with one MASTER_ADDR and MASTER_PORT, or one store, and see what the missing ones have printed"
            )
            _tell(store, name, size, why)
            raise ExchangeError(why)
        time.sleep(pause)
        pause = min(2 * pause, MOST_PAUSE)
    for key in (*(f"ack/{name}/{rank}" for rank in range(1, size)), *(f"welcome/{hello}" for hello in answered)):
        store.delete_key(key)
    _tell(store, name, size, "")
    return name


def _tell(store: dist.Store, name: str, size: int, why_not: str) -> None:
    for rank in range(1, size):
        store.set(f"go/{name}/{rank}", why_not)


def _follow(store: dist.Store, rank: int, timeout: timedelta) -> str:
    own = secrets.token_hex(8)
    store.set(f"hello/{rank}", own)
    try:
        store.wait([f"welcome/{own}"], timeout)
        name = store.get(f"welcome/{own}").decode()
    except RuntimeError as failure:
        raise ExchangeError(
            f"rank 0 has not answered rank {rank} in the store within {timeout.total_seconds():g} s ({failure}). Start all "
            "ranks with one MASTER_ADDR and MASTER_PORT, or one store, and see what rank 0 has printed"
        ) from failure
    store.set(f"ack/{name}/{rank}", "1")
    go = f"go/{name}/{rank}"
    try:
        # Rank 0 began before it said welcome, so that it says what becomes of this within a limit.
        store.wait([go], timeout + timedelta(seconds=GRACE))
        why_not = store.get(go).decode()
    except RuntimeError as failure:
        raise ExchangeError(
            f"rank 0 is there, and has not said within {timeout.total_seconds() + GRACE:g} s that all others are ({failure}). See what "
            "rank 0 has printed"
        ) from failure
    store.delete_key(go)
    if why_not:
        raise ExchangeError(f"rank 0 has given up: {why_not}")
    return name


def _found(store: dist.Store, key: str, probe: str) -> str | None:
    """What stands there, if anything does. Nothing is changed. In torch 2.6 a store has no other
    way to be asked that does not wait for the key."""
    value = store.compare_set(key, probe, probe).decode()
    return None if value in ("", probe) else value


def _words(ranks: set[int]) -> str:
    """Ranks for people, the first few of many."""
    first = sorted(ranks)[:8]
    return f"rank {', '.join(map(str, first))}{' and others' if len(ranks) > len(first) else ''}"
