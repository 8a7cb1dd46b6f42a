"""What the ranks of both programs over NCCL have in common: how they meet, and what they measure.

The ranks share one GPU. NCCL refuses that on one host, so each says that it is on a host of its own.
"""

import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

RANK, SIZE = int(os.environ["TRIB_RANK"]), int(os.environ["TRIB_SIZE"])
LOG = pathlib.Path(tempfile.gettempdir()) / f"{os.environ['TRIB_RENDEZVOUS'].replace('/', '-')}.nccl.{RANK}"
#: What a hang looks like is told before `run` ends the ranks.
LIMIT_S = 150
ROUNDS = 7
#: bytes of vectors that are measured
MEASURED = (8, 64 << 10, 1 << 20, 64 << 20)


def settings(**more) -> None:
    """What makes two hosts of one, and a log. NCCL reads it when it is loaded, so before torch is."""
    os.environ |= {
        "NCCL_HOSTID": f"host{RANK}",
        "NCCL_SOCKET_IFNAME": os.environ.get("NCCL_SOCKET_IFNAME", "lo"),
        # What connects GPUs of one host by NVLink sees through the two host names.
        "NCCL_MNNVL_ENABLE": "0",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,COLL,TUNING",
        "NCCL_DEBUG_FILE": str(LOG),
        "MASTER_ADDR": os.environ.get("MASTER_ADDR", "127.0.0.1"),
        "MASTER_PORT": os.environ.get("MASTER_PORT", "29518"),
        **more,
    }


def join():
    """The GPU of this rank, with all ranks connected."""
    import torch
    import torch.distributed as dist

    device = torch.device("cuda", RANK % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", rank=RANK, world_size=SIZE)
    return device


def measured(device) -> list[dict]:
    """The median times of allreduces that all ranks begin together."""
    import torch
    import torch.distributed as dist

    found = []
    for size in MEASURED:
        x, times = torch.zeros(size // 4, device=device), []
        for _ in range(ROUNDS):
            dist.barrier()
            torch.cuda.synchronize()
            began = time.perf_counter()
            dist.all_reduce(x)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        found.append({"bytes": size, "median_s": statistics.median(times)})
    return found


def late() -> None:
    print(f"rank {RANK} hangs after {LIMIT_S} s; the end of NCCL's log:\n{tail()}", flush=True)
    os._exit(1)


def tail() -> str:
    return LOG.read_text(errors="replace")[-5000:] if LOG.exists() else "(there is none)"


def run(main) -> None:
    """Runs a rank. What NCCL says is told if it fails or hangs."""
    watch = threading.Timer(LIMIT_S, late)
    watch.daemon = True
    watch.start()
    try:
        main()
    except BaseException:
        print(f"rank {RANK} fails; the end of NCCL's log:\n{tail()}", file=sys.stderr, flush=True)
        raise
    finally:
        watch.cancel()
        LOG.unlink(missing_ok=True)
