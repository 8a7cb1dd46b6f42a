# SPDX-License-Identifier: Apache-2.0
"""What torch asks of a process group beside its collectives: its backend's name, its own name, and
the devices that it serves.

Torch leaves that to the backends of a group's devices. Ours is a group without any, so it gets one
that has a name and no operations; where torch's `Backend` cannot be made in Python, as in torch 2.6,
the group answers itself.
"""

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

#: The backend's name.
NAME = "tributary"
CPU = torch.device("cpu")


class _ByBackend(dist.ProcessGroup):
    """A group that has a backend, which keeps its names."""

    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._backend = _Backend(rank, size)
        kind = dist.ProcessGroup.BackendType.CUSTOM
        self._register_backend(CPU, kind, self._backend)
        self._set_default_backend(kind)


class _ByItself(dist.ProcessGroup):
    """A group that keeps its names."""

    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._given = ["", ""]

    def getGroupName(self) -> str:
        """The name that torch has given the group."""
        return self._given[0]

    def setGroupName(self, name: str) -> None:
        """Takes the name that torch gives the group."""
        self._given[0] = name

    def getGroupDesc(self) -> str:
        """What the program has said of the group."""
        return self._given[1]

    def setGroupDesc(self, description: str) -> None:
        """Takes what the program says of the group."""
        self._given[1] = description

    _set_group_name = setGroupName
    _set_group_desc = setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    @property
    def _device_types(self) -> list[torch.device]:
        return [CPU]


class _Backend(c10d.Backend):
    def getBackendName(self) -> str:
        return NAME


def _has_backends() -> bool:
    try:
        c10d.Backend(0, 1)
    except TypeError:
        return False
    return True


if TYPE_CHECKING or _has_backends():
    NamedGroup = _ByBackend
else:
    NamedGroup = _ByItself
