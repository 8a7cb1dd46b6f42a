"""The ranks of test_device.py: collectives over memory of a device that a stand-in driver makes.
Streams of that driver are late, and the host cannot touch a device's memory."""

import ctypes as c
import os
import signal
import time

import native
import numpy as np
from rank import await_note, note
from sums_worker import setting

cuda = None
#: The copies of these ranks themselves, by the stand-in's name for them.
own_copies = {"cuMemcpyHtoD": 0, "cuMemcpyDtoH": 0, "copy pageable": 0}
P, U64, SZ = c.c_void_p, c.c_uint64, c.c_size_t


def open_driver():
    """The driver as a program uses it, with a context on this thread."""
    global cuda
    cuda = c.CDLL("libcuda.so.1")
    cuda.standInTrace.restype = c.c_char_p
    cuda.standInCount.restype = c.c_long
    cuda.cuMemcpyAsync.argtypes = [U64, U64, SZ, P]
    cuda.cuMemcpyHtoD_v2.argtypes, cuda.cuMemcpyDtoH_v2.argtypes = [U64, P, SZ], [P, U64, SZ]
    cuda.cuMemAlloc_v2.argtypes, cuda.cuMemFree_v2.argtypes = [P, SZ], [U64]
    cuda.cuStreamDestroy_v2.argtypes = cuda.cuEventSynchronize.argtypes = [P]
    cuda.standInSleep.argtypes = [P, c.c_uint]
    cuda.cuStreamBeginCapture_v2.argtypes, cuda.cuStreamEndCapture.argtypes = [P, c.c_int], [P, P]
    cuda.cuEventRecord.argtypes, cuda.cuEventQuery.argtypes = [P, P], [P]
    context = P()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))


def ok(code):
    assert code == 0, f"the driver returned {code}"


class Array:
    """An array in memory of the device."""

    def __init__(self, like):
        self.like = np.ascontiguousarray(like)
        address = U64()
        ok(cuda.cuMemAlloc_v2(c.byref(address), max(self.like.nbytes, 1)))
        self.address = address.value
        self.write(self.like)

    def write(self, array):
        own_copies["cuMemcpyHtoD"] += 1
        ok(cuda.cuMemcpyHtoD_v2(self.address, array.ctypes.data, array.nbytes))
        # Streams that do not wait for the default one would find it on its way.
        await_stream(None)

    def write_in(self, stream, array):
        """As the last of what is queued there, by a copy that comes late."""
        own_copies["copy pageable"] += 1
        ok(cuda.cuMemcpyAsync(self.address, array.ctypes.data, array.nbytes, stream))

    def read(self):
        own_copies["cuMemcpyDtoH"] += 1
        array = np.empty_like(self.like)
        ok(cuda.cuMemcpyDtoH_v2(array.ctypes.data, self.address, array.nbytes))
        return array

    def read_in(self, stream):
        """What work finds that is queued now."""
        own_copies["copy pageable"] += 1
        array = np.empty_like(self.like)
        ok(cuda.cuMemcpyAsync(array.ctypes.data, self.address, array.nbytes, stream))
        await_stream(stream)
        return array


def recorded(stream):
    """An event behind what is queued there now."""
    event = P()
    ok(cuda.cuEventCreate(c.byref(event), 0))
    ok(cuda.cuEventRecord(event, stream))
    return event


def await_stream(stream):
    """Waits for what is queued there now."""
    ok(cuda.cuEventSynchronize(recorded(stream)))


def new_stream():
    stream = P()
    ok(cuda.cuStreamCreate(c.byref(stream), 1))
    return stream


def post(group, call, *arguments):
    """Begins an operation in the order of a stream, which is the last argument."""
    request = P()
    function = getattr(native.lib, f"trib_{call}_stream_nb")
    *others, stream = arguments
    given = [P(each.address) if isinstance(each, Array) else each for each in others]
    native.check(function(group.handle, *given, stream, c.byref(request)))
    return native.Request(request, arguments)


def wait_stream(request, stream, timeout_ms=60000):
    native.check(native.lib.trib_wait_stream(request.handle, stream, timeout_ms))


