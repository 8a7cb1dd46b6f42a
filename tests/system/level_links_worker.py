"""Collectives in groups of ranks that share hosts, between gates, so that a test can read the links'
counters before and after each."""

import numpy as np

import native
from network_worker import gated


def run(argument):
    """Each of `runs` is a collective, the members of its group, and the number of int64 in the whole
    vector. Ranks that are no members wait for the others."""
    context = native.Context()
    world = context.group()

    def call(number, collective, members, count):
        if context.rank not in members:
            return lambda: None
        group = context.group(members, tag=number + 1)
        return lambda: CHECKED[collective](group, count)

    calls = [call(number, *run) for number, run in enumerate(argument["runs"])]
    gated(argument["gates"], calls, before=lambda: world.barrier().wait())
    context.finalize()


def _allreduce(group, count):
    out = np.empty(count, np.int64)
    group.allreduce(np.full(count, group.rank, np.int64), out, "int64", "sum").wait()
    assert (out == _total(group)).all()


def _reduce(group, count):
    out = np.empty(count, np.int64) if group.rank == 0 else None
    group.reduce(np.full(count, group.rank, np.int64), out, "int64", "sum", 0).wait()
    assert out is None or (out == _total(group)).all()


def _bcast(group, count):
    data = np.full(count, 7 if group.rank == 0 else 0, np.int64)
    group.bcast(data, 0).wait()
    assert (data == 7).all()


def _reduce_scatter(group, count):
    block = count // group.size
    data = np.repeat(np.arange(group.size, dtype=np.int64), block) + group.rank
    out = np.empty(block, np.int64)
    group.reduce_scatter(data, out, block, "int64", "sum").wait()
    assert (out == _total(group) + group.size * group.rank).all()


def _allgather(group, count):
    block = count // group.size
    out = np.empty(block * group.size, np.int64)
    group.allgather(np.full(block, group.rank, np.int64), out, 8 * block).wait()
    assert np.array_equal(out, np.repeat(np.arange(group.size), block))


def _total(group):
    return group.size * (group.size - 1) // 2


CHECKED = {"allreduce": _allreduce, "reduce": _reduce, "bcast": _bcast, "reduce_scatter": _reduce_scatter, "allgather": _allgather}
