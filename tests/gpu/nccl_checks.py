"""A rank of `make test-gpu` where torch has NCCL: NCCL itself with our network plugin, its allreduces
through the tree (CollNet), and everything else over the plugin's sockets."""

import collections
import json
import os
import pathlib
import re
import subprocess

import nccl_rank
from nccl_rank import LOG, MEASURED, RANK, ROUNDS, SIZE

# What a user sets.
nccl_rank.settings(
    NCCL_NET_PLUGIN="tributary", NCCL_COLLNET_ENABLE="1", NCCL_ALGO=os.environ.get("NCCL_ALGO", "AllReduce:CollNetChain")
)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8")
COUNTS = (1, 1000, 1_000_003)
OPS = {"SUM": torch.add, "MAX": torch.maximum, "MIN": torch.minimum, "PRODUCT": torch.mul}


def values(rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """The same on all ranks for one rank's number, without a GPU."""
    draw = torch.Generator().manual_seed(1000 + rank)
    if dtype.is_floating_point:
        return torch.randn(count, generator=draw, dtype=torch.float32).to(dtype)
    return torch.randint(0, 11, (count,), generator=draw).to(dtype)


def folded(op, count: int, dtype: torch.dtype) -> torch.Tensor:
    """The result, made by hand: a node folds types of 16 bits in 32."""
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    whole = values(0, count, dtype).to(wide)
    for rank in range(1, SIZE):
        whole = op(whole, values(rank, count, dtype).to(wide))
    return whole.to(dtype)


def same(ours: torch.Tensor, theirs: torch.Tensor, what: str) -> None:
    ours = ours.cpu()
    assert torch.equal(ours, theirs), f"{what}: {(ours != theirs).sum()} of {theirs.numel()} elements differ"


def allreduces(device: torch.device) -> int:
    """Every type, operator and size, one at a time; how many results were compared."""
    compared = 0
    for name in TYPES:
        dtype = getattr(torch, name)
        for count in COUNTS:
            for op, by_hand in OPS.items():
                x = values(RANK, count, dtype).to(device)
                dist.all_reduce(x, getattr(dist.ReduceOp, op))
                same(x, folded(by_hand, count, dtype), f"all_reduce {op} of {count} {name}")
                compared += 1
    x = values(RANK, COUNTS[-1], torch.float32).to(device)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    # NCCL multiplies before it adds.
    halves = [values(rank, COUNTS[-1], torch.float32) / SIZE for rank in range(SIZE)]
    same(x, sum(halves[1:], halves[0]), "all_reduce AVG")
    return compared + 1


def at_once(device: torch.device) -> int:
    """Many under way, of two communicators in turn."""
    other = dist.new_group(list(range(SIZE)))
    begun = []
    for turn in range(24):
        count = 1 + 40_000 * (turn % 5)
        x = values(RANK, count, torch.float32).to(device)
        begun.append((x, count, dist.all_reduce(x, group=other if turn % 2 else None, async_op=True)))
    for x, count, work in begun:
        work.wait()
        same(x, folded(torch.add, count, torch.float32), f"one of many all_reduces of {count}")
    return len(begun)


def between_ranks(device: torch.device) -> int:
    """What goes over sockets: everything that is no allreduce."""
    compared = 0
    for count in COUNTS:
        mine = values(RANK, count, torch.float32).to(device)
        x = mine.clone()
        dist.broadcast(x, SIZE - 1)
        same(x, values(SIZE - 1, count, torch.float32), f"broadcast of {count}")
        whole = torch.empty(SIZE * count, device=device)
        dist.all_gather_into_tensor(whole, mine)
        same(whole, torch.cat([values(rank, count, torch.float32) for rank in range(SIZE)]), f"all_gather of {count}")
        part = torch.empty(count, device=device)
        dist.reduce_scatter_tensor(part, torch.cat([mine] * SIZE))
        same(part, folded(torch.add, count, torch.float32), f"reduce_scatter of {count}")
        x = torch.empty(count, device=device)
        to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, to), dist.P2POp(dist.irecv, x, source)]):
            work.wait()
        same(x, values(source, count, torch.float32), f"send and receive of {count}")
        compared += 4
    return compared


def folded_bytes() -> int:
    """The bytes that the tree's nodes have folded so far."""
    command = [HERE / "trib", "status", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    return sum(node["counters"]["payload_bytes_folded"] for node in json.loads(told)["nodes"])


def told_by_nccl() -> dict:
    """What its log says about the plugin, and about the algorithms that it chose."""
    log = LOG.read_text(errors="replace")
    algorithms = re.findall(r"(\w+): \d+ Bytes -> Algo (\w+) proto (\w+)", log)
    return {
        "loaded": sorted(set(re.findall(r"Loaded (?:coll)?net plugin tributary \(v\d+\)", log))),
        "connections": len(re.findall(r"via COLLNET/tributary/\d", log)),
        "algorithms": dict(collections.Counter(" ".join(one) for one in algorithms)),
        "plugin": re.findall(r"CollNet: \d+ allreduces .*", log),
        "warnings": re.findall(r"NCCL WARN .*", log)[:10],
    }


def check(told: dict, allreduced: int) -> None:
    """NCCL's own words: it has chosen CollNet for every allreduce, and the plugin has carried them."""
    assert len(told["loaded"]) == 2, f"NCCL has not loaded both parts of the plugin: {told}"
    assert told["connections"] > 0, f"NCCL has connected nothing by CollNet: {told}"
    chosen = {words: count for words, count in told["algorithms"].items() if words.startswith("AllReduce ")}
    # Rank 0 tells what is chosen.
    assert chosen or RANK > 0, f"NCCL does not say what it has chosen: {told}"
    assert all("COLLNET" in words for words in chosen), f"NCCL has chosen something else: {told}"
    carried = sum(int(line.split()[1]) for line in told["plugin"])
    assert carried >= allreduced, f"{allreduced} allreduces were made, and the plugin carried {carried}: {told}"


def main() -> None:
    if not dist.is_nccl_available():
        if RANK == 0:
            pathlib.Path(os.environ["TRIB_GPU_OUT"]).write_text(json.dumps({"skipped": "this torch has no NCCL"}))
        return
    before = folded_bytes()
    device = nccl_rank.join()
    found = {"nccl": ".".join(map(str, torch.cuda.nccl.version())), "allreduces": allreduces(device)}
    found["at_once"] = at_once(device)
    found["between_ranks"] = between_ranks(device)
    found["measured"] = nccl_rank.measured(device)
    dist.barrier()
    found["folded_bytes"] = folded_bytes() - before
    dist.destroy_process_group()
    found["nccl_says"] = told_by_nccl()
    check(found["nccl_says"], found["allreduces"] + found["at_once"])
    # Both ranks' vectors, at the node where they meet.
    least = 2 * ROUNDS * sum(MEASURED)
    assert found["folded_bytes"] >= least, f"the tree has folded {found['folded_bytes']} bytes, less than {least}"
    if RANK == 0:
        pathlib.Path(os.environ["TRIB_GPU_OUT"]).write_text(json.dumps(found))


nccl_rank.run(main)