def values(rank, count, dtype="float32"):
    """Numbers whose sum depends on the order of summands."""
    numbers = np.random.default_rng(rank).standard_normal(count) * 10.0 ** np.random.default_rng(rank + 100).integers(-3, 4, count)
    return numbers.astype(dtype)


def same(ours, theirs):
    assert ours.tobytes() == theirs.tobytes(), f"{np.count_nonzero(ours != theirs)} of {theirs.size} elements differ"


F32, SUM = native.DTYPES["float32"][0], native.OPS["sum"]
LATE_US = 5_000


def calls(group, count):
    """Every collective, in place and not, with a root where it has one: (name, what a rank gives, the
    shape of the result, whether this rank gets one, in place, arguments behind the buffers)."""
    rank, size, last = group.rank, group.size, group.size - 1
    mine, whole = values(rank, count), values(rank, count * size)
    for in_place in (False, True):
        yield "allreduce", mine, count, True, in_place, (count, F32, SUM)
        yield "reduce", mine, count, rank == last, in_place and rank == last, (count, F32, SUM, last)
        yield "reduce_scatter", whole, count, True, in_place, (count, F32, SUM)
        yield "allgather", mine, count * size, True, in_place, (4 * count,)
    yield "bcast", mine, count, rank != last, True, (4 * count, last)


def over_host(group, name, given, length, in_place, arguments):
    """The same call over memory of the host."""
    out = np.zeros(max(length, given.size), "float32")
    if in_place:
        at = group.rank * given.size if name == "allgather" else 0
        out[at : at + given.size] = given
    source = native.IN_PLACE if in_place else given.ctypes.data_as(P)
    buffers = (out.ctypes.data_as(P),) if name == "bcast" else (source, out.ctypes.data_as(P))
    group.post(name, *buffers, *arguments, keep=(given, out)).wait()
    return out[:length]


def over_device(group, name, given, length, in_place, arguments, stream):
    """The result as work finds it that is queued behind the operation, whose input is late."""
    out, source = Array(np.zeros(max(length, given.size), "float32")), Array(np.full(given.size, 77, "float32"))
    cuda.standInSleep(stream, LATE_US)
    at = group.rank * given.nbytes if name == "allgather" else 0
    target = source
    if in_place:
        target = Array.__new__(Array)
        target.address, target.like = out.address + at, given
    target.write_in(stream, given)
    buffers = (out,) if name == "bcast" else (native.IN_PLACE if in_place else source, out)
    request = post(group, name, *buffers, *arguments, stream)
    wait_stream(request, stream)
    found = out.read_in(stream)[:length]
    request.wait(60000)
    same(out.read()[:length], found)
    return found


def collectives(argument):
    """Each over memory of the host and of the device, which give the same bits. Each has a group of its
    own, because what is drawn for quantised sums follows from how many the group had before."""
    open_driver()
    context = native.Context()
    group, other, stream = context.group(), context.group(tag=1), new_stream()
    for each in (group, other):
        setting(each, argument.get("sums", "plain"))
    compared = 0
    for count in argument["counts"]:
        for name, given, length, gets, in_place, arguments in calls(group, count):
            theirs = over_host(other, name, given, length, in_place, arguments)
            ours = over_device(group, name, given, length, in_place, arguments, stream)
            if gets:
                same(ours, theirs)
            compared += gets
    # Nothing at all is a collective, too.
    empty = post(group, "allreduce", None, None, 0, F32, SUM, stream)
    wait_stream(empty, stream)
    empty.free()
    group.free()
    other.free()
    context.finalize()
    told = {name: cuda.standInCount(name.encode()) - own for name, own in own_copies.items()}
    for name in ("cuCtxSynchronize", "cuStreamSynchronize", "cuMemHostAlloc", "cuMemFreeHost", "copy device-host",
                 "cuLaunchKernel", "cuMemFree", "cuIpcOpenMemHandle", "cuIpcCloseMemHandle"):
        told[name] = cuda.standInCount(name.encode())
    return {"compared": compared, "counts": told}


