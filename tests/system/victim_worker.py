"""Ranks of a job that others disturb: how long its operations take, and when."""

import time

import numpy as np

import native
from rank import note


def latencies(argument):
    """Allreduces of 8 bytes for so many seconds. Rank 0 returns when each began (CLOCK_MONOTONIC) and how
    long it took, in microseconds."""
    context = native.Context()
    group = context.group()
    own, out, spans = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64), []
    end = time.monotonic() + argument["seconds"]
    while True:
        began = time.monotonic()
        own[0] = 1 + (1 << 32 if context.rank == 0 and began > end else 0)
        group.allreduce(own, out, "int64", "sum").wait()
        spans.append((began, (time.monotonic() - began) * 1e6))
        assert out[0] & 0xFFFFFFFF == context.size
        if len(spans) == 1:
            note(1)
        if out[0] >> 32:
            break
    group.free()
    context.finalize()
    return spans if context.rank == 0 else None
