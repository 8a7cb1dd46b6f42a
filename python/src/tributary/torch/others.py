# SPDX-License-Identifier: Apache-2.0
"""What the tree has no operation for: a Gloo group of the same ranks."""

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from tributary.group import Group
from tributary.torch import aside
from tributary.torch.messages import Copies, Message, Peer

#: The interfaces that Gloo uses, as torch's own backend reads it.
INTERFACES_ENV = "GLOO_SOCKET_IFNAME"
#: What is told of operations that come later.
LEFT = "this rank has left the process group"


class GlooGroup:
    """A Gloo group of the same ranks.

    Where torch has it, the group is made at once without a connection: ranks connect when the first
    of them wants something of the other. Two ranks may then send and receive while all others do
    something else. In an older torch it is made by the first operation that needs it, which all
    ranks have to call, because making it connects each with each.
    """

    def __init__(self, store: dist.Store, group: Group, timeout: timedelta) -> None:
        self._store, self._rank, self._size, self._timeout = store, group.rank, group.size, timeout
        self._backend: dist.ProcessGroupGloo | None = None
        self._peers: dict[int, Peer] | None = None
        # Whether the program has set another limit than the one that Gloo knows for messages.
        self._has_own_limit = False
        # Why there is no Gloo group, nor will be.
        self._why_not: str | None = None
        try:
            devices = _lazy_devices()
            if devices:
                self._backend, self._peers = self._made(devices), {}
        except RuntimeError as failure:
            # Who uses nothing of Gloo can do without.
            self._why_not = f"the tree has no such operation, and Gloo fails: {failure}"

    def backend(self) -> "dist.ProcessGroupGloo":
        """The group. Raises `DistBackendError` where this torch or this host has no Gloo, and once
        this rank has given the group up."""
        # Another thread may give it up meanwhile: it says why before it takes it away.
        made = self._backend
        self._check()
        if made is None:
            if not dist.is_gloo_available():
                raise dist.DistBackendError("the tree has no such operation, and this torch has no Gloo to do it with")
            made = self._backend = dist.ProcessGroupGloo(self._store, self._rank, self._size, self._timeout)
            if self._why_not is not None:
                self._backend = None
                self._check()
        return made

    def _check(self) -> None:
        if self._why_not is not None:
            raise dist.DistBackendError(self._why_not)

    def _made(self, devices: list[Any]) -> "dist.ProcessGroupGloo":
        options = dist.ProcessGroupGloo._Options()
        options._timeout, options._devices = self._timeout, devices
        return dist.ProcessGroupGloo(self._store, self._rank, self._size, options)

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets how long an operation may take that names no limit of its own."""
        self._timeout, self._has_own_limit = timeout, True
        if self._backend is not None:
            self._backend._set_default_timeout(timeout)

    def send(self, tensors: Sequence[torch.Tensor], target: int, tag: int) -> Any:
        """Sends a tensor to one member, that of a device by a copy in memory of the host."""
        given = [tensor if tensor.is_cpu else tensor.detach().cpu() for tensor in tensors]
        return self._with(target, functools.partial(self.backend().send, given, target, tag), [])

    def recv(self, tensors: Sequence[torch.Tensor], source: int, tag: int) -> Any:
        """Gets a tensor from one member."""
        room, copies = _room(tensors)
        return self._with(source, functools.partial(self.backend().recv, room, source, tag), copies)

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int) -> Any:
        """Gets a tensor from whichever member sends one."""
        room, copies = _room(tensors)
        return self._begun(self.backend().recv_anysource(room, tag), copies)

    def _with(self, other: int, begin: Callable[[], Any], copies: Copies) -> Any:
        """Begins a message from or to another member."""
        # Another thread may give the group up meanwhile.
        peers = self._peers
        if peers is not None:
            peer = peers.get(other) or peers.setdefault(other, Peer(f"gloo to {other}"))
            message = Message(copies, self._timeout)
            if peer.is_to_begin(begin, message):
                return message
        return self._begun(begin(), copies)

    def _begun(self, work: Any, copies: Copies) -> Any:
        """What the program gets of a message that Gloo has begun."""
        # Gloo's messages take the limit that their connections were made with.
        return Message(copies, self._timeout, work) if copies or self._has_own_limit else work

    def close(self) -> None:
        """Gives the group up."""
        self._why_not = LEFT
        self._backend, self._peers = None, None

    def abort(self) -> None:
        """Gives the group up without waiting for what it has under way, as its end does."""
        self._why_not = LEFT
        last, self._backend, self._peers = [self._backend], None, None
        if last[0] is not None:
            # Where no thread can be made, it ends here.
            with contextlib.suppress(RuntimeError):
                aside.thread("gloo: end", last.clear).start()


def _room(tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Copies]:
    """Where tensors are received, and what is to be copied then."""
    room = [tensor if tensor.is_cpu else torch.empty(tensor.shape, dtype=tensor.dtype) for tensor in tensors]
    return room, [(tensor, mine) for tensor, mine in zip(tensors, room, strict=True) if mine is not tensor]


def _lazy_devices() -> list[Any]:
    """Where Gloo connects, when somebody wants it to; none if this torch cannot wait for that."""
    if not dist.is_gloo_available():
        return []
    names = [name for name in os.environ.get(INTERFACES_ENV, "").split(",") if name]
    try:
        if names:
            return [dist.ProcessGroupGloo.create_device(interface=name, lazy_init=True) for name in names]
        return [dist.ProcessGroupGloo.create_default_device(lazy_init=True)]
    except TypeError:
        return []
