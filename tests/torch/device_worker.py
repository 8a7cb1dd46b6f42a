"""Collectives of the backend over tensors of a device that a stand-in for CUDA's driver makes.

Torch knows nothing of that driver: its tensors are the host's, in memory that the stand-in takes for
a device's, and its streams and events are replaced by the stand-in's. Torch's own arithmetic is done
at once, so it waits first for what its stream holds. What is shown is that the backend asks for the
right calls in the right order; what a GPU makes of them, `make test-gpu` shows on one.
"""

import contextlib
import ctypes as c
import json
import types

import torch
import torch.distributed as dist
import tributary.torch
from tributary.torch import process_group, staging, streams

cuda = c.CDLL("libcuda.so.1")
cuda.cuMemAlloc_v2.argtypes = [c.c_void_p, c.c_size_t]
cuda.cuEventRecord.argtypes = [c.c_void_p, c.c_void_p]
cuda.cuEventSynchronize.argtypes = cuda.cuEventQuery.argtypes = [c.c_void_p]
cuda.cuStreamWaitEvent.argtypes = [c.c_void_p, c.c_void_p, c.c_uint]
cuda.cuMemcpyAsync.argtypes = [c.c_uint64, c.c_uint64, c.c_size_t, c.c_void_p]
cuda.standInSleep.argtypes = [c.c_void_p, c.c_uint]
cuda.standInCount.restype = c.c_long
COUNT = 100_003
regions = []
context = c.c_void_p()


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

    def __init__(self):
        handle = c.c_void_p()
        ok(cuda.cuStreamCreate(c.byref(handle), 1))
        self.cuda_stream = handle.value

    def wait_event(self, event):
        ok(cuda.cuStreamWaitEvent(self.cuda_stream, event.handle, 0))

    def wait(self):
        event = Event()
        event.record(self)
        ok(cuda.cuEventSynchronize(event.handle))


def on_device(tensor):
    """A tensor in memory of the device, which gets its values late, in the order of the stream."""
    address, nbytes = c.c_uint64(), max(tensor.nbytes, 1)
    ok(cuda.cuMemAlloc_v2(c.byref(address), nbytes))
    regions.append(range(address.value, address.value + nbytes))
    memory = (c.c_char * nbytes).from_address(address.value)
    made = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel()).view(tensor.shape)
    made.zero_()
    ok(cuda.standInSleep(stream.cuda_stream, 3000))
    ok(cuda.cuMemcpyAsync(address.value, tensor.data_ptr(), tensor.nbytes, stream.cuda_stream))
    kept.append(tensor)
    return made


def read(tensor):
    """What work finds that is queued now."""
    stream.wait()
    return tensor.clone()


def is_on_device(tensor):
    return any(tensor.data_ptr() in region for region in regions)


@contextlib.contextmanager
def device_of(_):
    """Torch's arithmetic comes after what its stream holds."""
    stream.wait()
    yield


def replace():
    """Puts the stand-in's streams where torch has its own."""
    known = types.SimpleNamespace(current_stream=lambda _: stream, Event=Event, device=device_of)
    streams.torch = types.SimpleNamespace(cuda=known)
    streams.future = process_group.Work.get_future.__globals__["future"] = lambda device: torch.futures.Future()
    staging.is_staged_by_library = process_group.is_staged_by_library = is_on_device
    torch.Tensor.record_stream = lambda tensor, _: recorded.append(tensor)


def values(rank, count=COUNT):
    return torch.randn(count, generator=torch.Generator().manual_seed(rank))


def same(ours, theirs, what):
    assert torch.equal(read(ours), theirs), f"{what}: another result"


def check(rank, size, asynchronous):
    """Every collective, beside the same one over tensors of the host."""

    def done(work):
        if work is None:
            return
        if asynchronous == "future":
            work.get_future().wait()
            return
        work.wait()
        stream.wait()
        assert work.is_completed() and work.is_success()

    forms = {"async_op": asynchronous is not False}
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist._make_nccl_premul_sum(0.5)):
        host, x = values(rank), on_device(values(rank))
        dist.all_reduce(host, op)
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
            stream.wait()  # torch's arithmetic before the operation
        done(dist.all_reduce(x, op, **forms))
        same(x, host, f"all_reduce {op}")
    for root in range(size):
        host, x = values(rank), on_device(values(rank))
        dist.reduce(host, root)
        done(dist.reduce(x, root, **forms))
        if rank == root:
            same(x, host, "reduce")
        x = on_device(values(rank))
        done(dist.broadcast(x, root, **forms))
        same(x, values(root), "broadcast")
    x, out = on_device(values(rank)), on_device(torch.zeros(size * COUNT))
    done(dist.all_gather_into_tensor(out, x, **forms))
    same(out, torch.cat([values(other) for other in range(size)]), "all_gather_into_tensor")
    x, outs = on_device(values(rank)), [on_device(torch.zeros(COUNT)) for _ in range(size)]
    done(dist.all_gather(outs, x, **forms))
    for other, out in enumerate(outs):
        same(out, values(other), "all_gather")
    host, x, out = torch.empty(COUNT), on_device(values(rank, size * COUNT)), on_device(torch.zeros(COUNT))
    dist.reduce_scatter_tensor(host, values(rank, size * COUNT))
    done(dist.reduce_scatter_tensor(out, x, **forms))
    same(out, host, "reduce_scatter_tensor")


def main():
    dist.init_process_group("tributary")
    rank, size = dist.get_rank(), dist.get_world_size()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    globals().update(stream=Stream(), kept=[], recorded=[])
    replace()
    for asynchronous in (False, True, "future"):
        check(rank, size, asynchronous)
    counts = tributary.torch.counters()
    waits = {name: cuda.standInCount(name.encode()) for name in ("cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyDtoH")}
    out = cuda.standInCount(b"copy device-host")
    dist.destroy_process_group()
    print(json.dumps({"counts": counts, "waits": waits, "out": out, "recorded": len(recorded)}))


if __name__ == "__main__":
    main()
