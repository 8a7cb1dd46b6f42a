# SPDX-License-Identifier: Apache-2.0
"""Operations on two levels that are under way, and the thread that queues what comes after the tree."""

import collections
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

import torch

from tributary.errors import Error, PeerError, TimeoutError
from tributary.request import Request
from tributary.torch import aside
from tributary.torch.others import LEFT
from tributary.torch.streams import Side
from tributary.torch.work import MOMENT, wants_inference_mode


class Chunk:
    """A part of an operation: what the tree does, or where there is none an event behind what comes
    before it, and what NCCL does then."""

    def __init__(self, before: "Request[Any] | torch.cuda.Event", after: Callable[[], None] | None) -> None:
        self.before = before
        self.after = after


class Pipeline:
    """An operation under way, which can be waited for like a request."""

    def __init__(self, finisher: "Finisher", chunks: list[Chunk], held: tuple[torch.Tensor, ...]) -> None:
        self.chunks = collections.deque(chunks)
        self.held = held
        #: Is set when all is queued, or something went wrong.
        self.over = threading.Event()
        self.failure: BaseException | None = None
        #: Comes when the result is there.
        self.event: Any = None
        #: What torch asks of who changes tensors that were made so.
        self.is_inference = wants_inference_mode(held)
        self._finisher = finisher

    def done(self) -> bool:
        """Whether the tree is done with this operation and those before it."""
        return self.over.is_set()

    def wait_stream(self, stream: int, timeout: float | None = None) -> None:
        """Makes a stream wait for the result. The call itself waits for the tree alone. Raises what
        went wrong, and `TimeoutError` after `timeout` seconds; the operation goes on then."""
        self.wait_queued(timeout)
        self._finisher.side.wait_event(stream, self.event)

    def wait_queued(self, timeout: float | None = None) -> None:
        """The same for no stream."""
        if not aside.wait(self.over, timeout):
            raise self._finisher.late(timeout or 0.0)
        if self.failure is not None:
            raise self.failure


class Finisher:
    """A thread that queues, in the order in which operations were begun, what comes after the tree of
    each: the ranks of a host have to queue NCCL's operations alike, and at once, because others wait
    for them whether this rank's program does or not. It begins with the first and ends when it is
    closed.

    Where something goes wrong the ranks would no longer queue alike, so that `leave` is called and
    all that follows fails as well.
    """

    def __init__(self, before: Side, side: Side, leave: Callable[[], None]) -> None:
        # Where what comes before the tree is queued.
        self._before = before
        #: Where results come.
        self.side = side
        #: What went wrong first.
        self.failure: BaseException | None = None
        self._leave = leave
        self._pipelines: queue.SimpleQueue[Pipeline | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._waits_for: Request[Any] | None = None
        # Held while an operation is added, or no more are. A signal's handler may end what it
        # interrupts, so the thread that holds this may come again.
        self._adding = threading.RLock()
        self._has_ended = False

    def start(self) -> None:
        """Starts the thread, before anything is begun that it has to finish. One thread at a time
        calls this."""
        if self._thread is None:
            thread = aside.thread("tributary: levels", self._run, self.end)
            thread.start()
            self._thread = thread

    def add(self, pipeline: Pipeline) -> None:
        """Finishes an operation after those before it. After the end of the thread it has failed."""
        with self._adding:
            if not self._has_ended:
                self._pipelines.put(pipeline)
                return
        pipeline.failure = self.failure or PeerError(LEFT)
        self._end(pipeline)

    def fail(self, failure: BaseException) -> None:
        """Something went wrong."""
        with self._adding:
            is_first = self.failure is None
            # Its frames have tensors.
            self.failure = self.failure or failure.with_traceback(None)
        if is_first:
            # What went wrong is told, not what comes of it.
            with contextlib.suppress(Error, RuntimeError):
                self._leave()

    def late(self, timeout: float) -> TimeoutError:
        """The error of somebody who has waited so many seconds."""
        words = "an operation on two levels is not done after 0 ms; it goes on, wait again or end the job"
        if (request := self._waits_for) is not None:
            try:
                # The tree names the ranks that are late.
                request.wait_stream(self.side.handle, 0.0)
            except TimeoutError as late:
                words = str(late)
            except Error:
                pass
        return TimeoutError(words.replace("after 0 ms", f"after {1000 * timeout:.0f} ms", 1))

    def end(self) -> None:
        """The thread ends after what it has been given."""
        with self._adding:
            self._has_ended = True
            self._pipelines.put(None)

    def close(self, timeout: float) -> None:
        """Waits for the end of the thread. Where that takes longer than `timeout` seconds, all of it
        is left."""
        self.end()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            aside.join(thread, timeout)
            if thread.is_alive():
                self.fail(TimeoutError(f"operations were not done {timeout:g} s after the end of their process group"))
                aside.join(thread, MOMENT)

    def _run(self) -> None:
        while (pipeline := self._next()) is not None:
            self._finish(pipeline)
            # Its tensors are not kept until there is another one.
            del pipeline

    def _next(self) -> Pipeline | None:
        with aside.waiting():
            return self._pipelines.get()

    def _finish(self, pipeline: Pipeline) -> None:
        try:
            with torch.inference_mode(pipeline.is_inference), self.side.current():
                while pipeline.chunks:
                    chunk = pipeline.chunks[0]
                    # The interpreter's exit stops the thread here, also where nothing is waited for.
                    with aside.waiting():
                        if isinstance(chunk.before, Request):
                            self._waits_for = chunk.before
                            chunk.before.wait_stream(self.side.handle)
                            self._waits_for = None
                    if self.failure is not None:
                        raise self.failure
                    if not isinstance(chunk.before, Request):
                        self.side.comes_after(chunk.before)
                    if chunk.after is not None:
                        chunk.after()
                    pipeline.chunks.popleft()
                pipeline.event = self.side.event()
        except Exception as failure:
            self.fail(failure)
            pipeline.failure = self.failure
        self._end(pipeline)

    def _end(self, pipeline: Pipeline) -> None:
        # Where all went well, results come behind what was queued before the tree.
        self.keep(pipeline.held, [self.side] if pipeline.failure is None else [self.side, self._before])
        pipeline.held = ()
        pipeline.over.set()

    @staticmethod
    def keep(tensors: tuple[torch.Tensor, ...], sides: list[Side]) -> None:
        """What is queued there may still read and write these tensors, whether somebody waits or not."""
        with contextlib.suppress(RuntimeError):
            for tensor in tensors:
                for side in sides:
                    side.uses(tensor)
