"""Collectives on two levels: what NCCL does on a host, Gloo does here, over tensors of a device that
a stand-in for CUDA's driver makes: levels_worker.py HOSTS. Each host has as many ranks.
"""

import json
import os
import pathlib
import sys

import stand_in
import torch
import torch.distributed as dist
import tributary.torch
from tributary.torch import hosts, process_group

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "gpu"))
import levels  # noqa: E402


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
    x = stand_in.on_device(levels.values(rank, 100))
    dist.all_reduce(x)
    checks.same(x, sum(levels.values(other, 100) for other in range(size)), "a short all_reduce")
    counts = tributary.torch.counters()
    waits = {name: stand_in.count(name) for name in ("cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyDtoH")}
    dist.destroy_process_group()
    print(json.dumps({"counts": counts, "waits": waits, "compared": checks.compared}))


if __name__ == "__main__":
    main()
