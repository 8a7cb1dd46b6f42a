"""Every collective with every type, operator, shape and way to call it, on every rank of a program.

What comes out is compared with a reduction of all ranks' inputs in this process alone. Values are
small whole numbers, so that every sum is exact in every type; random numbers are compared apart.
"""

import functools
import itertools
import json
import sys

import torch
import torch.distributed as dist
import tributary.torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
TYPES = [*FLOATS, *SIGNED, *UNSIGNED, *COMPLEX, torch.bool]
SHAPES = {"vector": (7,), "matrix": (3, 5), "empty": (0,), "scalar": (), "odd": (1025,), "long": (70_000,), "slice": (6, 4)}
#: Programs of so many ranks do each case only one way, at once or later; the others do both.
TURNS = (3, 8)
OPS = ["SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR", "PREMUL_SUM"]


def supported(op, dtype):
    """Whether the combination is to work, rather than to be refused."""
    if dtype in COMPLEX:
        return op in ("SUM", "AVG", "PREMUL_SUM")
    if dtype == torch.bool:
        return op not in ("AVG", "PREMUL_SUM")
    if op in ("BAND", "BOR", "BXOR"):
        return dtype not in FLOATS
    return op != "PREMUL_SUM" or dtype in FLOATS


def operator(op):
    return dist._make_nccl_premul_sum(2.0) if op == "PREMUL_SUM" else getattr(dist.ReduceOp, op)


def given(seed, rank, dtype, shape):
    """What a rank gives: the same numbers in every process."""
    numbers = torch.Generator().manual_seed(1000 * seed + rank)
    low, high = (0, 2) if dtype == torch.bool else (0, 4) if dtype in UNSIGNED else (-2, 3)
    whole = torch.randint(low, high, shape, generator=numbers)
    if dtype in COMPLEX:
        return torch.complex(whole.double(), torch.randint(low, high, shape, generator=numbers).double()).to(dtype)
    return whole.to(dtype)


def wide(tensor):
    """The tensor in a type of the same kind that torch computes everything in."""
    if tensor.dtype in COMPLEX:
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64 if tensor.dtype in FLOATS else torch.int64)


def reduced(op, tensors):
    """The reduction of all inputs, in one process."""
    dtype, size = tensors[0].dtype, len(tensors)
    stack = torch.stack([wide(tensor) for tensor in tensors])
    if op in ("SUM", "AVG", "PREMUL_SUM"):
        total = stack.sum(0) * (2 if op == "PREMUL_SUM" else 1)
        if op == "AVG":
            # A sum in the type itself, which wraps in it, divided.
            total = wide(total.to(dtype))
            if dtype in COMPLEX:
                total = torch.view_as_complex(torch.view_as_real(total) / size)
            else:
                total = total / size if dtype in FLOATS else torch.div(total, size, rounding_mode="trunc")
    elif op in ("MIN", "MAX"):
        total = stack.amin(0) if op == "MIN" else stack.amax(0)
    elif op == "PRODUCT":
        total = stack.prod(0)
    else:
        total = stack[0]
        for other in stack[1:]:
            total = {"BAND": total & other, "BOR": total | other, "BXOR": total ^ other}[op]
    return total.to(torch.bool) if dtype == torch.bool else total.to(dtype)


def placed(tensor, shape):
    """The tensor, or a slice of a larger one that is not contiguous."""
    if shape != "slice":
        return tensor.clone()
    room = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype)
    view = room[..., ::2]
    view.copy_(tensor)
    return view


