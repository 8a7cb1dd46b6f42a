# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as exceptions: one class for each status of `tributary.h`.

Each says in words whose fault it was and what to do; where Python has an exception that fits, ours
is one of that kind, too.
"""

import builtins

from tributary._native import lib


class Error(Exception):
    """Something went wrong. `status` is the number that `tributary.h` gives it."""

    status: int = 0


class InvalidError(Error, ValueError):
    """An argument is wrong."""

    status = -1


class ManagerError(Error, ConnectionError):
    """The aggregation manager cannot be reached, or refused the job."""

    status = -2


class NodeError(Error, ConnectionError):
    """An aggregation node cannot be reached, or is gone and nobody can take its place."""

    status = -3


class VersionError(Error):
    """The other side speaks another version of the protocol."""

    status = -4


class QuotaError(Error):
    """The job's quota does not allow it."""

    status = -5


class MismatchError(Error):
    """The ranks disagree about the operation."""

    status = -6


class PeerError(Error, ConnectionError):
    """A member of the group died or left."""

    status = -7


class TimeoutError(Error, builtins.TimeoutError):
    """It was not done within the time limit. The operation goes on."""

    status = -8


class ExchangeError(Error):
    """The exchange by which the ranks were to meet has failed."""

    status = -9


class UnsupportedError(Error, TypeError):
    """There is no such datatype or operator, or not together."""

    status = -10


class MemoryError(Error, builtins.MemoryError):
    """There is not enough memory."""

    status = -11


class ForkedError(Error, RuntimeError):
    """A child process uses what its parent has joined before it forked."""

    status = -12


class InternalError(Error, RuntimeError):
    """Something that the library promises itself does not hold. Please report it."""

    status = -13


class AuthError(Error, PermissionError):
    """There is no key, a wrong key, or no right to do this."""

    status = -14


class DeviceError(Error, RuntimeError):
    """A GPU or its driver failed."""

    status = -15


BY_STATUS: dict[int, type[Error]] = {kind.status: kind for kind in Error.__subclasses__()}


def failure(status: int) -> Error:
    """The exception for a status that a call on this thread has just returned."""
    words = lib.trib_last_error().decode(errors="replace")
    return BY_STATUS.get(status, InternalError)(words or lib.trib_strerror(status).decode())


def check(status: int) -> None:
    """Raises what a call's status says, unless it is success."""
    if status:
        raise failure(status)
