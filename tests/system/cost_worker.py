"""Allreduces back to back, in runs between gates. What a rank spends is counted here; what links
and nodes spend is counted by the test."""

import os
import pathlib
import time

import numpy as np

import native
from native import DTYPES, OPS, check, lib
from rank import note
from system_calls import Calls, waits


def allreduces(argument):
    """Does runs, each given as [bytes, operations]; run N waits for gate file N. Returns what
    each run cost this rank."""
    context = native.Context()
    group = context.group()
    calls, costs = Calls(os.getpid(), argument["tracepoint"]), []
    for number, (size, operations) in enumerate(argument["runs"]):
        mine = np.full(size // 4, context.rank, np.int32)
        out = np.empty_like(mine)
        words = (group.handle, mine.ctypes.data, out.ctypes.data, mine.size, DTYPES["int32"][0], OPS["sum"])
        note(2 * number)  # The test reads the links between this and the gate.
        while not (pathlib.Path(argument["gates"]) / str(number)).exists():
            time.sleep(0.01)
        before = (calls.counts(), waits(os.getpid()))
        for _ in range(operations):
            check(lib.trib_allreduce(*words))
        after = (calls.counts(), waits(os.getpid()))
        assert (out == context.size * (context.size - 1) // 2).all()
        costs.append({"calls": after[0] and [a - b for a, b in zip(after[0], before[0])], "waits": after[1] - before[1]})
        note(2 * number + 1)
        while not (pathlib.Path(argument["gates"]) / f"{number}.read").exists():
            time.sleep(0.01)
    calls.close()
    context.finalize()
    return costs
