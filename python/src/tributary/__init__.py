# SPDX-License-Identifier: Apache-2.0
"""Collectives that are reduced inside the network.

    import numpy
    import tributary

    with tributary.Context() as context:  # rank and size come from trib run, torchrun, mpirun or srun
        world = context.group()
        gradient = numpy.ones(1 << 20, "float32")
        world.allreduce(gradient)

`Context` is a rank of a job, `Group` a group of its ranks, `Request` an operation in flight.
`tributary.torch` is a backend of `torch.distributed`; it is imported by itself.
"""

from tributary.context import Context, Exchange, Forecast
from tributary.datatypes import DATATYPES, OPERATORS
from tributary.errors import (
    AuthError,
    DeviceError,
    Error,
    ExchangeError,
    ForkedError,
    InternalError,
    InvalidError,
    ManagerError,
    MemoryError,
    MismatchError,
    NodeError,
    PeerError,
    QuotaError,
    TimeoutError,
    UnsupportedError,
    VersionError,
)
from tributary.group import Group
from tributary.launch import Launch, detect
from tributary.request import Request

__all__ = [
    "DATATYPES",
    "OPERATORS",
    "AuthError",
    "Context",
    "DeviceError",
    "Error",
    "Exchange",
    "ExchangeError",
    "Forecast",
    "ForkedError",
    "Group",
    "InternalError",
    "InvalidError",
    "Launch",
    "ManagerError",
    "MemoryError",
    "MismatchError",
    "NodeError",
    "PeerError",
    "QuotaError",
    "Request",
    "TimeoutError",
    "UnsupportedError",
    "VersionError",
    "detect",
]
