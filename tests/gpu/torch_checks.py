"""A rank of `make test-gpu` where torch sees the GPU: collectives of the backend over its tensors,
and training with DDP, beside the same over tensors of the host."""

import json
import os
import pathlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import tributary.torch
from tributary.torch import hooks

COUNT = 1_000_003


def values(rank: int, count: int = COUNT) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(rank))


def same(ours: torch.Tensor, theirs: torch.Tensor, what: str) -> None:
    assert torch.equal(ours.cpu(), theirs), f"{what} differs on the device"


def collectives(device: torch.device, rank: int, size: int) -> int:
    """Synchronous and asynchronous forms; how many results were compared."""
    compared = 0
    for asynchronous in (False, True):

        def done(work: dist.Work | None) -> None:
            if work is not None:
                work.wait()

        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX):
            host, x = values(rank), values(rank).to(device)
            dist.all_reduce(host, op)
            done(dist.all_reduce(x, op, async_op=asynchronous))
            same(x, host, f"all_reduce {op}")
        x = values(rank).to(device)
        done(dist.broadcast(x, size - 1, async_op=asynchronous))
        same(x, values(size - 1), "broadcast")
        host, x = values(rank), values(rank).to(device)
        dist.reduce(host, 0)
        done(dist.reduce(x, 0, async_op=asynchronous))
        if rank == 0:
            same(x, host, "reduce")
        x = torch.empty(size * COUNT, device=device)
        done(dist.all_gather_into_tensor(x, values(rank).to(device), async_op=asynchronous))
        same(x, torch.cat([values(other) for other in range(size)]), "all_gather_into_tensor")
        host, x = torch.empty(COUNT), torch.empty(COUNT, device=device)
        dist.reduce_scatter_tensor(host, values(rank, size * COUNT))
        done(dist.reduce_scatter_tensor(x, values(rank, size * COUNT).to(device), async_op=asynchronous))
        same(x, host, "reduce_scatter_tensor")
        x = values(rank, 2 * COUNT).to(device)[::2]
        host = values(rank, 2 * COUNT)[::2].contiguous()
        dist.all_reduce(host)
        done(dist.all_reduce(x, async_op=asynchronous))
        same(x, host, "all_reduce of a slice")
        compared += 8
    return compared


def training(device: torch.device, rank: int, quantised: bool) -> float:
    """Some steps with DDP, with gradients as they are or in 8 bits; all ranks have the same weights
    afterwards."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(device)
    parallel = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if quantised:
        parallel.register_comm_hook(hooks.Int8(), hooks.int8)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.05)
    for step in range(20):
        x = torch.randn(32, 64, generator=torch.Generator().manual_seed(100 * step + rank)).to(device)
        loss = parallel(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    of_rank_0 = weights.clone()
    dist.broadcast(of_rank_0, 0)
    same(weights, of_rank_0.cpu(), "a rank's model")
    return loss.item()


def main() -> None:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    rank, size = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("tributary", rank=rank, world_size=size)
    found = {"results": collectives(device, rank, size), "loss": training(device, rank, False)}
    found["loss_int8"] = training(device, rank, True)
    assert abs(found["loss_int8"] / found["loss"] - 1) < 0.2, found
    found["counts"] = tributary.torch.counters()
    dist.destroy_process_group()
    if rank == 0:
        pathlib.Path(os.environ["TRIB_GPU_OUT"]).write_text(json.dumps(found))


main()
