"""A rank of `make test-gpu` where torch has NCCL: NCCL on each host, the tree between them.

All ranks are on one machine and may share its GPU, so each is a host of its own for NCCL, and two
are a host for the tree. What NCCL does on a host then goes through its sockets: right or wrong shows
here, how fast it is does not.
"""

import json
import os
import pathlib

import torch
import torch.distributed as dist
from levels import COUNTS, Checks, values
from torch.nn.parallel import DistributedDataParallel

import tributary.torch


def late(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the device that is late, so that what does not wait for it finds something else."""
    x, there = torch.full_like(tensor, 9, device="cuda"), tensor.to("cuda")
    torch.cuda._sleep(5_000_000)
    return x.copy_(there)


def training(device: torch.device, rank: int) -> int:
    """Some steps with DDP, whose buckets are reduced while others are computed: how many operations
    went through NCCL. All ranks have the same weights afterwards."""
    torch.manual_seed(5)
    layers = [torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()) for _ in range(6)]
    model = torch.nn.Sequential(*layers).to(device)
    parallel = DistributedDataParallel(model, bucket_cap_mb=1, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.05)
    before = tributary.torch.counters().get("nccl.allreduce", 0)
    for step in range(10):
        x = torch.randn(32, 512, generator=torch.Generator().manual_seed(100 * step + rank)).to(device)
        optimizer.zero_grad()
        parallel(x).square().mean().backward()
        optimizer.step()
    weights = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    of_rank_0 = weights.clone()
    dist.broadcast(of_rank_0, 0)
    assert torch.equal(weights, of_rank_0), "the ranks' models differ"
    return tributary.torch.counters()["nccl.allreduce"] - before


def main() -> None:
    rank, size = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29518"}
    os.environ |= {"TRIB_HOST": f"host-{2 * rank // size}", "NCCL_HOSTID": f"rank-{rank}", "NCCL_SOCKET_IFNAME": "lo"}
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("tributary", rank=rank, world_size=size)
    checks = Checks(late, lambda tensor: tensor.cpu())
    for count in COUNTS:
        checks.all(count)
    for dtype in (torch.float64, torch.bfloat16, torch.int32, torch.int64):
        checks.all(COUNTS[1], dtype, forms=[True])
    # The ranks of a host wait in different orders.
    checks.several([(0, 1, 2, 3), (3, 1, 0, 2)])
    x = late(values(rank, 100))
    dist.all_reduce(x)
    checks.same(x, sum(values(other, 100) for other in range(size)), "a short all_reduce")
    found = {"results": checks.compared, "ddp_allreduces": training(device, rank), "counts": tributary.torch.counters()}
    for name in ("allreduce", "reduce_scatter", "all_gather", "broadcast"):
        assert found["counts"].get(f"nccl.{name}"), f"no {name} went through NCCL: {found['counts']}"
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        pathlib.Path(os.environ["TRIB_GPU_OUT"]).write_text(json.dumps(found))


main()
