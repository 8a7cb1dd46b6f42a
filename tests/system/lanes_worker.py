"""Ranks of test_lanes: they show what can be seen only where a group has several lanes."""

import pathlib
import time

import numpy as np

import native
from rank import note


def halves(argument):
    """One rank posts two operations of half the length where the others post one that is cut.
    Each half looks like a part of the others' operation."""
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    whole = argument["count"]
    counts = [whole // 2] * 2 if context.rank == argument["rank"] else [whole]
    try:
        for count in counts:
            mine = np.ones(count, np.int64)
            group.allreduce(mine, np.empty_like(mine), "int64", "sum").wait(30_000)
    except native.Failed as failed:
        status = group.status()
        context.finalize()
        return {"status": failed.status, "text": failed.text, "group": status}
    return {"status": 0, "text": "no error"}


def sums(argument):
    """Float sums of all sizes, several at once. Returns their bits as one number, and how many
    took which path."""
    context = native.Context()
    group = context.group()
    random = np.random.default_rng([argument["seed"], context.rank])
    bits = 0
    for _ in range(argument["iterations"]):
        open_requests = []
        for count in argument["counts"]:
            mine = random.standard_normal(count).astype(np.float32)
            out = np.empty_like(mine)
            open_requests.append((group.allreduce(mine, out, "float32", "sum"), out))
        for request, out in open_requests:
            request.wait()
            bits = (bits * 31 + int(out.view(np.uint32).astype(np.uint64).sum())) % (1 << 61)
    counters = context.counters()
    group.free()
    context.finalize()
    return {"bits": bits, "counters": counters}


def until_error(argument):
    """Runs operations until one fails, then one more, which must fail at once. Tells whether a
    new group can be made."""
    context = native.Context()
    group = context.group()
    signal, iteration = pathlib.Path(argument["signal"]), 0
    try:
        while True:
            for count in argument["counts"]:
                mine = np.full(count, context.rank, np.int64)
                out = np.empty_like(mine)
                group.allreduce(mine, out, "int64", "sum").wait()
                assert (out == context.size * (context.size - 1) // 2).all()
            iteration += 1
            note(iteration)
    except native.Failed as failed:
        seen = signal.stat().st_mtime if signal.exists() else time.time()
        after, first = time.time() - seen, failed
    try:
        group.barrier().wait(5_000)
        again = 0
    except native.Failed as failed:
        again = failed.status
    status = group.status()
    context.finalize()
    return {"status": first.status, "text": first.text, "after": after, "again": again, "group": status}
