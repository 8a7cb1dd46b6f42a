"""The ranks of test_nccl.py: each plays NCCL's part against the network plugin."""

import ctypes as c
import functools
import os
import pathlib
import random
import signal
import time

import nccl_plugin
import numpy as np
from nccl_plugin import GPU_MEMORY, HANDLE_BYTES, Failed, Plugin, until
from rank import note

RANK, SIZE = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
#: ncclDataType_t and ncclRedOp_t; bfloat16 is compared as whole numbers in its upper half.
TYPES = {"int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8}
BFLOAT16 = 9
OPS = {0: np.add, 1: np.multiply, 2: np.maximum, 3: np.minimum}
AT_ONCE = 32


class Exchange:
    """What NCCL's bootstrap does: brings handles to all ranks."""

    def __init__(self, folder):
        self.folder, self.turns = pathlib.Path(folder), 0

    def all(self, mine):
        self.turns += 1
        (self.folder / f"{self.turns}.{RANK}.new").write_bytes(bytes(mine))
        (self.folder / f"{self.turns}.{RANK}.new").rename(self.folder / f"{self.turns}.{RANK}")
        paths = [self.folder / f"{self.turns}.{rank}" for rank in range(SIZE)]
        until(lambda: all(path.exists() for path in paths), "an exchange")
        return [c.create_string_buffer(path.read_bytes(), HANDLE_BYTES) for path in paths]


def ring(plugin, exchange):
    """A connection to the next rank and one from the rank before."""
    handle, listener = plugin.listen(plugin.net)
    assert plugin.accept_once(listener) is None, "nobody has connected yet"
    to = exchange.all(handle.raw)[(RANK + 1) % SIZE]
    ends = [None, None]

    def look():
        ends[0] = ends[0] or plugin.connect_once(to)
        ends[1] = ends[1] or plugin.accept_once(listener)
        return all(ends)

    until(look, "a connection")
    plugin.net("closeListen", (c.c_void_p, listener))
    return ends


def finish(plugin, table, requests, expected):
    """Tests in an order of its own until all are done, each with its bytes."""
    draw, left = random.Random(RANK), dict(enumerate(requests))

    def look():
        for index in draw.sample(sorted(left), len(left)):
            done, size = plugin.test(table, left[index])
            if done:
                assert size == expected[index], f"request {index} moved {size} bytes, not {expected[index]}"
                del left[index]
        return not left

    until(look, "requests")


def message(rank, number, size):
    return np.random.default_rng([rank, number]).integers(0, 256, size, dtype=np.uint8)


def messages(argument):
    """Rings of messages of many sizes, several at once, the receiver's buffers longer than needed."""
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    assert plugin.devices(plugin.net) >= 1
    out, into = ring(plugin, exchange)
    before, moved = (RANK - 1) % SIZE, 0
    for sizes in ([0], [1], [4 << 20], [0, 1, 0, 7, 65_536, 3, 1 << 20, 0], [100 + n for n in range(AT_ONCE)]):
        sent = [message(RANK, number, size) for number, size in enumerate(sizes)]
        got = [np.full(size + 64, 0xA5, np.uint8) for size in sizes]
        registrations = [plugin.register(plugin.net, into, buffer) for buffer in got]
        receives = [plugin.receive(into, buffer) for buffer in got]
        sends = [plugin.send(out, buffer) for buffer in sent]
        assert all(receives) and all(sends)
        if len(sizes) == AT_ONCE:
            assert plugin.receive(into, got[0]) is None, "more requests than there may be have to wait"
        finish(plugin, plugin.net, receives + sends, sizes + sizes)
        for number, size in enumerate(sizes):
            assert (got[number][:size] == message(before, number, size)).all(), f"message {number} of {size} bytes"
            assert (got[number][size:] == 0xA5).all(), "bytes behind a message"
            moved += size
        for registration in registrations:
            plugin.net("deregMr", (c.c_void_p, into), (c.c_void_p, registration))
    exchange.all(b"")
    plugin.net("closeSend", (c.c_void_p, out))
    plugin.net("closeRecv", (c.c_void_p, into))
    plugin.finalize()
    return {"moved": moved, "log": plugin.lines}


def code_of(call, *arguments):
    """The code with which a call fails, and the line that says why."""
    try:
        call(*arguments)
    except Failed as failed:
        return [failed.code, " ".join(failed.lines)]
    return [0, ""]


def broken_messages(argument):
    """What the other end, or NCCL, does wrong."""
    # Python ignores this signal, but a program in C ends by it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    garbage = c.create_string_buffer(random.Random(5).randbytes(HANDLE_BYTES), HANDLE_BYTES)
    small = np.zeros(8, np.uint8)
    found = {
        "garbage": code_of(plugin.connect_once, garbage),
        "no_device": code_of(plugin.listen, plugin.net, 99),
    }
    out, into = ring(plugin, exchange)
    found["gpu"] = code_of(plugin.register, plugin.net, out, small, GPU_MEMORY)
    found["two_buffers"] = code_of(plugin.receive, into, small, 2)
    # The next rank has no room for this.
    long = plugin.send(out, np.zeros(9, np.uint8))
    short = plugin.receive(into, small)
    until(lambda: plugin.test(plugin.net, long)[0], "a message")

    def fails():
        code, line = code_of(plugin.test, plugin.net, short)
        return [code, line] if code else None

    found["too_long"] = until(fails, "a failure")
    found["afterwards"] = code_of(plugin.receive, into, small)
    exchange.all(b"")
    # One rank goes while the other waits for a message.
    out, into = ring(plugin, exchange)
    if RANK == 0:
        plugin.net("closeSend", (c.c_void_p, out))
        plugin.net("closeRecv", (c.c_void_p, into))
        exchange.all(b"")
        return found
    awaited = plugin.receive(into, small)

    def gone():
        code, line = code_of(plugin.test, plugin.net, awaited)
        return [code, line] if code else None

    found["gone"] = until(gone, "a failure")
    exchange.all(b"")

    def nobody_receives():
        request = plugin.send(out, small)
        until(lambda: plugin.test(plugin.net, request)[0], "a message")

    def refused():
        code, line = code_of(nobody_receives)
        return [code, line] if code else None

    found["cut_off"] = until(refused, "a failure")
    return found


def collnet(plugin, exchange):
    """A CollNet communicator of all ranks."""
    handle, listener = plugin.listen(plugin.collnet)
    comm = plugin.join(exchange.all(handle.raw), SIZE, RANK, listener)
    plugin.collnet("closeListen", (c.c_void_p, listener))
    return comm


def vectors(dtype, op, count, turn):
    """Every rank's vector, small whole numbers, so that sums are exact in any order."""
    kind = {BFLOAT16: np.dtype("float32")}.get(dtype) or np.dtype(list(TYPES)[dtype])
    low, high = (1, 3) if op == 1 else (0, 20)
    draws = [np.random.default_rng([rank, count, turn]).integers(low, high, count) for rank in range(SIZE)]
    return [draw.astype(kind) for draw in draws]


def stored(dtype, vector):
    """As it lies in memory."""
    if dtype != BFLOAT16:
        return vector
    return (np.ascontiguousarray(vector).view(np.uint32) >> 16).astype(np.uint16)


class Operation:
    """An allreduce that is under way, and its result by hand."""

    def __init__(self, plugin, comm, dtype, op, count, turn, in_place):
        given = vectors(dtype, op, count, turn)
        whole = given[0]
        for vector in given[1:]:
            whole = OPS[op](whole, vector)
        self.what = f"type {dtype}, operator {op}, {count} elements"
        self.expected, self.source = stored(dtype, whole), stored(dtype, given[RANK])
        self.target = self.source if in_place else np.zeros_like(self.source)
        self.request = until(
            lambda: plugin.allreduce(comm, self.source, self.target, count, dtype, op), "a request"
        )

    def check(self):
        assert (self.target == self.expected).all(), f"{self.what} is wrong"
        return self.target.nbytes


def allreduces(argument):
    """Every type and operator, alone; then many sizes at once, asked for in any order."""
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    assert plugin.devices(plugin.collnet) == 1
    comm = collnet(plugin, exchange)
    done = 0

    def run(cases):
        # NCCL's proxies post in the same order everywhere.
        begun = [Operation(plugin, comm, *case) for case in cases]
        finish(plugin, plugin.collnet, [one.request for one in begun], [one.target.nbytes for one in begun])
        for one in begun:
            one.check()
        return len(begun)

    registration = plugin.register(plugin.collnet, comm, np.zeros(8))
    for dtype in [*TYPES.values(), BFLOAT16]:
        for op in OPS:
            assert plugin.supports(dtype, op) == 1
            done += run([(dtype, op, 1 + 77 * dtype, 0, False)])
    for dtype, op in ((10, 0), (11, 3), (7, 4), (7, 5), (-1, 0)):
        assert plugin.supports(dtype, op) == 0, f"type {dtype}, operator {op}"
    sizes = [1, 131_072, 13, 1000, 65_536, 500_001, 8, 32_768]
    done += run([(7, 0, count, turn, turn % 2 == 1) for turn, count in enumerate(sizes * 4)])
    plugin.collnet("deregMr", (c.c_void_p, comm), (c.c_void_p, registration))
    found = {
        "done": done,
        "gpu": code_of(plugin.register, plugin.collnet, comm, np.zeros(8), GPU_MEMORY),
        "fp8": code_of(plugin.allreduce, comm, np.zeros(8, np.uint8), np.zeros(8, np.uint8), 8, 10, 0),
    }
    other = collnet(plugin, exchange)
    plugin.collnet("closeColl", (c.c_void_p, comm))
    comm = other
    found["again"] = run([(7, 0, 1000, 1, False)])
    plugin.collnet("closeColl", (c.c_void_p, comm))
    plugin.finalize()
    found["log"] = plugin.lines
    return found


def sums(argument):
    """What the plugin says that it can do, and a sum whose digits are more than 8 bits have."""
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    comm = collnet(plugin, exchange)
    supported = [[plugin.supports(dtype, op) for op in OPS] for dtype in [*TYPES.values(), BFLOAT16]]
    source, target = np.arange(1000, dtype="float32"), np.zeros(1000, "float32")
    request = until(lambda: plugin.allreduce(comm, source, target, source.size, TYPES["float32"], 0), "a request")
    finish(plugin, plugin.collnet, [request], [target.nbytes])
    plugin.collnet("closeColl", (c.c_void_p, comm))
    return {"supported": supported, "is_right": bool((target == source * SIZE).all()), "log": plugin.lines}


def aborted(argument):
    """NCCL gives up on one rank while an operation is under way: its memory goes before the communicator.
    The last rank begins its part when the memory is gone, so that the operation cannot be over before."""
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    comm = collnet(plugin, exchange)
    source, target = np.ones(4 << 20, np.float32), np.zeros(4 << 20, np.float32)
    registration = plugin.register(plugin.collnet, comm, target)
    request = plugin.allreduce(comm, source, target, source.size, 7, 0) if RANK < SIZE - 1 else None
    exchange.all(b"")
    if RANK == 0:
        plugin.collnet("deregMr", (c.c_void_p, comm), (c.c_void_p, registration))
        # From here on the memory is NCCL's to free, so nothing may write to it.
        target[:] = 7
        exchange.all(b"")
        time.sleep(0.5)
        untouched = bool((target == 7).all())
        failure = code_of(plugin.allreduce, comm, source, target, source.size, 7, 0)
        plugin.collnet("closeColl", (c.c_void_p, comm))
        return {"untouched": untouched, "failure": failure}
    exchange.all(b"")

    def fails():
        # The last rank may hear of the end when it begins already.
        nonlocal request
        request = request or plugin.allreduce(comm, source, target, source.size, 7, 0)
        plugin.test(plugin.collnet, request)

    def failed():
        code, line = code_of(fails)
        return [code, line] if code else None

    failure = until(failed, "a failure")
    plugin.collnet("closeColl", (c.c_void_p, comm))
    return {"failure": failure}


def unregistered(argument):
    """What NCCL 2.20 to 2.22 do with CUDA graphs: they go on without a handle, and give none back."""
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    comm = collnet(plugin, exchange)
    source, target = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    failure = code_of(plugin.allreduce, comm, source, target, source.size, 7, 0, False)
    begin = functools.partial(plugin.allreduce, comm, source, target, source.size, 7, 0)
    request = begin() if RANK == 0 else None
    if RANK == 0:
        plugin.collnet("deregMr", (c.c_void_p, comm), (c.c_void_p, None))
    exchange.all(b"")
    request = request or begin()
    finish(plugin, plugin.collnet, [request], [target.nbytes])
    plugin.collnet("closeColl", (c.c_void_p, comm))
    return {"failure": failure, "is_right": bool((target == SIZE).all())}


def endless(argument):
    """Sums until the test says stop, and some after that, with which all ranks end together."""
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    comm = collnet(plugin, exchange)
    stop, done, after = pathlib.Path(argument["folder"]) / "stop", 0, 0

    def turn(seen):
        """One operation of numbers, and one that tells all ranks who has seen the stop."""
        flag = np.array([seen], np.int32)
        told = np.zeros(1, np.int32)
        operation = Operation(plugin, comm, 7, 0, 50_000 + done, done, False)
        requests = [operation.request, until(lambda: plugin.allreduce(comm, flag, told, 1, TYPES["int32"], 0), "a request")]
        finish(plugin, plugin.collnet, requests, [operation.target.nbytes, 4])
        operation.check()
        return int(told[0] == SIZE)

    while after < 50:
        after += turn(stop.exists())
        done += 1
        note(done)
    plugin.collnet("closeColl", (c.c_void_p, comm))
    return {"done": done, "after": after, "log": plugin.lines}


def without_fabric(argument):
    """No manager, or one that is not there."""
    plugin, exchange = Plugin(argument["library"], argument["version"]), Exchange(argument["folder"])
    found = {"devices": plugin.devices(plugin.collnet)}
    if found["devices"]:
        handle, listener = plugin.listen(plugin.collnet)
        found["join"] = code_of(plugin.join, exchange.all(handle.raw), SIZE, RANK, listener)
    # Messages go nevertheless.
    out, into = ring(plugin, exchange)
    got = np.zeros(5, np.uint8)
    requests = [plugin.receive(into, got), plugin.send(out, message(RANK, 0, 5))]
    finish(plugin, plugin.net, requests, [5, 5])
    assert (got == message((RANK - 1) % SIZE, 0, 5)).all()
    exchange.all(b"")
    found["log"] = plugin.lines
    return found


def described(argument):
    """What each version's table says about devices, and which entries are there."""
    found = {}
    for version in nccl_plugin.VERSIONS:
        plugin = Plugin(argument["library"], version)
        for name, table in (("net", plugin.net), ("collnet", plugin.collnet)):
            absent = sorted(entry for entry, pointer in table.pointers.items() if not pointer)
            told = plugin.properties(table, 0)
            fields = {field: getattr(told, field) for field, *_ in told._fields_}
            fields = {field: value.decode() if isinstance(value, bytes) else value for field, value in fields.items()}
            fields["devs"] = list(fields["devs"]) if "devs" in fields else None
            found[f"{name} {version}"] = {"name": table.name, "absent": absent, "properties": fields}
    return found