def wide_sums(argument):
    """Sums of numbers of very different sizes by calls that are cut, in place and not, with the bits of
    the same over memory of the host."""
    open_driver()
    context = native.Context()
    group, other, stream, compared = context.group(), context.group(tag=1), new_stream(), 0
    draw = np.random.default_rng(group.rank)
    for sums in argument["sums"]:
        for each in (group, other):
            setting(each, sums)
        for count in argument["counts"]:
            for name, blocks in (("allreduce", 1), ("reduce_scatter", group.size)):
                given = draw.standard_normal(count * blocks) * 10.0 ** draw.integers(-18, 19, count * blocks)
                for in_place in (False, True):
                    call = (name, given.astype("float32"), count, in_place, (count, F32, SUM))
                    theirs = over_host(other, *call)
                    same(over_device(group, *call, stream), theirs)
                    compared += 1
    return compared


def back_to_back(argument):
    """Operations of every kind one after the other, of which none is waited for: each buffer is used
    by chunks of other shapes while results of earlier ones leave it."""
    open_driver()
    context = native.Context()
    group, stream, compared = context.group(), new_stream(), 0
    for _ in range(argument["turns"]):
        begun = []
        for count in argument["counts"]:
            every = list(calls(group, count))
            for name, given, length, gets, in_place, arguments in every[:4] + every[-1:]:
                theirs = over_host(group, name, given, length, in_place, arguments)
                source, out = Array(given), Array(np.zeros(max(length, given.size), "float32"))
                begun.append((name, source, out, arguments, theirs, gets))
        requests = []
        for name, source, out, arguments, _, _ in begun:
            buffers = (source,) if name == "bcast" else (source, out)
            requests.append(post(group, name, *buffers, *arguments, stream))
        for request, (name, source, out, _, theirs, gets) in zip(requests, begun):
            request.wait(60000)
            if gets:
                same((source if name == "bcast" else out).read()[: theirs.size], theirs)
            compared += gets
    return compared


def combined(argument):
    """Long sums of several types, of which none is waited for before the next, in place and not, with
    the bits of the same over memory of the host. Returns what the driver was asked for."""
    open_driver()
    context = native.Context()
    group, other, stream, prepared, posted = context.group(), context.group(tag=1), new_stream(), [], []
    for turn, (dtype, op, count) in enumerate(argument["operations"]):
        given = values(group.rank + turn, count, {"bfloat16": "float32"}.get(dtype, dtype))
        if dtype == "bfloat16":
            given = (given.view("uint32") >> 16).astype("uint16")
        expected = np.empty_like(given)
        other.allreduce_blocking(given, expected, dtype, op)
        prepared.append((given, expected, Array(np.zeros_like(given)), Array(np.zeros_like(given))))
    arrays = cuda.standInCount(b"cuMemAlloc")
    for turn, (dtype, op, count) in enumerate(argument["operations"]):
        given, expected, source, out = prepared[turn]
        cuda.standInSleep(stream, LATE_US)
        source.write_in(stream, given)
        buffers = (native.IN_PLACE, source) if turn % 2 else (source, out)
        request = post(group, "allreduce", *buffers, count, native.DTYPES[dtype][0], native.OPS[op], stream)
        posted.append((request, buffers[1], expected, given))
    for request, found, expected, _ in posted:
        request.wait(60000)
        same(found.read(), expected)
    # Who frees a group waits for the others of its host for a second, and not longer.
    group.barrier().wait()
    group.free()
    told = {name: cuda.standInCount(name.encode()) for name in (
        "cuLaunchKernel", "copy device-host", "cuMemAlloc", "cuMemFree", "cuIpcOpenMemHandle", "cuIpcCloseMemHandle",
        "cuCtxSynchronize")}
    told["cuMemAlloc"] -= arrays
    told["operations_combined"] = context.counters()["operations_combined"]
    context.finalize()
    return told


