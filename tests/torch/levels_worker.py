"""Collectives on two levels: what NCCL does on a host, Gloo does here, over tensors of a device that
a stand-in for CUDA's driver makes: levels_worker.py HOSTS. Each host has as many ranks.
"""

import datetime
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import warnings
from unittest import mock

import stand_in
import torch
import torch.distributed as dist
import tributary.torch
from tributary.torch import hosts, jobs, process_group
from tributary.torch.levels import Levels
from tributary.torch.pipeline import Pipeline
from tributary.torch.recorder import Record
from tributary.torch.reduction import reduction
from tributary.torch.work import Completer, Work

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "gpu"))
import levels  # noqa: E402

#: A program that exits so. What it registers first is called last.
EXIT = """\
import atexit
ends = []
atexit.register(lambda: [end() for end in ends])
import levels_worker
ends += levels_worker.exit_with_much_to_queue()
"""


class HostGroup:
    """As `tributary.torch.nccl.HostGroup`, by Gloo, after what the stream holds."""

    def __init__(self, store, rank, size, timeout):
        self.rank = rank
        self.groups = [dist.ProcessGroupGloo(dist.PrefixStore(name, store), rank, size, timeout) for name in ("before", "after")]

    def reduce_scatter(self, part, whole, op):
        stand_in.stream().wait()
        total = whole.clone()
        options = dist.AllreduceOptions()
        options.reduceOp = op
        self.groups[0].allreduce([total], options).wait()
        part.copy_(total.view(-1, part.numel())[self.rank])

    def broadcast(self, tensor, root):
        stand_in.stream().wait()
        options = dist.BroadcastOptions()
        options.rootRank = root
        self.groups[0].broadcast([tensor], options).wait()

    def all_gather(self, whole, part):
        stand_in.stream().wait()
        parts = list(whole.view(-1, part.numel()).clone())
        self.groups[1].allgather([parts], [part]).wait()
        if any(whole.data_ptr() in region for region in stand_in.of_program):
            stand_in.write_late(whole, torch.cat(parts))
        else:
            # Torch's arithmetic, which comes next, is done at once.
            whole.copy_(torch.cat(parts))

    def close(self):
        self.groups = []

    abort = close


def waits_that_others_need(rank, size, count):
    """Ranks do other things between beginning an operation and waiting for it, which others wait for."""
    first, second = (stand_in.on_device(levels.values(rank, count)) for _ in range(2))
    total = sum(levels.values(other, count) for other in range(size))
    # A thread without that mode may not change what was made in it.
    with torch.inference_mode():
        made = stand_in.on_device(levels.values(rank, count + 1))
        gathered = stand_in.on_device(torch.zeros(size * 70_000))
        dist.all_reduce(made)
        dist.all_gather_into_tensor(gathered, stand_in.on_device(levels.values(rank, 70_000)))
        assert torch.equal(stand_in.read(made), sum(levels.values(other, count + 1) for other in range(size)))
        assert torch.equal(stand_in.read(gathered), torch.cat([levels.values(other, 70_000) for other in range(size)]))
        # Another thread divides it.
        made = stand_in.on_device(levels.values(rank, count))
        dist.all_reduce(made, op=dist.ReduceOp.AVG, async_op=True).get_future().wait()
        assert torch.equal(stand_in.read(made), total / size)
        made = stand_in.on_device(levels.values(rank, count + 1))
    # Outside that mode they may be changed as well, by an odd length and by the division.
    dist.all_reduce(made, op=dist.ReduceOp.AVG)
    with torch.inference_mode():
        assert torch.equal(stand_in.read(made), sum(levels.values(other, count + 1) for other in range(size)) / size)
    if rank % 2:
        dist.all_reduce(first)
        assert torch.equal(stand_in.read(first), total)
        dist.barrier()
        dist.all_reduce(second)
    else:
        early = dist.all_reduce(first, async_op=True)
        dist.barrier()
        late = dist.all_reduce(second, async_op=True)
        early.wait()
        late.wait()
    assert torch.equal(stand_in.read(first), total) and torch.equal(stand_in.read(second), total)


def a_future_waits_for_a_host_that_is_late(is_late, rank, count):
    """The end of a process group wakes the thread that waits on two levels."""
    group = dist.new_group()
    x = stand_in.on_device(levels.values(rank, count))
    dist.all_reduce(x, group=group)
    if not is_late:
        options = dist.AllreduceOptions()
        # Longer than this step may take.
        options.timeout = datetime.timedelta(seconds=3600)
        group.set_timeout(datetime.timedelta(seconds=0.5))
        # What torch calls keeps no work here.
        group._start_coalescing(x.device)
        future = group.allreduce([x], options).get_future()
        group._end_coalescing(x.device)
        group.shutdown()
        try:
            future.wait()
        except RuntimeError as failure:
            assert "left" in str(failure), failure
        else:
            raise AssertionError("a sum of which one host has no part")
    dist.barrier()
    dist.destroy_process_group(group)


def the_exit_waits_for_what_is_queued():
    """The interpreter's exit waits for the thread, which would come back from torch to no interpreter.
    Later nobody waits for a thread any more."""
    here = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", EXIT], cwd=here, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "Traceback" not in done.stderr, (done.returncode, done.stderr)


