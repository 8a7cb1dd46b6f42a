"""A stand-in for CUDA's driver under torch.

Torch knows nothing of that driver: its tensors are the host's, in memory that the stand-in takes for
a device's, and its streams and events are replaced by the stand-in's. Torch's own arithmetic is done
at once, so it waits first for what its stream holds.
"""

import contextlib
import ctypes as c
import threading
import types

import torch
from tributary.torch import process_group, staging, streams

cuda = c.CDLL("libcuda.so.1")
cuda.cuMemAlloc_v2.argtypes = [c.c_void_p, c.c_size_t]
cuda.cuEventRecord.argtypes = [c.c_void_p, c.c_void_p]
cuda.cuEventSynchronize.argtypes = cuda.cuEventQuery.argtypes = [c.c_void_p]
cuda.cuStreamWaitEvent.argtypes = [c.c_void_p, c.c_void_p, c.c_uint]
cuda.cuMemcpyAsync.argtypes = [c.c_uint64, c.c_uint64, c.c_size_t, c.c_void_p]
cuda.standInSleep.argtypes = [c.c_void_p, c.c_uint]
cuda.standInCount.restype = c.c_long
context = c.c_void_p()
regions = []
#: Those that are no memory of the backend's own.
of_program = []
#: Tensors that copies read, and those whose memory torch was told that a stream uses.
kept, recorded = [], []
thread = threading.local()
#: Whether the current stream is captured into a graph.
is_capturing = False


def ok(code):
    assert code == 0, f"the driver returned {code}"


class Event:
    """As `torch.cuda.Event`."""

    def __init__(self):
        self.handle = c.c_void_p()
        # The backend has a thread of its own for futures.
        ok(cuda.cuCtxSetCurrent(context))
        ok(cuda.cuEventCreate(c.byref(self.handle), 2))

    def record(self, stream):
        ok(cuda.cuEventRecord(self.handle, stream.cuda_stream))

    def query(self):
        return cuda.cuEventQuery(self.handle) == 0


class Stream:
    """As `torch.cuda.Stream`."""

    def __init__(self, _=None):
        handle = c.c_void_p()
        ok(cuda.cuStreamCreate(c.byref(handle), 1))
        self.cuda_stream = handle.value

    def wait_event(self, event):
        ok(cuda.cuStreamWaitEvent(self.cuda_stream, event.handle, 0))

    def wait(self):
        event = Event()
        event.record(self)
        ok(cuda.cuEventSynchronize(event.handle))


class ExternalStream(Stream):
    """As `torch.cuda.ExternalStream`."""

    def __init__(self, handle, device=None):
        self.cuda_stream = handle


def stream():
    """The one that is current on this thread."""
    ok(cuda.cuCtxSetCurrent(context))
    return getattr(thread, "stream", default)


@contextlib.contextmanager
def current(other):
    """As `torch.cuda.stream`. Torch's arithmetic comes after what the stream holds."""
    before, thread.stream = stream(), other
    other.wait()
    try:
        yield
    finally:
        thread.stream = before


def empty(like, count):
    """Memory of the device for so many elements."""
    address, nbytes = c.c_uint64(), max(like.element_size() * count, 1)
    ok(cuda.cuMemAlloc_v2(c.byref(address), nbytes))
    regions.append(range(address.value, address.value + nbytes))
    memory = (c.c_char * nbytes).from_address(address.value)
    return torch.frombuffer(memory, dtype=like.dtype, count=count).zero_()


def on_device(tensor):
    """A tensor in memory of the device, which gets its values late, in the order of the stream."""
    made = empty(tensor, tensor.numel()).view(tensor.shape)
    of_program.append(regions[-1])
    write_late(made, tensor)
    return made


def write_late(target, tensor):
    """Copies a tensor there in the order of the stream, late."""
    ok(cuda.standInSleep(stream().cuda_stream, 3000))
    ok(cuda.cuMemcpyAsync(target.data_ptr(), tensor.data_ptr(), tensor.nbytes, stream().cuda_stream))
    kept.append(tensor)


def sleep(seconds):
    """The stream goes on only after so long."""
    ok(cuda.standInSleep(stream().cuda_stream, 10**6 * seconds))


def read(tensor):
    """What work finds that is queued now."""
    stream().wait()
    return tensor.clone()


def is_on_device(tensor):
    return any(tensor.data_ptr() in region for region in regions)


@contextlib.contextmanager
def device_of(_):
    """Torch's arithmetic comes after what its stream holds."""
    stream().wait()
    yield


def replace():
    """Puts the stand-in's streams where torch has its own."""
    known = types.SimpleNamespace(
        current_stream=lambda _: stream(), Event=Event, device=device_of, Stream=Stream, ExternalStream=ExternalStream, stream=current,
        is_current_stream_capturing=lambda: is_capturing,
    )
    streams.torch = types.SimpleNamespace(cuda=known, Tensor=torch.Tensor)
    streams.devices = process_group.Work.get_future.__globals__["devices"] = lambda arrival: None
    staging.is_staged_by_library = process_group.is_staged_by_library = is_on_device
    torch.Tensor.record_stream = lambda tensor, _: recorded.append(tensor)
    # What is made beside a tensor of the device is there, too.
    on_host = {name: getattr(torch.Tensor, name) for name in ("new_empty", "new_zeros")}
    for name, function in on_host.items():
        setattr(torch.Tensor, name, lambda t, n, f=function: empty(t, n) if is_on_device(t) else f(t, n))


def set_up():
    """Makes the device that this process has."""
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    globals()["default"] = Stream()
    replace()


def count(call):
    """How often the driver was asked for a call, or has copied in a direction."""
    return cuda.standInCount(call.encode())
