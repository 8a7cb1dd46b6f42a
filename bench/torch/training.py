"""Training on scikit-learn's digits: samples a second, bytes on the host's link, accuracy, and what
computing and reducing take alone."""

import statistics
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

BATCH = 16
EPOCHS = 3
ROUNDS = 3
#: A gradient's buckets, and the steps that only warm up.
BUCKET_MB, WARM = 1, 2


class Convolutional(nn.Module):
    """For pictures of 8 x 8; 0.6 million parameters."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10),
        )  # fmt: skip

    def forward(self, pictures):
        return self.layers(pictures)


class Transformer(nn.Module):
    """Reads a picture as 8 words of 8 numbers; 0.8 million parameters."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 128)
        self.places = nn.Parameter(torch.zeros(8, 128))
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True), 4)
        self.head = nn.Linear(128, 10)

    def forward(self, pictures):
        return self.head(self.body(self.embed(pictures.squeeze(1)) + self.places).mean(1))


class Digits:
    """Every rank has them all, and takes its part of each batch."""

    def __init__(self):
        digits = load_digits()
        pictures = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
        order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(7))
        pictures, labels = pictures[order], torch.tensor(digits.target)[order]
        self.train, self.test = (pictures[:1500], labels[:1500]), (pictures[1500:], labels[1500:])

    def batches(self, epoch):
        pictures, labels = self.train
        step = BATCH * dist.get_world_size()
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        for first in range(dist.get_rank() * BATCH, len(order) - step + 1 + dist.get_rank() * BATCH, step):
            mine = order[first : first + BATCH]
            yield pictures[mine], labels[mine]

    def accuracy(self, model):
        pictures, labels = self.test
        with torch.no_grad():
            return (model(pictures).argmax(1) == labels).float().mean().item()


def measured(backends):
    """[{model, rounds: [{backend: {...}}], alone: {...}}]."""
    digits = Digits()
    plans = [("convolutional, DDP", Convolutional, ddp), ("transformer, DDP", Transformer, ddp), ("transformer, FSDP2", Transformer, fsdp)]
    found = []
    for name, net, wrapped in plans:
        fit = [backend for backend in backends if wrapped is ddp or backend.name != "mpi"]
        rounds = []
        for turn in range(ROUNDS):
            rounds.append({backend.name: trained(net, wrapped, backend, digits) for backend in fit[:: 1 if turn % 2 == 0 else -1]})
        found.append({"model": name, "rounds": rounds, "alone": alone(net, fit, digits)})
    return found


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


def step_of(model, optimizer, pictures, labels):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(pictures), labels).backward()
    optimizer.step()


def trained(net, wrapped, backend, digits):
    torch.manual_seed(1)
    model = wrapped(net(), backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for pictures, labels in list(digits.batches(99))[:WARM]:
        step_of(model, optimizer, pictures, labels)
    dist.barrier()
    sent, steps, began = sent_bytes(), 0, time.perf_counter()
    for epoch in range(EPOCHS):
        for pictures, labels in digits.batches(epoch):
            step_of(model, optimizer, pictures, labels)
            steps += 1
    taken = time.perf_counter() - began
    # What the barrier sends is little beside the gradients.
    dist.barrier()
    return {
        "samples_per_second": steps * BATCH * dist.get_world_size() / slowest(taken),
        "sent_bytes_per_step": slowest((sent_bytes() - sent) / steps),
        "accuracy": digits.accuracy(model),
    }


def alone(net, backends, digits):
    """Seconds of a step without the others' gradients, and of reducing one step's gradients with
    nothing else to do."""
    torch.manual_seed(1)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = list(digits.batches(0))[:8]
    computing = []
    for pictures, labels in batches:
        dist.barrier()
        began = time.perf_counter()
        step_of(model, optimizer, pictures, labels)
        computing.append(slowest(time.perf_counter() - began))
    sizes, reducing = buckets(model), {backend.name: [] for backend in backends}
    for _ in range(5):
        for backend in backends:
            tensors = [torch.zeros(size) for size in sizes]
            dist.barrier()
            began = time.perf_counter()
            for tensor in tensors:
                backend.all_reduce(tensor, None)
            reducing[backend.name].append(slowest(time.perf_counter() - began))
    return {"computing": statistics.median(computing), "reducing": {name: statistics.median(taken) for name, taken in reducing.items()},
            "parameters": sum(p.numel() for p in model.parameters())}


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
    """What this host's interface has sent; /proc/net is that of the process's own network."""
    with open("/proc/net/dev") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name.strip() == "eth0":
                return int(rest.split()[8])
    return 0