def exit_with_much_to_queue():
    """Lets one thread be inside torch, time and again, and another one wait for ever; returns what
    would wait for both."""
    stand_in.set_up()
    much, is_inside = torch.ones(700, 700), threading.Event()

    class Host:
        def reduce_scatter(self, part, whole, op):
            pass

        def all_gather(self, whole, part):
            is_inside.set()
            for _ in range(10):
                much @ much

        def abort(self):
            pass

    two = Levels(hosts.Hosts(((0, 1),), ""), 0, torch.device("cpu"), Host(), None)
    two.allreduce(torch.zeros(20 * (4 << 20)), reduction(dist.ReduceOp.SUM, torch.float32, 2))
    is_inside.wait()
    finisher, completer = two._finisher, Completer("futures", lambda: None)
    never = Work(Pipeline(finisher, [], ()), None, [], [], None, Record("default", "allreduce", None), completer)
    never.get_future()
    return functools.partial(finisher.close, 3600), functools.partial(completer.close, 3600, lambda: None)


def begun_by_half():
    """Memory is used up at the second chunk: others have the first one, so the rank leaves."""
    done = []

    class Host:
        def reduce_scatter(self, part, whole, op):
            done.append("chunk")
            if len(done) == 2:
                raise torch.OutOfMemoryError("used up")

        def abort(self):
            done.append("abort")

    two = Levels(hosts.Hosts(((0, 1),), ""), 0, torch.device("cpu"), Host(), None)
    vector, how = torch.zeros(5 * (4 << 20)), reduction(dist.ReduceOp.SUM, torch.float32, 2)
    for refused, words in ((torch.OutOfMemoryError, "used up"), (tributary.PeerError, "left the levels .* used up")):
        try:
            two.allreduce(vector, how)
        except refused as failure:
            assert re.search(words, str(failure)), failure
        else:
            raise AssertionError("an operation was begun by half")
    assert done == ["chunk", "chunk", "abort"], done
    done.clear()
    two = Levels(hosts.Hosts(((0, 1),), ""), 0, torch.device("cpu"), Host(), None)
    two.leave()
    try:
        two.allreduce(vector, how)
    except tributary.PeerError as refused:
        assert "left the process group" in str(refused), refused
    else:
        raise AssertionError("an operation was begun that nobody would finish")
    assert done == ["abort"], done
    # A graph is captured: that is no reason to leave.
    two = Levels(hosts.Hosts(((0, 1),), ""), 0, torch.device("cpu"), Host(), None)
    with mock.patch.object(stand_in, "is_capturing", True):
        try:
            two.allreduce(vector, how)
        except tributary.UnsupportedError as refused:
            assert "CUDA graph" in str(refused), refused
        else:
            raise AssertionError("a collective in a graph")
    assert done == ["abort"], done
    # It is left while an operation is being begun.
    two = Levels(hosts.Hosts(((0, 1),), ""), 0, torch.device("cpu"), Host(), None)
    with mock.patch.object(Host, "reduce_scatter", lambda *_: two.leave()):
        late = two.allreduce(vector, how)
    try:
        late.wait_stream(0, 5)
    except tributary.PeerError as refused:
        assert "left the process group" in str(refused), refused
    else:
        raise AssertionError("nobody has finished it")


def one_place_is_refused(rank, size, count):
    """No group between hosts for the second rank of each: none uses NCCL, and all have their results."""
    group, make, before = dist.new_group(), jobs.group, dict(tributary.torch.counters())

    def refuse(*arguments):
        raise tributary.QuotaError("no group is left")

    jobs.group = refuse if rank % 2 else make
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        x = stand_in.on_device(levels.values(rank, count))
        dist.all_reduce(x, group=group)
    jobs.group = make
    assert torch.equal(stand_in.read(x), sum(levels.values(other, count) for other in range(size)))
    assert rank % 2 == 0 or any("no group is left" in str(each.message) for each in told), told
    assert not any(name.startswith("nccl.") and number != before.get(name) for name, number in tributary.torch.counters().items())
    dist.destroy_process_group(group)


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    host = f"host {int(sys.argv[1]) * rank // size}"
    dist.init_process_group("tributary")
    stand_in.set_up()
    process_group.HostGroup = HostGroup
    # What a process group of an earlier start has left, whose ranks shared no host.
    dist.group.WORLD.get_group_store().set("hosts/hosts", json.dumps([[], "another start"]))
    dist.barrier()
    hosts._self = lambda device: hosts.Rank(host, (host, f"device {rank}"), "")
    checks = levels.Checks(stand_in.on_device, stand_in.read)
    short, odd, long = levels.COUNTS
    checks.all(short)
    checks.all(odd, torch.int64, forms=[False])
    checks.all(long, forms=[True])
    checks.several([(0, 1, 2, 3), (0, 2, 1, 3)])
    waits_that_others_need(rank, size, long)
    if rank == 0:
        begun_by_half()
        the_exit_waits_for_what_is_queued()
    if sys.argv[1] != "1":
        one_place_is_refused(rank, size, long)
        a_future_waits_for_a_host_that_is_late(host == "host 0", rank, long)
    x = stand_in.on_device(levels.values(rank, 100))
    dist.all_reduce(x)
    checks.same(x, sum(levels.values(other, 100) for other in range(size)), "a short all_reduce")
    counts = tributary.torch.counters()
    waits = {name: stand_in.count(name) for name in ("cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyDtoH")}
    dist.destroy_process_group()
    print(json.dumps({"counts": counts, "waits": waits, "compared": checks.compared}))


if __name__ == "__main__":
    main()
