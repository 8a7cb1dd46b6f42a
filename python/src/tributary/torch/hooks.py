# SPDX-License-Identifier: Apache-2.0
"""Communication hooks of DDP that send gradients in fewer bytes.

    from tributary.torch import hooks

    model = DistributedDataParallel(net)
    model.register_comm_hook(hooks.Int8(), hooks.int8)

The gradients of a bucket travel as integers of 8 bits with a scale for each 32 of them, a quarter of
the bytes of float32, and nodes round their sums (docs/quantised-sums.md). With error feedback, what
this rank's own rounding has taken from a gradient is added to that of the next step, so that small
gradients of a rank arrive in the end. In memory of the host that is one pass over a bucket, on a GPU
some kernels of torch.
"""

from typing import Any

import torch
import torch.distributed as dist

from tributary._native import lib
from tributary.errors import check
from tributary.torch import reduction
from tributary.torch.process_group import ProcessGroupTributary

#: How many elements share a scale.
BLOCK = 32
#: The largest code: so many scales reach the largest element of a block.
LARGEST = 127
#: Exponents of scales that the library has.
LEAST_EXPONENT, MOST_EXPONENT = -126, 121
#: The types that are quantised.
TYPES = (torch.float32, torch.float16, torch.bfloat16)


class Int8:
    """What `int8` keeps from step to step: the process group, and with error feedback what was
    rounded away of each bucket, as much memory as the gradients take."""

    def __init__(self, process_group: dist.ProcessGroup | None = None, error_feedback: bool = True) -> None:
        group = process_group or dist.group.WORLD
        if not isinstance(group, ProcessGroupTributary):
            raise ValueError("the hook int8 is for process groups with the backend tributary")
        self.process_group = group
        self.error_feedback = error_feedback
        # By bucket: of which parameters its gradients are, and the residual. DDP cuts other buckets
        # after the first step.
        self._residuals: dict[int, tuple[tuple[int, ...], torch.Tensor]] = {}

    def forget(self) -> None:
        """Drops what was kept of steps before, as if the next one were the first. It is for a program
        that throws a step's gradients away or scales the next ones otherwise, as `GradScaler` does
        after one whose gradients are not finite: what was kept belongs to gradients that the weights
        never saw, in other units. All ranks say it between the same steps, because all round."""
        self._residuals.clear()

    def fed_back(self, number: int, parameters: list[torch.Tensor], gradients: torch.Tensor) -> None:
        """Divides the gradients of a bucket by the number of ranks, adds what was rounded away of them
        before, rounds them as they will travel, and keeps what that takes away."""
        whose = tuple(id(parameter) for parameter in parameters)
        known, residual = self._residuals.get(number, ((), gradients))
        if known != whose or not alike(residual, gradients):
            residual = torch.zeros_like(gradients)
            self._residuals[number] = (whose, residual)
        feed_back(gradients, residual, 1 / self.process_group.size())


def alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have one type and shape, and lie in one kind of memory in one order."""
    return (one.dtype, one.shape, one.device, one.stride()) == (other.dtype, other.shape, other.device, other.stride())


def feed_back(gradients: torch.Tensor, residual: torch.Tensor, factor: float) -> None:
    """Multiplies the gradients, adds the residual, rounds them, and leaves in the residual what that
    has taken away."""
    if gradients.device.type == "cpu" and gradients.is_contiguous() and alike(gradients, residual):
        code = reduction.TYPES[gradients.dtype].code
        check(lib.trib_int8_feed_back(gradients.data_ptr(), residual.data_ptr(), gradients.numel(), code, factor))
        return
    wanted = gradients.float() * factor + residual.float()
    gradients.copy_(within(*multiples(wanted), gradients.dtype))
    # What is no number must not come back for ever.
    residual.copy_((wanted - gradients.float()).to(residual.dtype).nan_to_num(0.0, 0.0, 0.0))


def nearest(vector: torch.Tensor) -> torch.Tensor:
    """The vector with each element rounded to the nearest of those that its block can hold. What it
    returns travels as it is."""
    return within(*multiples(vector), vector.dtype)


def multiples(vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For each element the nearest multiple of its block's scale, as float32, and that scale."""
    padded = torch.nn.functional.pad(vector.float(), (0, -vector.numel() % BLOCK)).view(-1, BLOCK)
    largest = padded.abs().amax(dim=1, keepdim=True)
    fraction, exponent = torch.frexp(largest)
    # The largest is fraction x 2^exponent, and 2^-7 of that is a scale of which 128 fractions reach
    # it.
    exponent = exponent - 7 + (fraction > LARGEST / 128).int()
    scale = torch.ldexp(torch.ones_like(largest), exponent.clamp(LEAST_EXPONENT, MOST_EXPONENT))
    has_scale = largest <= LARGEST * 2.0**MOST_EXPONENT
    rounded = torch.where(has_scale, (padded / scale).round() * scale, torch.nan)
    rounded, scale = (each.reshape(-1)[: vector.numel()] for each in (rounded, scale.expand_as(padded)))
    return rounded, scale


def within(rounded: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Multiples of scales as elements of this type. Float16 alone does not have all of them: the
    largest numbers that it has round to one that it has not, and with a residual they are beyond it.
    Then it is the largest multiple that the type has, if it has one."""
    elements = rounded.to(dtype)
    if dtype != torch.float16:
        return elements
    most = (torch.finfo(dtype).max / scale).floor() * scale
    return torch.where(elements.isinf() & (most > 0), most.copysign(rounded), rounded).to(dtype)


def int8(state: Int8, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The hook: the average of a bucket's gradients over the process group, by an int8 sum. Buckets
    of other types than float32, float16 and bfloat16, and those of less than a block, are summed as
    without it."""
    gradients = bucket.buffer()
    sums = "int8" if gradients.dtype in TYPES and gradients.numel() >= BLOCK else None
    if state.error_feedback and sums:
        state.fed_back(bucket.index(), bucket.parameters(), gradients)
    else:
        gradients.div_(state.process_group.size())
    work: Any = state.process_group.allreduce_as(sums, gradients)
    return work.get_future().then(lambda done: done.value()[0])


__all__ = ["Int8", "int8", "nearest"]
