"""Trains with quantised sums: quantised_worker.py. Each rank is on a host of its own. Prints a line of
JSON: by way of summing, the loss of each step, a hash of the weights, and what a rank has sent; and
what the hook makes of a bucket alone."""

import fractions
import json
import os

import torch
import torch.distributed as dist
import tributary.torch
from digits import Convolutional, batches, pictures
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from training_worker import hash_of
from tributary.torch import hooks

EPOCHS = 4
WAYS = {
    "plain": lambda group: None,
    "feedback": lambda group: hooks.Int8(group),
    "feedback again": lambda group: hooks.Int8(group),
    "no feedback": lambda group: hooks.Int8(group, error_feedback=False),
}


def trained(way):
    """The losses, each the mean over all ranks; a hash; and the bytes sent. The process group is one
    of its own, because what is drawn follows from how many sums that had before."""
    torch.manual_seed(1)
    group = dist.new_group()
    model, state = DistributedDataParallel(Convolutional(), process_group=group, bucket_cap_mb=0.1), way(group)
    if state is not None:
        model.register_comm_hook(state, hooks.int8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    train, labels, *_ = pictures()
    losses, sent = [], tributary.torch.current().counters()["stream_bytes_sent"]
    for epoch in range(EPOCHS):
        for inputs, targets in batches(epoch, train, labels):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    sent = tributary.torch.current().counters()["stream_bytes_sent"] - sent
    mean = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    hashes = [None] * dist.get_world_size()
    dist.all_gather_object(hashes, hash_of(model.parameters()))
    assert len(set(hashes)) == 1, "weights differ between ranks"
    return {"losses": mean.tolist(), "hash": hashes[0], "sent": sent}


class Bucket:
    """As DDP hands a hook its gradients."""

    def __init__(self, gradients):
        self._gradients = gradients

    def buffer(self):
        return self._gradients

    def index(self):
        return 0

    def parameters(self):
        return [PARAMETER]


PARAMETER = torch.zeros(1)


def fed_back():
    """The mean error of an element that is far below the scale of its block, over some steps: with
    feedback the sum of all steps is off by less than a scale."""
    size, steps, found = dist.get_world_size(), 200, {}
    for dtype in (torch.float32, torch.bfloat16):
        state, total = hooks.Int8(), torch.zeros(100)
        for _ in range(steps):
            gradients = torch.full((100,), 1e-3, dtype=dtype)
            gradients[::32] = 1.0
            total += hooks.int8(state, Bucket(gradients)).wait().float()
        found[str(dtype)] = (total[1] / steps).item()
    # In memory of the host one pass of the library does what passes of torch do elsewhere.
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        torch.manual_seed(1)
        gradients, residual = torch.randn(2, 1000).mul(torch.logspace(-6, 3, 1000)).to(dtype)
        gradients[500] = torch.inf
        # Every second element is no memory in a row.
        apart, kept = torch.empty(2, 2000, dtype=dtype)[:, ::2]
        apart.copy_(gradients), kept.copy_(residual)
        hooks.feed_back(gradients, residual, 1 / 3), hooks.feed_back(apart, kept, 1 / 3)
        assert torch.equal(gradients.nan_to_num(7.0), apart.nan_to_num(7.0)) and torch.equal(residual, kept), dtype
    # The largest numbers of float16 stay finite, whatever steps before have left of them.
    largest, rest = torch.full((2, 100), 65504.0, dtype=torch.float16)
    rest.zero_()
    apart, kept = torch.empty(2, 200, dtype=torch.float16)[:, ::2]
    kept.zero_()
    for _ in range(100):
        vector = largest.clone()
        apart.copy_(largest)
        hooks.feed_back(vector, rest, 1.0), hooks.feed_back(apart, kept, 1.0)
        assert vector.isfinite().all() and torch.equal(vector, apart) and torch.equal(rest, kept)
    # A step without numbers is over with the step.
    state = hooks.Int8()
    gradients = torch.ones(100)
    gradients[40] = torch.nan
    odd = hooks.int8(state, Bucket(gradients)).wait()
    even = hooks.int8(state, Bucket(torch.ones(100))).wait()
    found["no numbers"] = [int(odd.isnan().sum()), int(even.isnan().sum())]
    # What a step has left that the program threw away is gone when the program says so.
    gradients = torch.full((100,), 1e10).mul(torch.linspace(0.5, 1, 100))
    gradients[40] = torch.nan
    hooks.int8(state, Bucket(gradients)).wait()
    state.forget()
    assert torch.equal(hooks.int8(state, Bucket(torch.ones(100))).wait(), torch.ones(100))
    # Types that are not quantised, and short buckets, have the sums that the group has.
    tributary.torch.set_sums("exact")
    for odd in (torch.tensor([1e300, 1.0, -1e300], dtype=torch.float64), torch.tensor([1e30, 1.0, -1e30])):
        mine = odd.roll(dist.get_rank()) * size
        assert torch.equal(hooks.int8(state, Bucket(mine)).wait(), exact_sum(odd, size)), odd
    tributary.torch.set_sums("plain")
    # Types that are not quantised are summed as they are, and so is what comes behind the hook.
    precise = hooks.int8(state, Bucket(torch.full((100,), 0.1, dtype=torch.float64))).wait()
    behind = torch.full((100,), 0.1)
    dist.all_reduce(behind)
    wanted = sum([torch.full((100,), 0.1)] * size, torch.zeros(100))
    found["plain"] = bool((precise - 0.1).abs().max() < 1e-15 and torch.allclose(behind, wanted, rtol=1e-6))
    tributary.torch.set_sums("int8")
    rounded = torch.linspace(0, 1, 100)
    dist.all_reduce(rounded)
    found["set"] = bool(not torch.equal(rounded, size * torch.linspace(0, 1, 100)) and rounded[0] == 0)
    tributary.torch.set_sums("plain")
    return found


def exact_sum(vector, size):
    """The sum over all ranks of a vector that each has turned further by one, rounded once."""
    turned = [vector.roll(rank).tolist() for rank in range(size)]
    return torch.tensor([float(sum(map(fractions.Fraction, each))) for each in zip(*turned)], dtype=vector.dtype)


def nearest():
    """What `nearest` returns is what its block can hold, and travels as it is."""
    torch.manual_seed(dist.get_rank())
    vector = torch.randn(1000) * torch.logspace(-30, 30, 1000)
    rounded = hooks.nearest(vector)
    assert torch.equal(hooks.nearest(rounded), rounded)
    # From one rank alone, all others give zeros: so the sum is what was given.
    for root in range(dist.get_world_size()):
        given = rounded.clone() if dist.get_rank() == root else torch.zeros(1000)
        wanted = given.clone()
        dist.broadcast(wanted, root)
        tributary.torch.set_sums("int8")
        dist.all_reduce(given)
        tributary.torch.set_sums("plain")
        if not torch.equal(given, wanted):
            return False
    return True


def main():
    os.environ["TRIB_HOST"] = f"host{os.environ['RANK']}"
    torch.set_num_threads(1)
    dist.init_process_group("tributary")
    told = {"rank": dist.get_rank(), "nearest": nearest(), "fed_back": fed_back()}
    told["ways"] = {name: trained(way) for name, way in WAYS.items()}
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
