# SPDX-License-Identifier: Apache-2.0
"""What torch's operators and types are to the tree."""

from typing import NamedTuple

import torch
import torch.distributed as dist

from tributary.datatypes import DATATYPES, OPERATORS, DataType, operator
from tributary.errors import UnsupportedError

_Kind = dist.ReduceOp.RedOpType
_SUM = _Kind.SUM

#: The operators that the tree has under another name.
NAMES = {
    _Kind.SUM: "sum",
    _Kind.AVG: "sum",
    _Kind.PREMUL_SUM: "sum",
    _Kind.PRODUCT: "prod",
    _Kind.MIN: "min",
    _Kind.MAX: "max",
    _Kind.BAND: "band",
    _Kind.BOR: "bor",
    _Kind.BXOR: "bxor",
}
TYPES: dict[torch.dtype, DataType] = {
    getattr(torch, name): dtype for name, dtype in DATATYPES.items() if hasattr(torch, name)
}
#: Types that torch stores and does not compute with; NumPy does.
_WITHOUT_ARITHMETIC = (torch.uint16, torch.uint32, torch.uint64)


class Reduction(NamedTuple):
    """How the tree does a reduction, and what comes before and after."""

    dtype: DataType
    #: The operator's code.
    code: int
    #: What the input is multiplied with first.
    factor: "float | torch.Tensor | None"
    #: Whether the sum is divided by the number of members.
    averages: bool


def reduction(op: dist.ReduceOp, dtype: torch.dtype, size: int) -> Reduction:
    """How the tree does this among `size` members. Raises `ValueError` where it cannot, with words."""
    # Most are sums, and to ask an operator for its kind takes longer than to compare it.
    if op == _SUM and (found := _SUMS.get(dtype)) is not None:
        return found
    kind = op if isinstance(op, _Kind) else op.__getstate__()[0]
    name = NAMES.get(kind)
    if name is None:
        raise ValueError(f"tributary has no operator {kind}")
    if dtype not in TYPES:
        raise ValueError(f"tributary does not reduce {dtype}: it has {', '.join(str(t) for t in TYPES)}")
    own = TYPES[dtype]
    averages = kind == _Kind.AVG
    if averages and dtype is torch.bool:
        raise ValueError("there is no average of torch.bool")
    try:
        code = operator(name, own)
    except UnsupportedError as failure:
        raise ValueError(str(failure)) from None
    factor = op.__getstate__()[1] if kind == _Kind.PREMUL_SUM else None
    if factor is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"PREMUL_SUM takes floating-point tensors, not {dtype}")
    if averages and dtype is torch.float16:
        # The sum of what is in its range may not be; torch's own definition divides first.
        factor, averages = 1 / size, False
    return Reduction(own, code, factor, averages)


_SUMS = {
    kind: Reduction(own, OPERATORS["lor" if own.name == "bool" else "sum"], None, False) for kind, own in TYPES.items()
}


def average(size: int, total: torch.Tensor) -> None:
    """Divides a sum by the number of members, whole numbers towards zero."""
    if total.is_complex():
        # Torch divides complex numbers as if the divisor were one, which rounds otherwise.
        total = torch.view_as_real(total)
    if total.is_floating_point():
        total.div_(size)
    elif total.dtype in _WITHOUT_ARITHMETIC:
        numbers = total.cpu().numpy()
        numbers //= size
        if not total.is_cpu:
            total.copy_(torch.from_numpy(numbers))
    else:
        # Torch takes a divisor as a number of the tensor's type, in which a large group's has no room.
        wide = total if size <= torch.iinfo(total.dtype).max else total.long()
        wide.div_(size, rounding_mode="trunc")
        if wide is not total:
            total.copy_(wide)
