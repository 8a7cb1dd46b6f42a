"""Processor time of dist.all_reduce of 8 bytes between two ranks of a host, one after the other, in
microseconds for each: share.py CALLS prints it as JSON. What waiting costs is in it."""

import json
import sys
import time

import torch
import torch.distributed as dist
import tributary.torch  # noqa: F401  registers the backend


def main():
    torch.set_num_threads(1)
    dist.init_process_group("tributary")
    calls = int(sys.argv[1])
    tensor = torch.zeros(2)
    for _ in range(calls // 10):
        dist.all_reduce(tensor)
    before = time.process_time()
    for _ in range(calls):
        dist.all_reduce(tensor)
    print(json.dumps({"us": (time.process_time() - before) / calls * 1e6}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
