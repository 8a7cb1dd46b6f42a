"""Training on scikit-learn's digits: samples a second, bytes on the host's link, accuracy, and what
computing and reducing take alone."""

import functools
import itertools
import statistics
import time

import torch
import torch.distributed as dist
from digits import BATCH, Convolutional, Transformer, batches, pictures
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

ROUNDS = 3
#: A gradient's buckets, the steps that only warm up, and those that are counted of computing alone.
BUCKET_MB, WARM, COMPUTED = 1, 2, 9


def measured(backends, epochs):
    """[{model, rounds: [{backend: {...}}], alone: {...}}]; each model is trained for so many epochs."""
    digits = pictures()
    plans = [("convolutional, DDP", convolutional, ddp), ("transformer, DDP", transformer, ddp), ("transformer, FSDP2", transformer, fsdp)]
    found = []
    for name, net, wrapped in plans:
        fit = [backend for backend in backends if wrapped is ddp or backend.name != "mpi"]
        rounds = []
        for turn in range(ROUNDS):
            rounds.append({backend.name: trained(net, wrapped, backend, digits, epochs) for backend in fit[:: 1 if turn % 2 == 0 else -1]})
        found.append({"model": name, "rounds": rounds, "alone": alone(net, fit, digits)})
    return found


def convolutional():
    """0.55 million parameters."""
    return Convolutional(32, 512)


def transformer():
    """0.80 million parameters."""
    return Transformer(128, 512, 4)


def accuracy(model, data, labels):
    with torch.no_grad():
        return (model(data).argmax(1) == labels).float().mean().item()


def ddp(model, backend):
    group = getattr(backend, "group", None)
    model = DistributedDataParallel(model, process_group=group, bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True)
    backend.prepare(model)
    return model


def fsdp(model, backend):
    mesh = DeviceMesh.from_group(backend.group, "cpu")
    for layer in model.body.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def step_of(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()


def trained(net, wrapped, backend, digits, epochs):
    torch.manual_seed(1)
    train, labels, test, wanted = digits
    model = wrapped(net(), backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for inputs, targets in itertools.islice(batches(99, train, labels), WARM):
        step_of(model, optimizer, inputs, targets)
    dist.barrier()
    sent, steps, began = sent_bytes(), 0, time.perf_counter()
    for epoch in range(epochs):
        for inputs, targets in batches(epoch, train, labels):
            step_of(model, optimizer, inputs, targets)
            steps += 1
    taken = time.perf_counter() - began
    # What the barrier sends is little beside the gradients.
    dist.barrier()
    return {
        "samples_per_second": steps * BATCH * dist.get_world_size() / slowest(taken),
        "sent_bytes_per_step": slowest((sent_bytes() - sent) / steps),
        "accuracy": accuracy(model, test, wanted),
    }


def batches_of(steps, train, labels):
    """This rank's batches of so many steps, from the first epoch on."""
    epochs = (batches(epoch, train, labels) for epoch in itertools.count())
    return itertools.islice(itertools.chain.from_iterable(epochs), steps)


def alone(net, backends, digits):
    """Seconds of a step of DDP in a process group of one rank, while the other ranks do the same, and
    of reducing one step's gradients with nothing else to do."""
    torch.manual_seed(1)
    model = net()
    lonely = DistributedDataParallel(model, process_group=own_group(), bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train, labels, *_ = digits
    computing = []
    for step, (inputs, targets) in enumerate(batches_of(WARM + COMPUTED, train, labels)):
        dist.barrier()
        began = time.perf_counter()
        step_of(lonely, optimizer, inputs, targets)
        taken = slowest(time.perf_counter() - began)
        if step >= WARM:
            computing.append(taken)
    sizes, reducing = buckets(model), {backend.name: [] for backend in backends}
    for _ in range(7):
        for backend in backends:
            tensors = [torch.zeros(size) for size in sizes]
            dist.barrier()
            began = time.perf_counter()
            for tensor in tensors:
                backend.all_reduce(tensor, None)
            reducing[backend.name].append(slowest(time.perf_counter() - began))
    return {"computing": statistics.median(computing), "reducing": {name: statistics.median(taken) for name, taken in reducing.items()},
            "parameters": sum(p.numel() for p in model.parameters())}


@functools.cache
def own_group():
    """The process group in which this rank is alone; all ranks make theirs."""
    groups = [dist.new_group([rank], backend="gloo") for rank in range(dist.get_world_size())]
    return groups[dist.get_rank()]


def buckets(model):
    """Elements of about what DDP makes of the gradients."""
    sizes, limit = [0], BUCKET_MB * (1 << 20) // 4
    for parameter in model.parameters():
        if sizes[-1] and sizes[-1] + parameter.numel() > limit:
            sizes.append(0)
        sizes[-1] += parameter.numel()
    return sizes


def slowest(value):
    most = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most.item()


def sent_bytes():
    """What this host's links have sent; /proc/net is that of the process's own network."""
    sent = 0
    with open("/proc/net/dev") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name.strip().startswith("eth"):
                sent += int(rest.split()[8])
    return sent