def pipeline(argument):
    """The order in which the copies of one long allreduce were done."""
    open_driver()
    context = native.Context()
    group, stream, count = context.group(), new_stream(), argument["count"]
    vector = Array(values(group.rank, count))
    group.barrier().wait()
    request = post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
    request.wait(60000)
    same(vector.read(), over_host(group, "allreduce", values(group.rank, count), count, True, (count, F32, SUM)))
    return cuda.standInTrace().decode()


def order(argument):
    """Operations over memory of the host that are begun while chunks are still to be posted come
    behind them, on whichever rank the stream is late; two groups take each other's turns."""
    open_driver()
    context = native.Context()
    group, other, stream, count = context.group(), context.group(tag=1), new_stream(), argument["count"]
    for turn in range(argument["turns"]):
        mine = values(group.rank + turn, count)
        expected = over_host(group, "allreduce", mine, count, False, (count, F32, SUM))
        if turn % group.size == group.rank:
            cuda.standInSleep(stream, 10 * LATE_US)
        vector = Array(mine)
        request = post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
        # In place of an operation on the group's own thread, a blocking one, and one more.
        host = np.arange(1000, dtype="int64") + turn
        begun = group.allreduce(host, np.empty_like(host), "int64", "sum")
        blocking = np.empty_like(host)
        group.allreduce_blocking(host, blocking, "int64", "sum")
        begun.wait(60000)
        assert np.array_equal(blocking, host * group.size) and np.array_equal(begun.keep[1], blocking)
        wait_stream(request, stream)
        same(vector.read_in(stream), expected)
        request.wait(60000)

        first, second = (group, other) if group.rank % 2 else (other, group)
        vectors = [Array(mine), Array(mine)]
        requests = [
            post(each, "allreduce", native.IN_PLACE, vector, count, F32, SUM, new_stream())
            for each, vector in zip((first, second), vectors)
        ]
        for request, vector in zip(requests, vectors):
            request.wait(60000)
            same(vector.read(), expected)
    return context.counters()


def apart(argument):
    """Two operations in the order of two streams, of which the second one's is late. Returns what the
    driver says about that stream when the first operation is over."""
    open_driver()
    context = native.Context()
    group, streams, count = context.group(), [new_stream(), new_stream()], argument["count"]
    mine = values(group.rank, count)
    expected = over_host(group, "allreduce", mine, count, False, (count, F32, SUM))
    vectors = [Array(mine), Array(mine)]
    group.barrier().wait()
    requests = []
    for vector, stream, late_us in zip(vectors, streams, (20 * LATE_US, 1000 * LATE_US)):
        cuda.standInSleep(stream, late_us)
        slept = recorded(stream)
        requests.append(post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream))
    requests[0].wait(60000)
    told = cuda.cuEventQuery(slept)
    same(vectors[0].read(), expected)
    requests[1].wait(60000)
    same(vectors[1].read(), expected)
    return told


def beside_a_capture(argument):
    """What a program does with operations while it captures a graph on another stream. Returns for
    each what it was told, and how the capture has ended."""
    open_driver()
    context = native.Context()
    group, stream, other, count = context.group(), new_stream(), new_stream(), argument["count"]
    mine, told = values(group.rank, count), []
    expected = over_host(group, "allreduce", mine, count, False, (count, F32, SUM))

    def until_done(request):
        while not request.test():
            time.sleep(0.001)

    def captured(step, *arguments):
        status, graph = 0, P()
        ok(cuda.cuStreamBeginCapture_v2(other, 0))
        try:
            step(*arguments)
        except native.Failed as failed:
            status = failed.status
        told.append([status, cuda.cuStreamEndCapture(other, c.byref(graph))])

    for step in (until_done, lambda request: request.wait(60000), lambda request: request.wait()):
        vector = Array(mine)
        request = post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
        captured(step, request)
        if request.handle:
            request.wait()
        same(vector.read(), expected)
    captured(group.free)
    context.finalize()
    return {"told": told, "pinned": cuda.standInCount(b"cuMemHostAlloc"), "freed": cuda.standInCount(b"cuMemFreeHost")}


