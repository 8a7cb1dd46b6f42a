"""A rank of `make test-gpu` where torch has NCCL: the same allreduces by NCCL alone, over its own
sockets, to compare with."""

import json
import os
import pathlib

import nccl_rank
from nccl_rank import RANK

nccl_rank.settings(NCCL_NET_PLUGIN="none", NCCL_NET="Socket")

import torch.distributed as dist  # noqa: E402


def main() -> None:
    if not dist.is_nccl_available():
        found = {"skipped": "this torch has no NCCL"}
    else:
        found = {"measured": nccl_rank.measured(nccl_rank.join())}
        dist.destroy_process_group()
    if RANK == 0:
        pathlib.Path(os.environ["TRIB_GPU_OUT"]).write_text(json.dumps(found))


nccl_rank.run(main)
