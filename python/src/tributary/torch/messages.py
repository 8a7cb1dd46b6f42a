# SPDX-License-Identifier: Apache-2.0
"""Messages between two members of a Gloo group that connect when they need to."""

import collections
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from tributary.torch.work import NO_TIMEOUT

#: Tensors, and memory of the host from which each is to be filled.
Copies = list[tuple[torch.Tensor, torch.Tensor]]


class Peer:
    """Another member that this rank connects to. Where that one is to call back, the first message
    waits until it wants something of this rank, too: a thread waits for that, because the program
    may have something else to do before."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: collections.deque[tuple[Callable[[], Any], Message]] = collections.deque()
        self._thread: threading.Thread | None = None
        self._is_connected = False

    def is_to_begin(self, begin: Callable[[], Any], message: "Message") -> bool:
        """Whether the thread begins it, after those before it. Else the caller does."""
        with self._lock:
            if self._is_connected:
                return False
            self._waiting.append((begin, message))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            return True

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_connected = True
                    return
                begin, message = self._waiting.popleft()
            message.begin(begin)


class Message(dist.Work):
    """A message between two members that may have to wait until these are connected. One that is
    received for memory of a device is copied there when somebody waits for it."""

    def __init__(self, copies: Copies, timeout: timedelta, work: Any = None) -> None:
        super().__init__()
        self._copies, self._timeout, self._work = copies, timeout, work
        self._failure: Exception | None = None
        self._begun = threading.Event()
        if work is not None:
            self._begun.set()

    def begin(self, begin: Callable[[], Any]) -> None:
        """Begins it."""
        try:
            self._work = begin()
        except Exception as failure:
            self._failure = failure
        self._begun.set()

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Waits until it is done; what has come for a device is there for what its current stream
        does next."""
        limit = (timeout if timeout > NO_TIMEOUT else self._timeout).total_seconds()
        if not self._begun.wait(limit):
            raise dist.DistBackendError(f"not done after {limit:g} s: the other rank has begun no message with this one")
        if self._failure is not None:
            raise dist.DistBackendError(str(self._failure)) from self._failure
        self._work.wait(timeout if timeout > NO_TIMEOUT else self._timeout)
        while self._copies:
            target, room = self._copies.pop()
            target.detach().copy_(room)
        return True

    def synchronize(self) -> None:
        """Waits until it is done."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it has come to this host, or has failed."""
        return self._failure is not None or (self._begun.is_set() and bool(self._work.is_completed()))

    def exception(self) -> BaseException | None:
        """What went wrong, once it has."""
        return self._failure

    def _source_rank(self) -> int:
        return int(self._work._source_rank())

    source_rank = _source_rank