class Suite:
    """One group of ranks, and the checks of it that have failed."""

    def __init__(self, group, members):
        self.group, self.members = group, members
        self.rank, self.size = dist.get_rank(group), len(members)
        self.cases, self.failures = 0, []
        self.seeds = itertools.count()

    def inputs(self, dtype, shape):
        seed = next(self.seeds)
        return [given(seed, rank, dtype, SHAPES[shape]) for rank in self.members]

    def expect(self, case, got, wanted):
        self.cases += 1
        # In an average of float16 each rank divides and rounds first: a sum may be out of range.
        near = functools.partial(torch.allclose, rtol=2e-3, atol=1e-3) if " AVG torch.float16 " in case else torch.equal
        if got.dtype != wanted.dtype or got.shape != wanted.shape or not near(got, wanted):
            self.failures.append(f"{case}: {got.flatten()[:6].tolist()} and not {wanted.flatten()[:6].tolist()}")

    def call(self, function, *arguments, asynchronous, **words):
        work = function(*arguments, group=self.group, async_op=asynchronous, **words)
        if asynchronous:
            work.wait()
            assert work.is_completed() and work.is_success()

    def reductions(self, op, dtype, shape, asynchronous):
        case = f"{op} {dtype} {shape} {'async' if asynchronous else 'sync'} of {self.size}"
        inputs = self.inputs(dtype, shape)
        wanted = reduced(op, inputs)
        tensor = placed(inputs[self.rank], shape)
        self.call(dist.all_reduce, tensor, op=operator(op), asynchronous=asynchronous)
        self.expect(f"all_reduce {case}", tensor, wanted)
        root = len(case) % self.size
        tensor = placed(inputs[self.rank], shape)
        self.call(dist.reduce, tensor, self.members[root], op=operator(op), asynchronous=asynchronous)
        self.expect(f"reduce {case}", tensor, wanted if self.rank == root else inputs[self.rank])
        if SHAPES[shape]:
            parts = [self.inputs(dtype, shape) for _ in self.members]
            mine = placed(torch.zeros_like(inputs[0]), shape)
            give = [placed(part[self.rank], shape) for part in parts]
            self.call(dist.reduce_scatter, mine, give, op=operator(op), asynchronous=asynchronous)
            self.expect(f"reduce_scatter {case}", mine, reduced(op, parts[self.rank]))
            mine = placed(torch.zeros_like(inputs[0]), shape)
            self.call(dist.reduce_scatter_tensor, mine, torch.cat(give), op=operator(op), asynchronous=asynchronous)
            self.expect(f"reduce_scatter_tensor {case}", mine, reduced(op, parts[self.rank]))

    def copies(self, dtype, shape, asynchronous):
        case = f"{dtype} {shape} {'async' if asynchronous else 'sync'} of {self.size}"
        inputs = self.inputs(dtype, shape)
        root = len(case) % self.size
        tensor = placed(inputs[self.rank], shape)
        self.call(dist.broadcast, tensor, self.members[root], asynchronous=asynchronous)
        self.expect(f"broadcast {case}", tensor, inputs[root])
        outputs = [placed(torch.zeros_like(each), shape) for each in inputs]
        self.call(dist.all_gather, outputs, placed(inputs[self.rank], shape), asynchronous=asynchronous)
        for number, output in enumerate(outputs):
            self.expect(f"all_gather {case}, of rank {number}", output, inputs[number])
        if SHAPES[shape]:
            output = torch.zeros((self.size * SHAPES[shape][0], *SHAPES[shape][1:]), dtype=dtype)
            self.call(dist.all_gather_into_tensor, output, placed(inputs[self.rank], shape), asynchronous=asynchronous)
            self.expect(f"all_gather_into_tensor {case}", output, torch.cat(inputs))

    def unequal(self, dtype):
        seed = next(self.seeds)
        inputs = [given(seed, rank, dtype, (3 * number + 1,)) for number, rank in enumerate(self.members)]
        outputs = [torch.zeros_like(each) for each in inputs]
        dist.all_gather(outputs, inputs[self.rank].clone(), group=self.group)
        for number, output in enumerate(outputs):
            self.expect(f"unequal all_gather {dtype}, of rank {number}", output, inputs[number])
        parts = [[given(seed + number, rank, dtype, (2 * number + 1,)) for rank in self.members] for number in range(self.size)]
        mine = torch.zeros(2 * self.rank + 1, dtype=dtype)
        dist.reduce_scatter(mine, [part[self.rank].clone() for part in parts], group=self.group)
        self.expect(f"unequal reduce_scatter {dtype}", mine, reduced("SUM", parts[self.rank]))

    def coalesced(self, dtype):
        several = [self.inputs(dtype, shape) for shape in ("vector", "matrix", "odd")]
        for is_async in (True, False):
            tensors = [inputs[self.rank].clone() for inputs in several]
            work = dist.all_reduce_coalesced(tensors, group=self.group, async_op=is_async)
            if work is not None:
                work.wait()
            for tensor, inputs in zip(tensors, several, strict=True):
                self.expect(f"all_reduce_coalesced {dtype}", tensor, reduced("SUM", inputs))
            records = tributary.torch.dump()[-len(several) :]
            together = max(each["begun"] for each in records) <= min(each["ended"] for each in records)
            self.expect(f"all are under way at once, {dtype}", torch.tensor(together), torch.tensor(True))

    def many_at_once(self):
        several = [self.inputs(torch.float32, "odd") for _ in range(20)]
        tensors = [inputs[self.rank].clone() for inputs in several]
        works = [dist.all_reduce(tensor, group=self.group, async_op=True) for tensor in tensors]
        futures = [work.get_future() for work in works[::2]]
        for work in reversed(works):
            work.wait()
        for future in futures:
            future.wait()
        for tensor, inputs in zip(tensors, several, strict=True):
            self.expect("twenty all_reduce at once", tensor, reduced("SUM", inputs))

    def refusals(self):
        for op, dtype in itertools.product(OPS, TYPES):
            if supported(op, dtype):
                continue
            self.cases += 1
            try:
                dist.all_reduce(torch.ones(3).to(dtype), op=operator(op), group=self.group)
                self.failures.append(f"{op} of {dtype} is not refused")
            except ValueError:
                pass

    def random_numbers(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-13), (torch.float16, 1e-2), (torch.bfloat16, 1e-1)):
            inputs = [torch.randn(5001, generator=torch.Generator().manual_seed(rank)).to(dtype) for rank in self.members]
            tensor = inputs[self.rank].clone()
            dist.all_reduce(tensor, group=self.group)
            self.cases += 1
            if not torch.allclose(tensor.double(), sum(each.double() for each in inputs), rtol=tolerance, atol=tolerance):
                self.failures.append(f"random numbers of {dtype} differ")
            every = [torch.empty_like(tensor) for _ in self.members]
            dist.all_gather(every, tensor, group=self.group)
            self.cases += 1
            if not all(torch.equal(every[0], other) for other in every):
                self.failures.append(f"ranks have other bits of {dtype}")

    def others(self):
        """What goes through Gloo."""
        tensor = torch.full((2,), self.rank, dtype=torch.int32)
        outputs = [torch.empty_like(tensor) for _ in self.members] if self.rank == 0 else None
        dist.gather(tensor, outputs, dst=self.members[0], group=self.group)
        if self.rank == 0:
            for number, output in enumerate(outputs):
                self.expect("gather", output, torch.full((2,), number, dtype=tensor.dtype))
        output = torch.empty(self.size)
        dist.all_to_all_single(output, torch.arange(float(self.size)) + 10 * self.rank, group=self.group)
        self.expect("all_to_all_single", output, 10.0 * torch.arange(self.size) + self.rank)
        right, left = self.members[(self.rank + 1) % self.size], self.members[self.rank - 1]
        if self.size > 1:
            got = torch.zeros(3)
            works = dist.batch_isend_irecv(
                [
                    dist.P2POp(dist.isend, torch.full((3,), float(self.rank)), right, self.group),
                    dist.P2POp(dist.irecv, got, left, self.group),
                ]
            )
            for work in works:
                work.wait()
            self.expect("send and recv", got, torch.full((3,), float((self.rank - 1) % self.size)))
        said = [None] * self.size
        dist.all_gather_object(said, {"rank": self.rank}, group=self.group)
        self.cases += 1
        if said != [{"rank": rank} for rank in range(self.size)]:
            self.failures.append(f"all_gather_object gave {said}")

    def run(self):
        for number, (dtype, shape, asynchronous) in enumerate(itertools.product(TYPES, SHAPES, (False, True))):
            # There are seven shapes: each type has both ways, with shapes in turn.
            if dist.get_world_size() in TURNS and (number // 2 + asynchronous) % 2:
                continue
            for op in OPS:
                if supported(op, dtype) and (shape != "long" or op in ("SUM", "MAX", "BXOR")):
                    self.reductions(op, dtype, shape, asynchronous)
            self.copies(dtype, shape, asynchronous)
        for dtype in TYPES:
            self.unequal(dtype)
            self.coalesced(dtype)
        self.many_at_once()
        self.refusals()
        self.random_numbers()
        self.others()
        dist.barrier(group=self.group)


def main():
    dist.init_process_group("tributary")
    rank, size = dist.get_rank(), dist.get_world_size()
    suites = [Suite(dist.group.WORLD, list(range(size)))]
    # A part of the ranks, in another order than the job's where there are enough of them.
    some = list(range(0, size, 2)) if size > 2 else [0]
    group = dist.new_group(some)
    if rank in some:
        suites.append(Suite(group, some))
    for suite in suites:
        suite.run()
    failures = [failure for suite in suites for failure in suite.failures]
    counts = [tributary.torch.counters(suite.group) for suite in suites]
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps({"rank": rank, "cases": sum(suite.cases for suite in suites), "failed": len(failures),
                      "failures": failures[:20], "counts": counts}), flush=True)  # fmt: skip
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
