# SPDX-License-Identifier: Apache-2.0
"""Tensors as vectors of memory, and back.

A tensor that is contiguous memory of the host, or of a CUDA device whose driver the library uses,
is its own vector. For any other one, a slice of another tensor or memory of another kind of device,
a copy travels, which is copied back when the result is there.
"""

import os
from collections.abc import Sequence

import torch

CPU = torch.device("cpu")
#: With "off" the library uses no driver, and a tensor of a device goes through a copy in the host.
SWITCH_ENV = "TRIB_CUDA"


def is_staged_by_library(tensor: torch.Tensor) -> bool:
    """Whether the library moves the tensor's memory itself, in the order of a stream. Torch for AMD's
    devices calls them CUDA, too."""
    return tensor.is_cuda and torch.version.cuda is not None and os.environ.get(SWITCH_ENV) not in ("off", "0")


def is_vector(tensor: torch.Tensor) -> bool:
    """Whether the tensor is contiguous memory that the library takes as it is. A tensor that torch has
    still to conjugate or to negate is not."""
    is_plain = not tensor.is_conj() and not tensor.is_neg()
    return tensor.is_contiguous() and is_plain and (tensor.is_cpu or is_staged_by_library(tensor))


def home(tensor: torch.Tensor) -> torch.device:
    """Where a copy of the tensor has to be."""
    return tensor.device if is_staged_by_library(tensor) else CPU


def staged(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of it that is a vector."""
    if is_vector(tensor):
        return tensor
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain.to(home(tensor), memory_format=torch.contiguous_format).contiguous()


def room(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or memory for what is to be copied to it."""
    return tensor if is_vector(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype, device=home(tensor))


def joined(tensors: Sequence[torch.Tensor], block: int) -> torch.Tensor:
    """The tensors one after the other, each with as many zeros behind it as a block of `block`
    elements takes."""
    flat = torch.zeros(len(tensors) * block, dtype=tensors[0].dtype, device=home(tensors[0]))
    for number, tensor in enumerate(tensors):
        flat[number * block : number * block + tensor.numel()].copy_(tensor.detach().reshape(-1))
    return flat


def split(flat: torch.Tensor, tensors: Sequence[torch.Tensor], block: int) -> None:
    """Copies what `joined` would have put there back to the tensors."""
    for number, tensor in enumerate(tensors):
        tensor.detach().copy_(flat[number * block : number * block + tensor.numel()].view(tensor.shape))
