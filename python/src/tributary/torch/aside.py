# SPDX-License-Identifier: Apache-2.0
"""Threads that end what nobody waits for.

The interpreter's exit waits for them a moment: a thread that comes back from C++ code of torch later,
to an interpreter that has gone, ends the process with SIGABRT.
"""

import atexit
import threading
import time
import weakref
from collections.abc import Callable

#: How long is waited for all of them at the exit, in seconds. One may hang for as long as a peer does.
AT_EXIT = 5.0

_started: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()


def start(name: str, run: Callable[[], object]) -> threading.Thread:
    """Calls `run` in a thread of that name."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    _started.add(thread)
    return thread


@atexit.register
def _wait() -> None:
    end = time.monotonic() + AT_EXIT
    for thread in list(_started):
        thread.join(max(0.0, end - time.monotonic()))
