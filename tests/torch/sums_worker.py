"""Trains with exact sums: sums_worker.py HOSTS SHIFT. Ranks say that they are on so many hosts, and
each takes the part of every batch that belongs to the rank SHIFT further on. Prints a line of JSON
with a hash of the weights, which none of this may change."""

import json
import os
import sys

import torch
import torch.distributed as dist
from digits import BATCH, Convolutional, pictures
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from training_worker import hash_of

STEPS = 6


def main():
    hosts, shift = map(int, sys.argv[1:])
    os.environ["TRIB_HOST"] = f"host{int(os.environ['RANK']) * hosts // int(os.environ['WORLD_SIZE'])}"
    torch.set_num_threads(1)
    dist.init_process_group("tributary")
    torch.manual_seed(1)
    model = DistributedDataParallel(Convolutional(), bucket_cap_mb=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data, labels, *_ = pictures()
    part = (dist.get_rank() + shift) % dist.get_world_size()
    for step in range(STEPS):
        first = (step * dist.get_world_size() + part) * BATCH % (len(labels) - BATCH)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[first : first + BATCH]), labels[first : first + BATCH]).backward()
        optimizer.step()
    print(json.dumps({"rank": dist.get_rank(), "hash": hash_of(model.module.parameters())}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
