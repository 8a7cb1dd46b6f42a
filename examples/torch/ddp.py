"""DDP whose gradients are reduced inside the network. Two lines make it so: they are marked.

    eval "$(trib fabric up --local --shared-host)"
    torchrun --nproc-per-node 4 examples/torch/ddp.py
    torchrun --nproc-per-node 4 examples/torch/ddp.py --backend gloo
"""

import argparse
import hashlib

import torch
import torch.distributed as dist
import tributary.torch  # registers the backend: one of the two lines
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--backend", default="tributary")
    words.add_argument("--steps", type=int, default=200)
    options = words.parse_args()
    dist.init_process_group(options.backend)  # the other line
    rank = dist.get_rank()

    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(100 + rank)  # each rank has other data
    for step in range(options.steps):
        inputs = torch.randn(32, 20)
        targets = inputs[:, :3].prod(1, keepdim=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step:4}  loss {loss.item():.4f}")

    if rank == 0:
        weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
        print("weights", hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:16])
        if options.backend == tributary.torch.NAME:
            print(tributary.torch.counters())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
