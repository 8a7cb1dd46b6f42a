"""What ranks do in tests of quantised sums."""

import hashlib
import os

import numpy as np

import native
from rank import note
from reference import from_bfloat16, to_bfloat16
from sums_worker import setting

#: What 127 scales reach is at most twice the largest magnitude of a block.
SCALE = 2 / 127
#: The tree's levels at most: a host's, a leaf's, the root's.
LEVELS = 3


def given(name, rank, count):
    """Normally distributed; a stretch of zeros, and whole numbers that stay exact."""
    numbers = np.random.default_rng([7, rank]).standard_normal(count).astype(np.float32)
    numbers[32:64] = 0
    numbers[64:96] = np.arange(32) % 15 - 7
    return stored(name, numbers)


def stored(name, numbers):
    return {"float32": lambda: numbers, "float16": lambda: numbers.astype(np.float16), "bfloat16": lambda: to_bfloat16(numbers)}[name]()


def value(name, stored_ones):
    return from_bfloat16(stored_ones).astype(np.float64) if name == "bfloat16" else stored_ones.astype(np.float64)


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


def bounds(vectors):
    """The most by which each element of the sum of the vectors may be off: a scale for each rounding,
    by a member and by each level, with scales that the largest possible sums of the block have."""
    largest = 0
    for vector in vectors:
        padded = np.zeros(-(-vector.size // 32) * 32)
        padded[: vector.size] = np.abs(vector)
        largest = largest + padded.reshape(-1, 32).max(axis=1)
    # Roundings below make sums a little larger.
    return np.repeat(largest * SCALE * (1 + LEVELS * 1.1), 32)[: vectors[0].size]


def check(name, found, vectors):
    """Whether a result is the sum as well as it can be. Returns the error by the sum, both as roots
    of mean squares."""
    sums, result = np.sum(vectors, axis=0), value(name, found)
    # The result is rounded to its type once more.
    room = bounds(vectors) + np.abs(sums) * {"float32": 0, "float16": 2**-11, "bfloat16": 2**-8}[name]
    worst = np.abs(result - sums) - room
    assert (worst <= 1e-30).all(), (name, int(worst.argmax()), result[worst.argmax()], sums[worst.argmax()])
    return float(np.sqrt(np.mean((result - sums) ** 2) / np.mean(sums**2)))


def every_call(argument):
    """Sums by every collective in a group of all ranks. Returns digests of the results, the errors,
    and how many bytes this rank sent and received for each byte of one long vector."""
    context = native.Context()
    size, found, errors = context.size, {}, []
    group = context.group()
    setting(group, "int8")
    for name, counts in argument["counts"].items():
        for count in counts:
            vectors = [value(name, given(name, rank, count)) for rank in range(size)]
            mine = given(name, context.rank, count)
            out, in_place, reduced = np.zeros_like(mine), mine.copy(), np.zeros_like(mine)
            group.allreduce_blocking(mine, out, name, "sum")
            group.allreduce(native.IN_PLACE, in_place, name, "sum").wait()
            group.reduce(mine, reduced, name, "sum", size - 1).wait()
            for call, result in (("allreduce", out), ("in place", in_place), ("reduce", reduced)):
                if call == "reduce" and group.rank != size - 1:
                    continue
                errors.append(check(name, result, vectors))
                assert not value(name, result)[32:64].any(), "zeros are exact"
                assert (value(name, result)[64:96] == size * (np.arange(32) % 15 - 7)).all(), "whole numbers are"
                found[f"{call} {name} {count}"] = digest(result)
            share = count // size
            block = np.zeros(share, mine.dtype)
            group.reduce_scatter(mine[: share * size].copy(), block, share, name, "sum").wait()
            own = slice(group.rank * share, (group.rank + 1) * share)
            errors.append(check(name, block, [vector[own] for vector in vectors]))
            found[f"reduce_scatter {name} {count} {group.rank}"] = digest(block)
    long = np.full(1 << 20, 1.0, np.float32)
    before = context.counters()
    group.allreduce_blocking(long, np.zeros_like(long), "float32", "sum")
    after = context.counters()
    ways = {way: (after[f"stream_bytes_{way}"] - before[f"stream_bytes_{way}"]) / long.nbytes for way in ("sent", "received")}
    context.finalize()
    return {"found": found, "errors": errors, "ways": ways, "counters": after}


def as_always(_):
    """What a group with int8 sums takes plainly, and a block with what is no number."""
    context = native.Context()
    group, size = context.group(), context.size
    setting(group, "int8")
    tenth = np.float32(0.1)
    told = {}
    for name, array, op in (
        ("short", np.full(31, tenth), "sum"),
        ("float64", np.full(64, 0.1), "sum"),
        ("integers", np.full(64, 1001, np.int32), "sum"),
        ("largest", np.full(64, tenth), "max"),
        ("product", np.full(64, tenth), "prod"),
    ):
        out = np.zeros_like(array)
        group.allreduce_blocking(array, out, array.dtype.name, op)
        setting(group, "plain")
        plain = np.zeros_like(array)
        group.allreduce_blocking(array, plain, array.dtype.name, op)
        setting(group, "int8")
        told[name] = out.tobytes() == plain.tobytes()
    odd = np.ones(128, np.float32)
    if context.rank == 1:
        odd[40] = np.inf
    out = np.zeros_like(odd)
    group.allreduce_blocking(odd, out, "float32", "sum")
    told["no numbers"] = [at // 32 for at in range(0, 128, 32) if np.isnan(out[at : at + 32]).all()]
    told["the rest"] = bool((np.delete(out, range(32, 64)) == size).all())
    empty = np.zeros(0, np.float32)
    group.allreduce_blocking(empty, empty, "float32", "sum")
    alone = context.group([context.rank], 1)
    setting(alone, "int8")
    own = np.full(64, tenth)
    alone.allreduce_blocking(own, out[:64], "float32", "sum")
    told["alone"] = bool((out[:64] == own).all())
    context.finalize()
    return told


def rounds(argument):
    """A sum so many times, slowly enough to kill a node meanwhile. Returns the digest of each."""
    context = native.Context()
    group = context.group()
    setting(group, "int8")
    mine = given("float32", context.rank, argument["count"])
    digests = []
    for number in range(argument["rounds"]):
        out = np.zeros_like(mine)
        group.allreduce_blocking(mine, out, "float32", "sum")
        digests.append(digest(out))
        note(number)
        while number == argument["rounds"] // 2 and not os.path.exists(argument["go_on"]):
            context.progress()
    counters = context.counters()
    context.finalize()
    return {"digests": digests, "counters": counters}


def disagree(argument):
    """Members that ask for other sums."""
    context = native.Context()
    group = context.group()
    setting(group, argument["odd"] if context.rank == 1 else "int8")
    array = np.ones(argument["count"], np.float32)
    status, text = 0, ""
    try:
        group.allreduce_blocking(array, np.zeros_like(array), "float32", "sum")
    except native.Failed as failed:
        status, text = failed.status, str(failed)
    context.finalize()
    return {"status": status, "text": text}


def narrow(_):
    """A job whose pieces hold no block."""
    context = native.Context()
    group = context.group()
    setting(group, "int8")
    array = np.ones(64, np.float32)
    try:
        group.allreduce_blocking(array, np.zeros_like(array), "float32", "sum")
        text = ""
    except native.Failed as failed:
        text = str(failed)
    context.finalize()
    return text
