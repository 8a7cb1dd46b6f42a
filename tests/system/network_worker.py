"""One large collective on every rank, some times over, between gates, so that a test can read the
links' counters before and after each."""

import os
import time

import numpy as np

import native
from rank import note


def gated(gates, calls, before=lambda: None):
    """Makes each call behind a gate of its own, which opens when there is a file in the folder `gates`
    with the call's number, and waits behind it until the links are read."""
    for number, call in enumerate(calls):
        before()
        note(2 * number)
        _wait_for(f"{gates}/{number}")
        call()
        note(2 * number + 1)
        _wait_for(f"{gates}/{number}.read")


def _run(argument, call):
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    gated(argument["gates"], [lambda: call(context, group, argument["bytes"] // 8)] * argument["turns"])
    context.finalize()


def _wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def allreduce(argument):
    def call(context, group, count):
        out = np.empty(count, np.int64)
        group.allreduce(np.full(count, context.rank, np.int64), out, "int64", "sum").wait()
        assert (out == argument.get("sum", 6)).all()

    _run(argument, call)


def reduce(argument):
    def call(context, group, count):
        root = argument["root"]
        out = np.empty(count, np.int64) if group.rank == root else None
        group.reduce(np.full(count, context.rank, np.int64), out, "int64", "sum", root).wait()
        assert out is None or (out == 6).all()

    _run(argument, call)


def bcast(argument):
    def call(context, group, count):
        data = np.full(count, 7 if group.rank == argument["root"] else 0, np.int64)
        group.bcast(data, argument["root"]).wait()
        assert (data == 7).all()

    _run(argument, call)


def reduce_scatter(argument):
    def call(context, group, count):
        block = count // group.size
        data = np.repeat(np.arange(group.size, dtype=np.int64), block) + context.rank
        out = np.empty(block, np.int64)
        group.reduce_scatter(data, out, block, "int64", "sum").wait()
        assert (out == 6 + 4 * group.rank).all()

    _run(argument, call)
