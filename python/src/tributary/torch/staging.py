# SPDX-License-Identifier: Apache-2.0
"""Tensors as vectors of the host's memory, and back.

A tensor that is contiguous memory of the host is its own vector. For any other one, a slice of
another tensor or memory of a device, a copy travels, which is copied back when the result is there.
"""

from collections.abc import Sequence

import torch


def is_vector(tensor: torch.Tensor) -> bool:
    """Whether the tensor is contiguous memory of the host."""
    return tensor.is_cpu and tensor.is_contiguous()


def staged(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of it that is a vector."""
    return tensor if is_vector(tensor) else tensor.detach().to("cpu", memory_format=torch.contiguous_format).contiguous()


def room(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or memory for what is to be copied to it."""
    return tensor if is_vector(tensor) else torch.empty(tensor.shape, dtype=tensor.dtype)


def joined(tensors: Sequence[torch.Tensor], block: int) -> torch.Tensor:
    """The tensors one after the other, each with as many zeros behind it as a block of `block`
    elements takes."""
    flat = torch.zeros(len(tensors) * block, dtype=tensors[0].dtype)
    for number, tensor in enumerate(tensors):
        flat[number * block : number * block + tensor.numel()].copy_(tensor.detach().reshape(-1))
    return flat


def split(flat: torch.Tensor, tensors: Sequence[torch.Tensor], block: int) -> None:
    """Copies what `joined` would have put there back to the tensors."""
    for number, tensor in enumerate(tensors):
        tensor.detach().copy_(flat[number * block : number * block + tensor.numel()].view(tensor.shape))
