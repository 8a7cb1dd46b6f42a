"""Collectives of the backend over tensors of a device that a stand-in for CUDA's driver makes.

What is shown is that the backend asks for the right calls in the right order; what a GPU makes of
them, `make test-gpu` shows on one.
"""

import gc
import json
import time

import stand_in
import torch
import torch.distributed as dist
import tributary.torch
from stand_in import on_device, read

COUNT = 100_003
#: How long a stream does not go on, in seconds.
LONG = 300


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
        stand_in.stream().wait()
        assert work.is_completed() and work.is_success()

    forms = {"async_op": asynchronous is not False}
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist._make_nccl_premul_sum(0.5)):
        host, x = values(rank), on_device(values(rank))
        dist.all_reduce(host, op)
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
            stand_in.stream().wait()  # torch's arithmetic before the operation
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


def a_future_in_another_stream(rank):
    """The stream in which somebody asks for a future waits for the result, which another stream has
    waited for before."""

    class Other(stand_in.Stream):
        awaited = ()

        def wait_event(self, event):
            super().wait_event(event)
            self.awaited += (event,)

    work = dist.all_reduce(on_device(values(rank)), async_op=True)
    work.wait()
    other = Other()
    with stand_in.current(other):
        work.get_future().wait()
    assert work._arrival._event in other.awaited, "the future was fulfilled before the result had come"


def an_abort_waits_for_no_device():
    """A stream that does not go on, as one does whose kernel waits for a rank that has died."""
    groups = [dist.new_group(), dist.group.WORLD]
    while groups:
        group, tensor = groups.pop(0), stand_in.empty(torch.ones(1), COUNT)
        stand_in.sleep(LONG)
        work = dist.all_reduce(tensor, group=group, async_op=True)
        began = time.monotonic()
        group.abort()
        dist.destroy_process_group(group)
        # Nobody holds the group any more: its memory is given up by a thread, which waits.
        del group, work
        gc.collect()
        assert time.monotonic() - began < LONG / 2, "an abort has waited for a device"


def main():
    dist.init_process_group("tributary")
    rank, size = dist.get_rank(), dist.get_world_size()
    stand_in.set_up()
    for asynchronous in (False, True, "future"):
        check(rank, size, asynchronous)
    a_future_in_another_stream(rank)
    counts = tributary.torch.counters()
    waits = {name: stand_in.count(name) for name in ("cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyDtoH")}
    out = stand_in.count("copy device-host")
    an_abort_waits_for_no_device()
    print(json.dumps({"counts": counts, "waits": waits, "out": out, "recorded": len(stand_in.recorded)}))


if __name__ == "__main__":
    main()
