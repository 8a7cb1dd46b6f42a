"""Trains on scikit-learn's digits as a program would: training_worker.py HOW FOLDER.

HOW is one of the functions below. Each prints a line of JSON: the accuracy that was reached, a hash
of the weights, and what went through the tree. In FOLDER are the checkpoints of `elastic`, and
`killed`, which says that the rank that is to die has died already.
"""

import hashlib
import json
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
import tributary.torch
from digits import Convolutional, Transformer, batches, pictures
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 3


def epoch_of(model, optimizer, epoch, data, labels, pause=0.0):
    for inputs, targets in batches(epoch, data, labels):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        time.sleep(pause)


def accuracy(model, data, labels):
    with torch.no_grad():
        right = (model(data).argmax(1) == labels).sum()
    dist.all_reduce(right)
    return right.item() / (len(labels) * dist.get_world_size())


def hash_of(parameters):
    return hashlib.sha256(b"".join(p.detach().cpu().contiguous().numpy().tobytes() for p in parameters)).hexdigest()


def trained(model, optimizer, parameters, said=None, first=0, pause=0.0):
    train, labels, test, wanted = pictures()
    for epoch in range(first, EPOCHS):
        epoch_of(model, optimizer, epoch, train, labels, pause)
    told = {"accuracy": accuracy(model, test, wanted), "hash": hash_of(parameters()), **(said or {})}
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, told["hash"])
    epochs = tributary.torch.current().counters()["epochs"]
    return {**told, "same": len(set(everyone)) == 1, "counts": tributary.torch.counters(), "epochs": epochs}


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def ddp(folder, net=Convolutional, hook=None, pause=0.0, **words):
    torch.manual_seed(1)
    model = DistributedDataParallel(net(), bucket_cap_mb=0.05, **words)
    if hook:
        model.register_comm_hook(None, hook)
    optimizer = adam(model) if net is Transformer else sgd(model)
    return trained(model, optimizer, lambda: list(model.module.parameters()), pause=pause)


def ddp_views(folder):
    return ddp(folder, gradient_as_bucket_view=True)


def ddp_slowly(folder):
    """Long enough for somebody to kill a node meanwhile."""
    return ddp(folder, pause=0.05)


def ddp_transformer(folder):
    return ddp(folder, Transformer, static_graph=True)


def ddp_bf16(folder):
    return ddp(folder, hook=default_hooks.bf16_compress_hook)


def ddp_fp16(folder):
    return ddp(folder, hook=default_hooks.fp16_compress_hook)


def ddp_no_sync(folder):
    """Gradients of two batches are one step."""
    torch.manual_seed(1)
    model = DistributedDataParallel(Convolutional())
    optimizer = sgd(model)
    train, labels, *_ = pictures()
    for epoch in range(2):
        for step, (inputs, targets) in enumerate(batches(epoch, train, labels)):
            if step % 2 == 0:
                optimizer.zero_grad()
                with model.no_sync():
                    (nn.functional.cross_entropy(model(inputs), targets) / 2).backward()
            else:
                (nn.functional.cross_entropy(model(inputs), targets) / 2).backward()
                optimizer.step()
    return trained(model, optimizer, lambda: list(model.module.parameters()), first=2)


def zero(folder):
    torch.manual_seed(1)
    model = DistributedDataParallel(Convolutional())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    return trained(model, optimizer, lambda: list(model.module.parameters()))


def fsdp(folder):
    """FSDP2 on a DeviceMesh, with a checkpoint that is written and read."""
    from torch.distributed.device_mesh import init_device_mesh

    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard
    torch.manual_seed(1)
    model = Transformer()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.body.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)

    def whole():
        # What the last forward pass has put together for the outermost layers stays until then.
        model.reshard()
        return [parameter.full_tensor() for parameter in model.parameters()]

    told = trained(model, adam(model), whole)
    state = {"model": model.state_dict()}
    where = str(pathlib.Path(folder) / "fsdp")
    checkpoint.save(state, checkpoint_id=where)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    state = {"model": model.state_dict()}
    checkpoint.load(state, checkpoint_id=where)
    model.load_state_dict(state["model"])
    return {**told, "read": hash_of(whole()) == told["hash"]}


def mesh(folder):
    """Two dimensions: replicas of sharded models."""
    from torch.distributed.device_mesh import init_device_mesh

    size = dist.get_world_size()
    both = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    row, column = both.get_local_rank("replicate"), both.get_local_rank("shard")
    tensor = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(tensor, group=both.get_group("shard"))
    expected = float(sum(range(row * (size // 2), (row + 1) * (size // 2))))
    other = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(other, group=both.get_group("replicate"))
    return {"same": tensor.item() == expected and other.item() == 2 * column + size // 2}


def elastic(folder):
    """Rank 1 dies once, in the second epoch; torchrun starts all anew, from the checkpoint."""
    folder = pathlib.Path(folder)
    torch.manual_seed(1)
    model = DistributedDataParallel(Convolutional())
    optimizer = sgd(model)
    saved, killed = folder / "epoch.pt", folder / "killed"
    first = 0
    if saved.exists():
        state = torch.load(saved)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"]
    train, labels, test, wanted = pictures()
    for epoch in range(first, EPOCHS):
        for step, (inputs, targets) in enumerate(batches(epoch, train, labels)):
            if epoch == 1 and step == 3 and dist.get_rank() == 1 and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        if dist.get_rank() == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
            torch.save(state, folder / "epoch.new")
            (folder / "epoch.new").rename(saved)
        dist.barrier()
    return {"accuracy": accuracy(model, test, wanted), "hash": hash_of(model.module.parameters()), "first": first}


def failure(folder):
    """Rank 1 dies in an operation; the others say what they are told, and after how long."""
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        for _ in range(100):
            dist.all_reduce(torch.ones(10))
    except dist.DistBackendError as told:
        last = tributary.torch.dump()[-1]
        return {"told": str(told), "seconds": time.monotonic() - began, "state": last["state"], "error": last["error"]}
    return {"told": None}


def late(folder):
    """Rank 1 is late; the others' limit passes, and then the operation is done nevertheless."""
    from datetime import timedelta

    tensor = torch.ones(10)
    told = None
    if dist.get_rank() == 1:
        time.sleep(2)
    work = dist.all_reduce(tensor, async_op=True)
    if dist.get_rank() != 1:
        try:
            work.wait(timedelta(seconds=0.5))
        except dist.DistBackendError as error:
            told = str(error)
    work.wait()
    return {"told": told, "sum": tensor[0].item()}


def huge(folder):
    """Tensors beyond 2 GiB."""
    tensor = torch.ones((1 << 31) + 5, dtype=torch.int8)
    dist.all_reduce(tensor)
    right = bool((tensor == dist.get_world_size()).all())
    tensor.fill_(dist.get_rank())
    dist.broadcast(tensor, 1)
    return {"same": right and bool((tensor == 1).all())}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("tributary")
    how, folder = sys.argv[1:]
    told = json.dumps({"rank": dist.get_rank(), **globals()[how](folder)})
    # Lines of several ranks on one pipe mix.
    (pathlib.Path(folder) / f"rank{dist.get_rank()}.json").write_text(told)
    print(told, flush=True)
    if how == "failure":
        # The job is broken, and so is the way out of it.
        os._exit(0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
