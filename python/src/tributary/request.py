# SPDX-License-Identifier: Apache-2.0
"""An operation in flight."""

import ctypes
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tributary._native import lib
from tributary.errors import TimeoutError, check, failure

if TYPE_CHECKING:
    from tributary.context import Context

T = TypeVar("T")

#: How long one call into the library waits. Between two of them Python handles signals, so that
#: Ctrl-C ends a wait.
SLICE_MS = 100


class Request(Generic[T]):
    """An operation in flight, and what its call returns when it is done.

    It holds the vectors of the call, which the library reads and writes until then. One that is
    dropped goes on: its context holds them instead. Without a handle it has not begun.
    """

    __slots__ = ("__weakref__", "_context", "_handle", "_held", "_status", "_value")

    def __init__(self, context: "Context", handle: ctypes.c_void_p, held: object, value: T) -> None:
        self._context = context
        self._handle = handle
        self._held = held
        self._value = value
        self._status: int | None = None

    def done(self) -> bool:
        """Whether the operation is over, well or not. It drives progress and never waits."""
        if self._status is None:
            over = ctypes.c_int()
            status = lib.trib_test(self._handle, over)
            if over.value:
                self._end(status)
            else:
                check(status)
        return self._status is not None

    def wait(self, timeout: float | None = None) -> T:
        """Waits until the operation is over and returns its result.

        Raises what went wrong, and `TimeoutError` when it is not over after `timeout` seconds; it
        goes on then, and can be waited for again. Other threads run meanwhile.
        """
        if self._status is None and self._await(timeout, lib.trib_wait, self._handle):
            self._end(0)
        return self._result()

    def wait_stream(self, stream: int, timeout: float | None = None) -> T:
        """Makes a stream of a CUDA device wait for the result, and returns it: what is queued there
        from now on finds it. The call itself waits until all that is left to do is queued on the
        device. Raises as `wait` does. An operation over memory of the host is waited for.
        """
        if self._status is None:
            # The vectors are held on: copies from and to them may be under way.
            self._await(timeout, lib.trib_wait_stream, self._handle, stream)
        return self._result()

    def _result(self) -> T:
        if self._status:
            # Once more for the words, which belong to the thread that is told.
            raise failure(lib.trib_wait(self._handle, 0))
        return self._value

    def _await(self, timeout: float | None, call: Callable[..., int], *arguments: Any) -> bool:
        """Waits in slices. It returns whether the call has succeeded; else the operation is over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = SLICE_MS if deadline is None else max(int(1000 * (deadline - time.monotonic())), 0)
            waited = min(left, SLICE_MS)
            status = call(*arguments, waited)
            if status == 0:
                return True
            if self.done():
                return False
            if status != TimeoutError.status:
                raise failure(status)
            if timeout is not None and left <= SLICE_MS:
                # The library names the late ranks, but knows only the last slice.
                words = str(failure(status)).replace(f"after {waited} ms", f"after {1000 * timeout:.0f} ms", 1)
                raise TimeoutError(words)

    def _end(self, status: int) -> None:
        self._status = status
        # The library is done with the vectors.
        self._held = None

    def __del__(self) -> None:
        if not self._handle:
            return
        if self._status is None:
            self._context._adopt(self._handle, self._held)
        else:
            lib.trib_request_free(self._handle)
