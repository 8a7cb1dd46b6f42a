"""What ranks do in tests of sums that do not depend on order."""

import hashlib
import os

import numpy as np

import native
from exact_sums import TYPES, as_bytes, given
from rank import note

SUMS = {"plain": 0, "fixed": 1, "exact": 2, "int8": 3}


def vector(name, giver, count, repeats=1):
    numbers = np.frombuffer(as_bytes(name, given(name, giver, count)), np.uint8)
    return np.tile(numbers, repeats).view(f"u{TYPES[name][0]}").copy()


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def setting(group, sums):
    native.check(native.lib.trib_group_set_sums(group.handle, SUMS[sums]))


def every_call(argument):
    """Sums by every collective, in a group of all ranks and in one that has them in reverse. `order`
    says what each rank gives. Returns digests by type and length, and the counters."""
    context = native.Context()
    order, size, found = argument["order"], context.size, {}
    groups = [context.group(), context.group(list(reversed(range(size))), 1)]
    for group in groups:
        if argument.get("by_call", True):
            setting(group, argument["sums"])
    for name, counts in argument["counts"].items():
        for count, repeats in counts:
            mine = vector(name, order[context.rank], count, repeats)
            for which, group in enumerate(groups):
                out, in_place, reduced = np.zeros_like(mine), mine.copy(), np.zeros_like(mine)
                group.allreduce_blocking(mine, out, name, "sum")
                group.allreduce(native.IN_PLACE, in_place, name, "sum").wait()
                group.reduce(mine, reduced, name, "sum", size - 1).wait()
                results = [out, in_place] + ([reduced] if group.rank == size - 1 else [])
                found[f"sum {name} {count} {repeats} {which}"] = sorted(set(map(digest, results)))
                share = mine.size // size
                if share:
                    block = np.zeros(share, mine.dtype)
                    group.reduce_scatter(mine[: share * size].copy(), block, share, name, "sum").wait()
                    found[f"block {name} {count} {repeats} {which} {group.rank}"] = digest(block)
    counters = context.counters()
    context.finalize()
    return {"found": found, "counters": counters}


def split(argument):
    """The sum of one vector, in one call and in several at once. Returns both results."""
    context = native.Context()
    group = context.group()
    setting(group, "exact")
    mine = vector(argument["type"], context.rank, argument["count"])
    whole, parts = np.zeros_like(mine), np.zeros_like(mine)
    group.allreduce(mine, whole, argument["type"], "sum").wait()
    requests, start = [], 0
    for length in argument["lengths"]:
        piece = slice(start, start + length)
        requests.append(group.allreduce(mine[piece], parts[piece], argument["type"], "sum"))
        start += length
    assert start == mine.size
    # What comes behind sums that are not over is posted behind them.
    mark, least = np.array([context.rank], np.int64), np.zeros(1, np.int64)
    requests.append(group.allreduce(mark, least, "int64", "max"))
    for request in requests:
        request.wait()
    assert least[0] == context.size - 1
    context.finalize()
    return [digest(whole), digest(parts)]


def over_and_over(argument):
    """The same sums again and again until a file is there; fails when one differs. Returns how
    many, and the digest."""
    context = native.Context()
    group = context.group()
    setting(group, argument["sums"])
    mine = vector("float32", context.rank, argument["count"], argument["repeats"])
    digests, rounds, go_on = set(), 0, np.ones(1, np.int64)
    while go_on[0]:
        out = np.zeros_like(mine)
        group.allreduce_blocking(mine, out, "float32", "sum")
        digests.add(digest(out))
        rounds += 1
        note(rounds)
        mark = np.array([0 if os.path.exists(argument["stop"]) else 1], np.int64)
        group.allreduce_blocking(mark, go_on, "int64", "min")
    counters = context.counters()
    context.finalize()
    return {"rounds": rounds, "digests": sorted(digests), "counters": counters}


def disagree(argument):
    """Members that ask for other sums, or give vectors of other lengths or types."""
    context = native.Context()
    group = context.group()
    odd = context.rank == 1
    setting(group, argument["odd_sums"] if odd else "exact")
    count, name = (argument["odd_count"], argument["odd_type"]) if odd else (argument["count"], "float32")
    array = np.full(count, 0x3c003c003c003c00, np.uint64)
    status, text = 0, ""
    try:
        native.check(native.lib.trib_allreduce(group.handle, native._at(array), native._at(np.zeros_like(array)), count, native.DTYPES[name][0], native.OPS["sum"]))
    except native.Failed as failed:
        status, text = failed.status, str(failed)
    context.finalize()
    return {"status": status, "text": text}


def refused(_):
    """A product, integers, and a maximum, in a group that asks for exact sums."""
    context = native.Context()
    group = context.group()
    setting(group, "exact")
    numbers, texts = np.full(9, 2.0, np.float32), []
    for array, name, op in ((numbers, "float32", "prod"), (numbers, "float32", "max"), (np.full(9, 3, np.int32), "int32", "sum")):
        out = np.zeros_like(array)
        try:
            group.allreduce_blocking(array, out, name, op)
            texts.append(out.tolist())
        except native.Failed as failed:
            texts.append([failed.status, str(failed)])
    context.finalize()
    return texts
