# SPDX-License-Identifier: Apache-2.0
"""What of an operation is done in the order of a device's streams.

A result is there for what a stream does next, not for the host: torch's own backends for devices
promise the same. So neither waiting for a work nor finishing it waits for the device.
"""

from collections.abc import Callable
from typing import Any

import torch

from tributary.request import Request


def current(device: torch.device) -> int:
    """The stream in which torch queues work of this thread, as the driver names it."""
    return torch.cuda.current_stream(device).cuda_stream


def future(device: torch.device | None) -> "torch.futures.Future[Any]":
    """A future; what waits for it gets a device's result in the order of a stream, too."""
    return torch.futures.Future(devices=[device] if device is not None else None)


class Arrival:
    """The result of an operation over memory of a device, once it is queued there."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._event: torch.cuda.Event | None = None

    def settle(
        self, request: Request[Any], timeout: float | None, finish: Callable[[], None] | None, held: list[torch.Tensor]
    ) -> None:
        """Makes the current stream wait for the result, and queues there what is to be done with
        it."""
        stream = torch.cuda.current_stream(self.device)
        request.wait_stream(stream.cuda_stream, timeout)
        with torch.cuda.device(self.device):
            if finish is not None:
                finish()
            for tensor in held:
                # It may come from another stream's memory, which has to wait for this one, too.
                tensor.record_stream(stream)
            self._event = torch.cuda.Event()
            self._event.record(stream)

    def join(self) -> None:
        """Makes the current stream wait for what `settle` has queued, perhaps on another one."""
        if self._event is not None:
            torch.cuda.current_stream(self.device).wait_event(self._event)

    def has_come(self) -> bool:
        """Whether the result is there."""
        return self._event is not None and self._event.query()
