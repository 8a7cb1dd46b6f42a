"""Collectives of the backend where NCCL has the ranks of a host and the tree what is between hosts,
beside the same ones worked out here. All values are small whole numbers, so that sums are the same
in every order.

What a device is, its caller says: a real one (`levels_checks.py`), or one that a driver makes which
stands in for CUDA's.
"""

import torch
import torch.distributed as dist

#: Elements: fewer than a chunk, not a multiple of the ranks on a host, and several chunks.
COUNTS = (70_000, 131_077, 2_200_003)
OPS = {
    dist.ReduceOp.SUM: lambda each: each.sum(0),
    dist.ReduceOp.AVG: lambda each: each.sum(0) / each.shape[0],
    dist.ReduceOp.MIN: lambda each: each.amin(0),
    dist.ReduceOp.MAX: lambda each: each.amax(0),
    dist.ReduceOp.PRODUCT: lambda each: each.prod(0),
}


def values(rank, count, dtype=torch.float32, seed=0):
    """What a rank gives."""
    draw = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(1, 5, (count,), generator=draw).to(dtype)


class Checks:
    """`on_device(tensor)` is a copy of a tensor there, `read(tensor)` one here. Both are in the order
    of the stream that is current."""

    def __init__(self, on_device, read):
        self.on_device, self.read = on_device, read
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.compared = 0

    def same(self, ours, theirs, what):
        ours = self.read(ours)
        assert torch.equal(ours, theirs), f"{what}: {(ours != theirs).sum()} of {theirs.numel()} elements differ"
        self.compared += 1

    def all(self, count, dtype=torch.float32, forms=(False, True)):
        """Every collective once in each form, `async_op` or not."""
        for form in forms:
            for op, reduce in OPS.items():
                if op == dist.ReduceOp.AVG and not dtype.is_floating_point:
                    continue
                x = self.on_device(values(self.rank, count, dtype))
                self.done(dist.all_reduce(x, op, async_op=form))
                each = torch.stack([values(rank, count, dtype) for rank in range(self.size)])
                self.same(x, reduce(each), f"all_reduce {op} of {count} {dtype}")
            x = self.on_device(values(self.rank, self.size * count, dtype))
            out = self.on_device(torch.zeros(count, dtype=dtype))
            self.done(dist.reduce_scatter_tensor(out, x, async_op=form))
            whole = sum(values(rank, self.size * count, dtype) for rank in range(self.size))
            self.same(out, whole.view(self.size, count)[self.rank], f"reduce_scatter of {count} {dtype}")
            x = self.on_device(values(self.rank, count, dtype))
            out = self.on_device(torch.zeros(self.size * count, dtype=dtype))
            self.done(dist.all_gather_into_tensor(out, x, async_op=form))
            self.same(out, torch.cat([values(rank, count, dtype) for rank in range(self.size)]), f"all_gather of {count} {dtype}")
            for root in range(self.size):
                x = self.on_device(values(self.rank, count, dtype))
                self.done(dist.broadcast(x, root, async_op=form))
                self.same(x, values(root, count, dtype), f"broadcast of {count} {dtype} from {root}")

    def several(self, orders):
        """Operations that are under way together; each rank waits in an order of its own."""
        count = COUNTS[1]
        tensors = [self.on_device(values(self.rank, count, seed=seed)) for seed in range(4)]
        works = [dist.all_reduce(x, async_op=True) for x in tensors]
        for number in orders[self.rank % len(orders)]:
            self.done(works[number])
            expected = sum(values(rank, count, seed=number) for rank in range(self.size))
            self.same(tensors[number], expected, f"operation {number} of several")

    @staticmethod
    def done(work):
        if work is not None:
            work.wait()
