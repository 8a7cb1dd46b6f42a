"""How long each collective takes, by size: rounds in which every backend has its turn."""

import statistics
import time

import torch
import torch.distributed as dist

NAMES = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter")
SIZES = (8, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20)
ROUNDS = 5
#: About how long a backend's turn is, in seconds, and how many calls it may have.
TURN, MOST = 0.25, 400


def measured(backends):
    """[{collective, bytes, seconds: {backend: [of each round]}}]; bytes are those of the longer
    tensor. A turn's seconds are those of its slowest rank, for each call."""
    cells = [("barrier", 0), *((name, size) for name in NAMES for size in SIZES)]
    return [cell(name, size, backends) for name, size in cells]


def cell(name, size, backends):
    ranks = dist.get_world_size()
    elements = max(size // 4, 1)
    part = max(elements // ranks, 1)
    tensor = torch.zeros(part if name in ("all_gather", "reduce_scatter") else elements)
    whole = torch.zeros(part * ranks)
    calls = {backend.name: getattr(backend, name) for backend in backends}
    times = {backend: agreed_times(lambda call=call: call(tensor, whole)) for backend, call in calls.items()}
    seconds = {backend: [] for backend in calls}
    for turn in range(ROUNDS):
        for backend in list(calls)[:: 1 if turn % 2 == 0 else -1]:
            dist.barrier()
            began = time.perf_counter()
            for _ in range(times[backend]):
                calls[backend](tensor, whole)
            seconds[backend].append((time.perf_counter() - began) / times[backend])
    slowest = torch.tensor([seconds[backend] for backend in calls], dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return {"collective": name, "bytes": 0 if name == "barrier" else size, "seconds": dict(zip(calls, slowest.tolist()))}


def agreed_times(call):
    """How many calls fill a turn, by rank 0's clock."""
    taken = []
    for _ in range(3):
        dist.barrier()
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    times = torch.tensor(int(min(max(TURN / statistics.median(taken), 2), MOST)))
    dist.broadcast(times, 0)
    return int(times)
