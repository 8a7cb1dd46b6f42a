# SPDX-License-Identifier: Apache-2.0
"""Threads that the interpreter's exit waits for, a moment.

A thread that comes back from C++ code of torch later, to an interpreter that has gone, ends the
process with SIGABRT. Giving back what torch has is such code, too.
"""

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator

#: How long the exit waits for all of them, in seconds. One may hang for as long as a peer does.
AT_EXIT = 5.0
#: How long it waits first for those that are told to stop. What they wait for others may wait for,
#: too, who hear of the exit the sooner.
ONCE_TOLD = 1.0
#: How often it looks which have ended, in seconds.
INTERVAL = 0.01

_Stop = Callable[[], None]
_made: "weakref.WeakKeyDictionary[threading.Thread, weakref.WeakMethod[_Stop] | None]" = weakref.WeakKeyDictionary()
# Guards what follows.
_changes = threading.Condition()
_waiting: set[threading.Thread] = set()
_is_exiting = False


def thread(name: str, run: Callable[[], object], stop: _Stop | None = None) -> threading.Thread:
    """A thread of that name that calls `run`, once it is started. `stop`, a method, is called at the
    exit, and makes `run` return once it has nothing left to do."""
    made = threading.Thread(target=run, name=name, daemon=True)
    _made[made] = None if stop is None else weakref.WeakMethod(stop)
    return made


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """What such a thread does now it does outside torch: the exit does not wait for it, and it comes
    no further once that has begun."""
    me = threading.current_thread()
    with _changes:
        _waiting.add(me)
    try:
        yield
    finally:
        with _changes:
            _changes.wait_for(lambda: not _is_exiting)
            _waiting.discard(me)


@atexit.register
def _wait() -> None:
    begin = time.monotonic()
    # In a forked child none of them runs.
    told = [(thread, stop) for thread, stop in _made.items() if thread.is_alive()]
    if not told:
        return
    for _, stop in told:
        if stop is not None and (call := stop()) is not None:
            call()
    for thread, stop in told:
        if stop is not None:
            thread.join(max(0.0, begin + ONCE_TOLD - time.monotonic()))
    global _is_exiting
    with _changes:
        _is_exiting = True
        while time.monotonic() < begin + AT_EXIT and any(thread.is_alive() and thread not in _waiting for thread, _ in told):
            _changes.wait(INTERVAL)
