# SPDX-License-Identifier: Apache-2.0
"""Threads that the interpreter's exit waits for, a moment.

A thread that comes back from C++ code of torch later, to an interpreter that has gone, ends the
process with SIGABRT. Giving back what torch has is such code, too.
"""

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator

#: How long the exit waits for all of them, in seconds. One may hang for as long as a peer does.
AT_EXIT = 5.0
#: How long it waits first for those that are told to stop. What they wait for others may wait for,
#: too, who hear of the exit the sooner.
ONCE_TOLD = 1.0
#: How often it looks which have ended, in seconds, and how often `wait` and `join` look whether it has begun.
INTERVAL, JOINING = 0.01, 0.1

_Method = Callable[[], None]
# By thread how it is told to stop, and how to give up, if it can be told.
_made: "weakref.WeakKeyDictionary[threading.Thread, list[weakref.WeakMethod[_Method]]]" = weakref.WeakKeyDictionary()
# Guards what follows.
_changes = threading.Condition()
_waiting: set[threading.Thread] = set()
_is_exiting = False


def thread(name: str, run: Callable[[], object], *told: _Method) -> threading.Thread:
    """A thread of that name that calls `run`, once it is started. `told` are methods that the exit
    calls: the first makes `run` return once it has nothing left to do; the second, a moment later,
    ends what it waits for inside torch."""
    made = threading.Thread(target=run, name=name, daemon=True)
    _made[made] = [weakref.WeakMethod(method) for method in told]
    return made


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """What such a thread does now it does outside torch: the exit does not wait for it. Once that has
    begun, the thread comes no further, and nobody may wait for it."""
    me = threading.current_thread()
    with _changes:
        _waiting.add(me)
    try:
        yield
    finally:
        with _changes:
            _changes.wait_for(lambda: not _is_exiting)
            _waiting.discard(me)


def wait(event: threading.Event, timeout: float | None = None) -> bool:
    """Whether an event that such a thread sets has come, until the exit begins or `timeout` seconds
    are over."""
    _until(event.is_set, event.wait, timeout)
    return event.is_set()


def join(thread: threading.Thread, timeout: float | None = None) -> None:
    """Waits for the end of such a thread, until the exit begins or `timeout` seconds are over."""
    _until(lambda: not thread.is_alive(), thread.join, timeout)


def _until(has_come: Callable[[], bool], wait_for: Callable[[float], object], timeout: float | None) -> None:
    end = None if timeout is None else time.monotonic() + timeout
    while not has_come() and not _is_exiting:
        left = JOINING if end is None else min(JOINING, end - time.monotonic())
        if left <= 0:
            return
        wait_for(left)


@atexit.register
def _wait() -> None:
    global _is_exiting
    begin = time.monotonic()
    # In a forked child none of them runs. Others may be made meanwhile.
    made = [thread for reference in _made.keyrefs() if (thread := reference()) is not None]
    alive = [thread for thread in made if thread.is_alive()]
    if not alive:
        return
    try:
        for thread in [thread for thread in alive if _tell(thread, 0)]:
            thread.join(max(0.0, begin + ONCE_TOLD - time.monotonic()))
    finally:
        with _changes:
            _is_exiting = True
            inside = [thread for thread in alive if thread.is_alive() and thread not in _waiting]
        for thread in inside:
            _tell(thread, 1)
        with _changes:
            while time.monotonic() < begin + AT_EXIT and any(thread.is_alive() and thread not in _waiting for thread in alive):
                _changes.wait(INTERVAL)


def _tell(thread: threading.Thread, step: int) -> bool:
    """Whether a thread can be told that; it has been, then."""
    methods = [reference() for reference in _made.get(thread, [])[step : step + 1]]
    for method in methods:
        if method is not None:
            method()
    return bool(methods)


def _forget() -> None:
    """A forked child has none of the threads; one of them may have held the lock."""
    global _changes
    _changes = threading.Condition()
    _waiting.clear()


os.register_at_fork(after_in_child=_forget)
