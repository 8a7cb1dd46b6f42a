"""Ranks that use the package for Python: what test_python.py runs."""

import array
import gc
import os
import signal
import threading
import time

import numpy as np
import tributary
from tributary.datatypes import DATATYPES, ON_BOOL

from rank import await_note, note

OPS = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "band": np.bitwise_and, "bor": np.bitwise_or,
    "bxor": np.bitwise_xor, "land": np.logical_and, "lor": np.logical_or, "lxor": np.logical_xor,
}  # fmt: skip


def given(dtype, rank, count):
    """Small whole numbers, so that every sum is exact."""
    numbers = np.random.default_rng(rank).integers(0, 3, count)
    return (numbers + 1j * numbers if dtype.startswith("complex") else numbers).astype(dtype)


def supported(name, op):
    try:
        tributary.datatypes.operator(op, DATATYPES[name])
    except tributary.UnsupportedError:
        return False
    return True


def every_collective(argument):
    """Each collective with each type and operator that NumPy has too; returns the number of cases."""
    cases = 0
    with tributary.Context() as context:
        group = context.group(name="every")
        rank, size = group.rank, group.size
        for name in (name for name in DATATYPES if hasattr(np, name) or name == "bool"):
            for op in (op for op in OPS if supported(name, op)):
                for count in argument["counts"]:
                    inputs = [given(name, other, size * count) for other in range(size)]
                    kernel = OPS[ON_BOOL.get(op, op) if name == "bool" else op]
                    wanted = inputs[0]
                    for other in inputs[1:]:
                        wanted = kernel(wanted, other).astype(name)
                    assert np.array_equal(group.allreduce(inputs[rank].copy(), op), wanted), (name, op, count)
                    out = np.empty_like(wanted)
                    assert group.allreduce(inputs[rank], op, out) is out and np.array_equal(out, wanted), (name, op, count)
                    got = group.reduce(inputs[rank].copy(), 1, op)
                    assert (got is None) if rank != 1 else np.array_equal(got, wanted), (name, op, count)
                    block = group.reduce_scatter(inputs[rank], np.empty(count, name), op)
                    assert np.array_equal(block, wanted[rank * count : (rank + 1) * count]), (name, op, count)
                    cases += 4
            every = group.allgather(inputs[rank], np.empty((size, size * count), name))
            assert np.array_equal(every, inputs), name
            assert np.array_equal(group.broadcast(inputs[rank].copy(), size - 1), inputs[-1]), name
            cases += 2
        halves = np.full(5, 0x3F80, np.uint16)  # bfloat16's one
        assert (group.allreduce(halves, dtype="bfloat16") == {2: 0x4000, 4: 0x4080}[size]).all()
        plain = array.array("i", [rank])
        assert group.allreduce(plain)[0] == sum(range(size))
        several = [np.full(7, float(rank + turn)) for turn in range(20)]
        requests = [group.iallreduce(vector) for vector in several]
        for turn, request in reversed(list(enumerate(requests))):
            assert request.wait(30)[0] == sum(range(size)) + size * turn and request.done()
        group.barrier()
    return cases


def exact_sums(argument):
    """What a plain sum loses, complex numbers among it; and a way to take sums that there is not."""
    huge = 2.0**127
    terms = np.array([(huge, 1e-3), (1.0, 1e-3), (-huge, 1e-3)][int(os.environ["TRIB_RANK"])], np.float32)
    with tributary.Context() as context:
        group = context.group()
        group.set_sums("exact")
        total = group.allreduce(terms.copy())
        both = group.iallreduce(terms.view(np.complex64).copy()).wait()
        group.set_sums("plain")
        largest = group.allreduce(terms.copy(), "max")
        try:
            group.set_sums("about")
            told = ""
        except tributary.InvalidError as error:
            told = str(error)
        group.free()
    return [total.tolist(), [both[0].real.item(), both[0].imag.item()], largest.tolist(), told]


def who(argument):
    """Which rank this is, as the launcher says, and a sum over all."""
    with tributary.Context() as context:
        total = int(context.group().allreduce(np.array([context.rank]))[0])
        return {"rank": context.rank, "size": context.size, "sum": total}


def waiting(argument):
    """Rank 1 is late. The others' limit passes; a thread of theirs runs meanwhile; a request that
    they drop goes on without its caller."""
    context = tributary.Context()
    group, exact = context.group(), context.group(tag=1)
    exact.set_sums("exact")
    if group.rank == 1:
        await_note(0)
        group.allreduce(np.ones(4))
        group.allreduce(np.ones(4))
        exact.allreduce(np.ones(5000, np.float32))
        told = None
    else:
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        vector = np.ones(4)
        request = group.iallreduce(vector)
        try:
            request.wait(0.5)
            raise AssertionError("nobody was late")
        except TimeoutError as failure:
            told = str(failure)
        stop.set()
        thread.join()
        many = exact.iallreduce(np.ones(5000, np.float32))
        try:
            many.wait(0.5)
            raise AssertionError("nobody was late for an exact sum")
        except TimeoutError as failure:
            exactly = str(failure)
        group.iallreduce(np.ones(4))
        gc.collect()
        note(0)
        assert request.wait(30) is vector and vector[0] == group.size
        assert (many.wait(30) == group.size).all()
        told = {"words": told, "exactly": exactly, "counted": counted[0]}
    group.barrier()
    context.progress()
    orphans = len(context._orphans)
    context.close()
    return {"told": told, "orphans": orphans, "closed": repr(context)}


def interrupted(argument):
    """Ctrl-C ends a wait of rank 0 for rank 1, which comes when that has happened."""
    context = tributary.Context()
    group = context.group()
    if group.rank != 0:
        await_note(0)
        group.barrier()
        return None
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        group.barrier()
        told = "nothing"
    except KeyboardInterrupt:
        told = "interrupted"
    note(0)
    context.close()
    return told


def forked(argument):
    """A child of a rank can do nothing with the job, and no harm to it."""
    context = tributary.Context()
    group = context.group()
    if group.rank == 0:
        child = os.fork()
        if child == 0:
            try:
                group.allreduce(np.ones(3))
                code = 1
            except tributary.ForkedError:
                code = 0
            context.close = None
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    else:
        code = 0
    total = group.allreduce(np.ones(3))[0]
    context.close()
    return {"code": code, "sum": total}


def dying(argument):
    """Rank 1 leaves without a word; the others are told who it was."""
    context = tributary.Context()
    group = context.group()
    group.barrier()
    if group.rank == 1:
        # The launcher is to think that all is well with it.
        return "left"
    try:
        group.allreduce(np.ones(3))
        return None
    except tributary.PeerError as failure:
        return str(failure)