def failing(argument):
    """One rank's driver fails; every rank tells with what its operation ends."""
    open_driver()
    context = native.Context()
    group, stream, count = context.group(), new_stream(), argument["count"]
    vector = Array(values(group.rank, count))
    group.barrier().wait()
    if group.rank == argument["rank"]:
        call, number, code = argument["fail"]
        cuda.standInSet(b"STAND_IN_FAIL", f"{call}:{number + cuda.standInCount(call.encode())}:{code}".encode())
    try:
        request = post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
        request.wait(60000)
    except native.Failed as failed:
        told = {"status": failed.status, "text": failed.text}
    else:
        told = {"status": 0, "text": ""}
    if group.rank == argument["rank"] and told["status"] and not argument["begins"]:
        # The others wait for what this rank has not begun.
        group.free()
    else:
        told["group"], _ = group.status()
        group.free()
    context.finalize()
    return told


def disagreeing(argument):
    """After a long sum that all take, one rank calls something else; what each is told."""
    open_driver()
    context = native.Context()
    group, stream = context.group(), new_stream()
    vector = Array(values(group.rank, 200_000))
    post(group, "allreduce", native.IN_PLACE, vector, 200_000, F32, SUM, stream).wait(60000)
    dtype, op, count = argument["odd"] if group.rank == argument["rank"] else argument["even"]
    request = post(group, "allreduce", native.IN_PLACE, vector, count, native.DTYPES[dtype][0], native.OPS[op], stream)
    try:
        request.wait(60000)
    except native.Failed as failed:
        return {"status": failed.status, "text": failed.text}
    return {"status": 0, "text": ""}


def leaving(argument):
    """After a long sum that all take, one rank leaves the group, once the others have begun another;
    what each is told, and how long after."""
    open_driver()
    context = native.Context()
    group, stream, count = context.group(), new_stream(), 200_000
    vector = Array(values(group.rank, count))
    post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream).wait(60000)
    if group.rank == argument["rank"]:
        for other in range(group.size):
            if other != group.rank:
                await_note(other)
        group.free()
        return None
    request = post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
    note(1)
    began = time.monotonic()
    try:
        request.wait(60000)
    except native.Failed as failed:
        return {"status": failed.status, "took": time.monotonic() - began}
    return {"status": 0, "took": time.monotonic() - began}


def finalized(argument):
    """Rank 1 leaves the job while the copy of a result waits for its stream. Whether the operation was
    over before that copy, and how it ended."""
    open_driver()
    context = native.Context()
    group, stream, count = context.group(), new_stream(), 50_000
    given = values(0, count)
    vector = Array(given if group.rank == 0 else np.zeros_like(given))
    group.barrier().wait()
    copies = cuda.standInCount(b"copy host-device")
    if group.rank == 1:
        cuda.standInSleep(stream, 3_000_000)
    request = post(group, "bcast", vector, 4 * count, 0, stream)
    if group.rank == 0:
        request.wait(60000)
        note(1)
        await_note(1)
        return None
    await_note(0)
    # The result is here, and its copy is queued behind what the stream still does.
    wait_stream(request, new_stream())
    context.finalize()
    early = request.test() and cuda.standInCount(b"copy host-device") == copies
    deadline = time.monotonic() + 30
    while not request.test():
        assert time.monotonic() < deadline, "it is never over"
        time.sleep(0.01)
    copied = cuda.standInCount(b"copy host-device") > copies
    request.wait(0)
    same(vector.read(), given)
    note(1)
    return {"early": early, "copied": copied}


def freed_in_a_callback(argument):
    """Two ranks free a group in which they have combined, in the callback of a call that waits for the
    third; what has been given back then."""
    open_driver()
    to_call = []
    context = native.Context(progress=lambda: to_call and to_call.pop()())
    world = context.group()
    if world.rank == 2:
        await_note(0)
        await_note(1)
        world.barrier().wait()
        return None
    group, stream, count = context.group([0, 1]), new_stream(), 200_000
    vector = Array(values(group.rank, count))
    post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream).wait(60000)
    told = {"operations_combined": context.counters()["operations_combined"]}

    def free():
        group.free()
        told["cuMemFree"] = cuda.standInCount(b"cuMemFree")
        note(1)

    # Who frees a group waits for the others of its host for a second, and not longer.
    group.barrier().wait()
    to_call.append(free)
    world.barrier().wait()
    return told


