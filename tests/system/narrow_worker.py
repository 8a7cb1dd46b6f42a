"""An operation that a way does not carry: every rank tells how it ended."""

import os
import time

import numpy as np

import native
from rank import note


def allreduce(argument):
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    note(1)
    while not os.path.exists(argument["go"]):
        time.sleep(0.01)
    began, out = time.monotonic(), np.empty(1000, np.int64)
    try:
        group.allreduce(np.full(1000, context.rank, np.int64), out, "int64", "sum").wait()
        error = None
    except native.Failed as failed:
        error = failed.text
    took = time.monotonic() - began
    context.finalize()
    return {"error": error, "seconds": took}
