# SPDX-License-Identifier: Apache-2.0
"""What of an operation is done in the order of a device's streams.

A result is there for what a stream does next, not for the host: torch's own backends for devices
promise the same. So neither waiting for a work nor finishing it waits for the device.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch

from tributary.errors import UnsupportedError


def current(device: torch.device) -> int:
    """The stream in which torch queues work of this thread, as the driver names it."""
    return torch.cuda.current_stream(device).cuda_stream


def devices(arrival: "Arrival | None") -> list[int | str | torch.device] | None:
    """The devices of a future: what waits for it gets a device's result in the order of a stream, too."""
    return None if arrival is None else [arrival.device]


def refuse_capture() -> None:
    """Raises `UnsupportedError` while the current stream is captured into a CUDA graph."""
    if torch.cuda.is_current_stream_capturing():
        raise UnsupportedError(
            "the stream is being captured into a CUDA graph, which cannot hold a collective: other ranks take part in it, "
            "each time anew; end the capture before the call"
        )


class Pending(Protocol):
    """An operation under way over memory of a device."""

    def wait_stream(self, stream: int, timeout: float | None = None) -> Any:
        """Makes a stream, as the driver names it, wait for the result."""


class Arrival:
    """The result of an operation over memory of a device, once it is queued there."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._event: torch.cuda.Event | None = None

    def settle(
        self, request: Pending, timeout: float | None, finish: Callable[[], None] | None, used: Sequence[torch.Tensor]
    ) -> None:
        """Makes the current stream wait for the result, and queues there what is to be done with
        it."""
        stream = torch.cuda.current_stream(self.device)
        request.wait_stream(stream.cuda_stream, timeout)
        with torch.cuda.device(self.device):
            if finish is not None:
                finish()
            for tensor in used:
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


class Side:
    """A stream of the backend's own."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        #: As the driver names it.
        self.handle: int = self._stream.cuda_stream

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """What torch queues meanwhile comes to this stream."""
        with torch.cuda.stream(self._stream):
            yield

    @contextlib.contextmanager
    def after_current(self) -> Iterator[None]:
        """The same, behind what the stream holds that is current before."""
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self._device))
        self._stream.wait_event(event)
        with self.current():
            yield

    def comes_after(self, event: "torch.cuda.Event") -> None:
        """What is queued from now on comes behind this event."""
        self._stream.wait_event(event)

    def event(self) -> "torch.cuda.Event":
        """One that comes when all is done that is queued."""
        event = torch.cuda.Event()
        event.record(self._stream)
        return event

    def wait_event(self, stream: int, event: "torch.cuda.Event") -> None:
        """Makes a stream, as the driver names it, wait for an event."""
        known = torch.cuda.current_stream(self._device)
        if stream != known.cuda_stream:
            # Torch takes 0, the default stream, for a wish for a new one.
            is_default = stream == 0
            known = torch.cuda.default_stream(self._device) if is_default else torch.cuda.ExternalStream(stream, device=self._device)
        known.wait_event(event)

    def uses(self, tensor: torch.Tensor) -> None:
        """Torch may not give the tensor's memory to others before this stream is done with it."""
        tensor.record_stream(self._stream)
