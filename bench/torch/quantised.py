"""Training with gradients in fewer bytes: the loss of each step, bytes on the host's link, samples a
second and accuracy, for plain sums, for bfloat16 by torch's hook, and for int8 with and without error
feedback. All begin with the same weights and see the same samples."""

import time

import torch
import torch.distributed as dist
from digits import BATCH, pictures
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from training import BUCKET_MB, accuracy, alone, batches_of, convolutional, sent_bytes, slowest, transformer
from tributary.torch import hooks

#: Six epochs of eight ranks.
STEPS = 66
ROUNDS = 3
#: By way: what a model's gradients are reduced by.
WAYS = {
    "plain": lambda model, group: None,
    "bfloat16": lambda model, group: model.register_comm_hook(group, default_hooks.bf16_compress_hook),
    "int8": lambda model, group: model.register_comm_hook(hooks.Int8(group), hooks.int8),
    "int8, no feedback": lambda model, group: model.register_comm_hook(hooks.Int8(group, error_feedback=False), hooks.int8),
}


def measured(backends):
    """[{model, rounds: [{way: {...}}], alone: [{...}]}]: the parts alone are measured anew in each round,
    since a machine that others use, too, is not as fast in the next minute as in this one."""
    digits, own = pictures(), next(backend for backend in backends if backend.name == "tributary")
    found = []
    for name, net in (("convolutional", convolutional), ("transformer", transformer)):
        rounds, parts = [], []
        for turn in range(ROUNDS):
            order = list(WAYS.items())[:: 1 if turn % 2 == 0 else -1]
            parts.append(alone(net, [own], digits))
            rounds.append({way: trained(net, prepare, own.group, digits) for way, prepare in order})
        found.append({"model": name, "rounds": rounds, "alone": parts})
    return found


def trained(net, prepare, group, digits):
    train, labels, test, wanted = digits
    torch.manual_seed(1)
    model = DistributedDataParallel(net(), process_group=group, bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True)
    prepare(model, group)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    dist.barrier()
    losses, sent, began = [], sent_bytes(), time.perf_counter()
    for inputs, targets in batches_of(STEPS, train, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    taken = time.perf_counter() - began
    dist.barrier()
    sent = sent_bytes() - sent
    mean = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(mean)
    return {
        "losses": (mean / dist.get_world_size()).tolist(),
        "samples_per_second": len(losses) * BATCH * dist.get_world_size() / slowest(taken),
        "sent_bytes_per_step": slowest(sent / len(losses)),
        "accuracy": accuracy(model, test, wanted),
    }