def refused(argument):
    """What cannot be: a stream that is captured, no memory of a device, no driver."""
    open_driver()
    context = native.Context()
    group, stream, told = context.group(), new_stream(), []
    vector, host, graph = Array(values(group.rank, 1000)), np.zeros(1000, "float32"), P()

    def fails(*buffers):
        try:
            post(group, "allreduce", *buffers, 1000, F32, SUM, stream)
        except native.Failed as failed:
            told.append([failed.status, failed.text])

    ok(cuda.cuStreamBeginCapture_v2(stream, 0))
    fails(native.IN_PLACE, vector)
    ok(cuda.cuStreamEndCapture(stream, c.byref(graph)))
    fails(native.IN_PLACE, host.ctypes.data_as(P))
    fails(None, vector)
    # The group works on, and a buffer of the host may stand beside one of the device.
    request = post(group, "allreduce", host.ctypes.data_as(P), vector, 1000, F32, SUM, stream)
    request.wait(60000)
    assert not vector.read().any()
    return told


def late(argument):
    """A limit passes because a rank is late, and the operation goes on; a child after fork does no
    harm to it."""
    open_driver()
    context = native.Context()
    group, stream, count = context.group(), new_stream(), argument["count"]
    mine = values(group.rank, count)
    expected = over_host(group, "allreduce", mine, count, False, (count, F32, SUM))
    vector, told = Array(mine), []
    if group.rank == 0:
        await_note(1)
        await_note(2)
    request = post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
    if group.rank > 0:
        for wait in (wait_stream, lambda request, stream, ms: native.check(native.lib.trib_wait(request.handle, ms))):
            try:
                wait(request, stream, 50)
            except native.Failed as failed:
                told.append([failed.status, failed.text])
        child = os.fork()
        if child == 0:
            statuses = []
            for call in (request.test, lambda: wait_stream(request, stream), lambda: request.wait(1000)):
                try:
                    call()
                except native.Failed as failed:
                    statuses.append(failed.status)
            native.lib.trib_request_free(request.handle)
            native.lib.trib_group_free(group.handle)
            os._exit(statuses != [-12, -12, -12])
        told.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        note(1)
    request.wait(60000)
    same(vector.read(), expected)
    group.free()
    context.finalize()
    return told


def without_driver(argument):
    """What a call tells where there is no driver, or where it is switched off."""
    context = native.Context()
    group, vector = context.group(), np.zeros(10, "float32")
    try:
        post(group, "allreduce", native.IN_PLACE, vector.ctypes.data_as(P), 10, F32, SUM, None)
    except native.Failed as failed:
        return [failed.status, failed.text]
    return [0, ""]


def dying(argument):
    """One rank is killed in the middle of an operation; the others tell how it ends for them."""
    open_driver()
    context = native.Context()
    group, stream, count = context.group(), new_stream(), argument["count"]
    vector = Array(values(group.rank, count))
    group.barrier().wait()
    if group.rank == argument["rank"]:
        # Its copies are late, so that it dies with some chunks posted and others not.
        cuda.standInSet(b"STAND_IN_DELAY_US", b"20000")
        post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
        while cuda.standInCount(b"copy host-device") < 1:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)
    # The launcher ends all ranks when one has died; these tell first what they have met.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    request = post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
    try:
        wait_stream(request, stream)
        request.wait(60000)
    except native.Failed as failed:
        told = {"status": failed.status, "text": failed.text}
    else:
        told = {"status": 0, "text": ""}
    try:
        post(group, "allreduce", native.IN_PLACE, vector, count, F32, SUM, stream)
        told["next"] = 0
    except native.Failed as failed:
        told["next"] = failed.status
    # Nothing touches the vector any more: a copy under way would end this process.
    ok(cuda.cuMemFree_v2(vector.address))
    group.free()
    return told
