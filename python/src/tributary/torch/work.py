# SPDX-License-Identifier: Apache-2.0
"""An operation of a process group that is under way."""

import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from tributary.errors import Error, MismatchError
from tributary.request import Request
from tributary.torch import aside
from tributary.torch.recorder import Record
from tributary.torch.streams import Arrival, current, devices

if TYPE_CHECKING:
    from tributary.torch.pipeline import Pipeline

#: What `wait` is called with by those that set no limit of their own.
NO_TIMEOUT = timedelta(0)
#: How long a thread is waited for that has nothing left to wait for, in seconds.
MOMENT = 1.0
#: What a rank is told beside a mismatch that the order of callbacks may have caused.
ORDER = (
    "The program has begun operations of this process group in callbacks of futures, as some hooks of DDP do. Ranks run those when "
    "a result is there, not in one order: docs/pytorch.md says how to keep operations in order"
)


class _Here(threading.local):
    """How many futures this thread is fulfilling, one within the other."""

    depth = 0


_here = _Here()


def is_in_callback() -> bool:
    """Whether this thread runs what hangs on a future."""
    return _here.depth > 0


def wants_inference_mode(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether what changes these tensors is to be in torch's inference mode."""
    return torch.is_inference_mode_enabled() or any(tensor.is_inference() for tensor in tensors)


def in_their_mode(finish: Callable[[], None], tensors: Sequence[torch.Tensor]) -> Callable[[], None]:
    """The same in torch's inference mode, if this thread is in it or the tensors were made so: torch
    lets nothing else change these."""
    if not wants_inference_mode(tensors):
        return finish

    def run() -> None:
        with torch.inference_mode():
            finish()

    return run


class Work(dist.Work):
    """An operation under way: a request of the tree, and what is to be done with its result.

    Whoever first finds the request done, a thread that waits or one that asks, finishes the work:
    it copies back, divides and fulfils the future. Over memory of a device that is done in the order
    of the stream that is current there, and so is all waiting.
    """

    def __init__(
        self,
        request: "Request[Any] | Pipeline",
        finish: Callable[[], None] | None,
        results: list[torch.Tensor],
        used: Sequence[Any],
        timeout: float | None,
        record: Record,
        completer: "Completer",
        arrival: Arrival | None = None,
    ) -> None:
        super().__init__()
        self._request = request
        # Of an operation over memory of a device.
        self._arrival = arrival
        self._finish = finish
        self._results = results
        # What the library, or streams, read and write.
        self._used = used
        self._timeout = timeout
        self._record = record
        self._completer = completer
        self._lock = threading.Lock()
        #: Whether the operation is over, as far as somebody has looked.
        self.over = False
        self._failure: BaseException | None = None
        self._future: OperationFuture | None = None
        # Whether somebody has begun to fulfil it.
        self._is_told = False

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Waits until the results are there. Raises `DistBackendError`, also when `timeout`, or
        without one that of the operation, has passed; the operation goes on then."""
        if not self.over:
            try:
                self._await(timeout.total_seconds() if timeout > NO_TIMEOUT else self._timeout)
            except Error as failure:
                self._completer.give_up()
                self._record.fail(failure)
                raise dist.DistBackendError(self._completer.words(failure)) from failure
        if self._failure is not None:
            raise dist.DistBackendError(self._completer.words(self._failure)) from self._failure
        if self._arrival is not None:
            self._arrival.join()
        return True

    def synchronize(self) -> None:
        """Waits until the results are there."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the operation is over, well or not."""
        return self.is_over() and (self._arrival is None or self._failure is not None or self._arrival.has_come())

    def is_success(self) -> bool:
        """Whether the operation is over and went well."""
        return self.is_completed() and self._failure is None

    def exception(self) -> BaseException | None:
        """What went wrong, once it has."""
        return self._failure

    def result(self) -> list[torch.Tensor]:
        """The tensors that have the results; waits for them."""
        self.wait()
        return self._results

    def get_future(self) -> "torch.futures.Future[Any]":
        """A future of the tensors with the results. A thread fulfils it, so that what hangs on it
        runs while the program does something else. It fails when the operation's limit has passed;
        the operation goes on then."""
        with self._lock:
            if self._future is not None:
                return self._future
            made = self._future = OperationFuture(self, devices(self._arrival))
        if self.over:
            self._fulfil(self._failure)
        elif self._completer.is_here() or not self._completer.watch(self, self._timeout):
            # What hangs on a future asks for another one, or the group is given up: nobody else would
            # fulfil that.
            self.complete(self._timeout)
        return made

    def complete(
        self, timeout: float | None, waiting: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    ) -> None:
        """Waits for the operation, inside what `waiting` makes, and fulfils the future, well or not."""
        try:
            stream = self._stream()
            with waiting():
                self._await_request(stream, timeout)
            self._settle()
        except Exception as failure:
            self._record.fail(failure)
            self._fulfil(failure)

    def complete_here(self) -> None:
        """Completes it on the thread that fulfils futures, which comes to it too late: it waits."""
        if self._completer.is_here():
            self.complete(self._timeout)

    def is_over(self) -> bool:
        """Whether the operation is over, after a look."""
        if not self.over and self._request.done():
            self._settle()
        return self.over

    def _await(self, timeout: float | None) -> None:
        self._await_request(self._stream(), timeout)
        self._settle()

    def _stream(self) -> int | None:
        """The stream that is to wait, of an operation over memory of a device."""
        return None if self._arrival is None else current(self._arrival.device)

    def _await_request(self, stream: int | None, timeout: float | None) -> None:
        """Waits outside torch, and raises only where the operation goes on."""
        try:
            if not isinstance(self._request, Request):
                self._request.wait_queued(timeout)
            elif stream is not None:
                self._request.wait_stream(stream, timeout)
            else:
                self._request.wait(timeout)
        except Exception:
            if not self._request.done():
                raise

    def _settle(self) -> None:
        """The request is done, or, over memory of a device, all of it is queued there."""
        with self._lock:
            if self.over:
                return
            try:
                if self._arrival is not None:
                    self._arrival.settle(self._request, None, self._finish, self._used)
                else:
                    self._request.wait()
                    if self._finish is not None:
                        self._finish()
                self._record.end()
            except Exception as failure:
                self._failure = failure
                self._record.fail(failure)
            self.over = True
            # They may hold a copy of a tensor.
            self._finish, self._used = None, ()
        self._fulfil(self._failure)

    def _fulfil(self, failure: BaseException | None) -> None:
        """Fulfils the future, if there is one, once. What hangs on it may ask for anything of this
        work, so no lock is held."""
        with self._lock:
            if self._future is None or self._is_told:
                return
            self._is_told, told = True, self._future
        _here.depth += 1
        try:
            self._tell(told, failure)
        finally:
            _here.depth -= 1

    def _tell(self, told: "OperationFuture", failure: BaseException | None) -> None:
        try:
            if failure is None:
                if self._arrival is not None:
                    # The stream of another thread may be the one that waits for the result, and what
                    # waits for the future waits for this thread's.
                    self._arrival.join()
                told.set_result(self._results)
                return
        except Exception as refused:
            failure = refused
        told.set_exception(dist.DistBackendError(self._completer.words(failure)))


class OperationFuture(torch.futures.Future[Any]):
    """A work's future. What hangs on one future may wait for another one, which the same thread would
    fulfil later."""

    def __init__(self, work: Work, devices: list[int | str | torch.device] | None) -> None:
        super().__init__(devices=devices)
        # The work holds this one.
        self._work = weakref.ref(work)

    def wait(self) -> Any:
        """Waits for the result, and fulfils this future if nobody else can."""
        work = self._work()
        if work is not None and not self.done():
            work.complete_here()
        return super().wait()


class Works(dist.Work):
    """Several works as one."""

    def __init__(self, works: Sequence[Any]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Waits for all of them; raises what the first one that failed raises."""
        for work in self._works:
            work.wait(timeout) if timeout > NO_TIMEOUT else work.wait()
        return True

    def synchronize(self) -> None:
        """Waits for all of them."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether all are over."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """Whether all are over and went well."""
        return all(work.is_success() for work in self._works)

    def exception(self) -> BaseException | None:
        """What went wrong with the first that failed."""
        return next((failure for work in self._works if (failure := work.exception())), None)

    def result(self) -> list[torch.Tensor]:
        """The tensors of all, in the order of the works; waits for them."""
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> "torch.futures.Future[Any]":
        """A future of all their tensors."""
        futures = [work.get_future() for work in self._works]
        return torch.futures.collect_all(futures).then(lambda done: [tensor for each in done.value() for tensor in each.value()])


class Completer:
    """A thread that waits for works in the order in which they were begun, of those whose futures
    somebody has asked for. It begins with the first and ends when it is closed."""

    def __init__(self, name: str, leave: Callable[[], None]) -> None:
        self._name = name
        # Makes operations fail that are under way.
        self._leave = leave
        self._works: queue.SimpleQueue[tuple[Work, float | None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._has_given_up = False
        # Held while works are taken or no more are. A signal's handler may end what it interrupts,
        # so the thread that holds this may come again.
        self._taking = threading.RLock()
        # Whether the thread takes no more works.
        self._has_ended = False
        #: Whether what hangs on futures has begun operations of the group.
        self.is_chained = False

    def words(self, failure: BaseException) -> str:
        """What a program is told of a failure."""
        return f"{failure}. {ORDER}" if self.is_chained and isinstance(failure, MismatchError) else str(failure)

    def watch(self, work: Work, timeout: float | None) -> bool:
        """Waits for the work, after those before it, until `timeout` seconds from now. It returns
        false where the thread takes no more works."""
        with self._taking:
            if self._has_ended:
                return False
            if self._thread is None:
                self._thread = aside.thread(self._name, self._run, self._take_no_more, self._end_waits)
                try:
                    self._thread.start()
                except RuntimeError:
                    # There are too many, or the interpreter exits.
                    self._thread = None
                    return False
            self._works.put((work, None if timeout is None else time.monotonic() + timeout))
            return not self._has_ended

    def is_here(self) -> bool:
        """Whether the caller is called by this thread."""
        return self._thread is threading.current_thread()

    def give_up(self) -> None:
        """Somebody has waited in vain: `close` waits for nothing either."""
        self._has_given_up = True

    def patience(self, timeout: float) -> float:
        """How long an end waits for operations that may take so many seconds."""
        return 0.0 if self._has_given_up else timeout

    def end(self, leave: Callable[[], None]) -> None:
        """Ends the thread soon: `leave` makes the works fail that it has been given. What hangs on
        their futures may take longer, and is waited for a moment only."""
        self._take_no_more()
        leave()
        if (thread := self._other()) is not None:
            aside.join(thread, MOMENT)

    def close(self, timeout: float, leave: Callable[[], None]) -> None:
        """Ends the thread after the works that it has been given. Where that takes longer than
        `timeout` seconds, `leave` is to end them."""
        self._take_no_more()
        if (thread := self._other()) is not None:
            aside.join(thread, self.patience(timeout))
            if thread.is_alive():
                leave()
                aside.join(thread)

    def _end_waits(self) -> None:
        """What hangs on a future may wait, inside torch, for another operation."""
        with contextlib.suppress(Error):
            self._leave()

    def _take_no_more(self) -> None:
        with self._taking:
            self._has_ended = True
            # It ends the thread, also one that is about to start.
            self._works.put(None)

    def _other(self) -> threading.Thread | None:
        """The thread, if it has started and is not the one that asks."""
        thread = self._thread
        return None if thread is None or thread.ident is None or self.is_here() else thread

    def _run(self) -> None:
        while (item := self._next()) is not None:
            work, deadline = item
            work.complete(None if deadline is None else max(deadline - time.monotonic(), 0.0), aside.waiting)
            # Its tensors are not kept until there is another one.
            del item, work

    def _next(self) -> tuple[Work, float | None] | None:
        with aside.waiting():
            return self._works.get()
