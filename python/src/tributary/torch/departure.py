# SPDX-License-Identifier: Apache-2.0
"""How a process group is left at once, also where its program only drops it.

Torch 2.6 tells no backend but its own that a process group is destroyed.
"""

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from tributary.context import Context
from tributary.errors import Error
from tributary.group import Group
from tributary.torch import aside, jobs
from tributary.torch.others import GlooGroup
from tributary.torch.work import Completer

if TYPE_CHECKING:
    from tributary.torch.levels import Levels

#: How long a dropped process group is waited for, in seconds: leaving a job may take some.
PATIENCE = 5.0


class Departure:
    """What a process group has that has to be left; it knows nothing of the process group itself."""

    def __init__(self, completer: Completer, group: Group, gloo: GlooGroup, context: Context | None) -> None:
        self._completer, self._group, self._gloo = completer, group, gloo
        # The job, if the process group has joined it.
        self._context = context
        self._process = os.getpid()
        #: NCCL on each host, once it is used.
        self.levels: Levels | None = None

    def give_up(self) -> None:
        """What is outstanding fails, except what goes through Gloo."""
        self._give_up(self._group.leave)

    def leave(self) -> None:
        """Leaves all of it: what is outstanding fails, here and on the other members. Other threads
        may be inside the process group's calls, and no device is waited for."""
        # The job is left whatever becomes of the rest.
        with contextlib.ExitStack() as rest:
            if self._context is not None:
                rest.callback(jobs.abandon, self._context)
            rest.callback(self._gloo.abort)
            self._completer.end(lambda: self._give_up(self._group.abandon))

    def leave_aside(self) -> None:
        """The same in another thread, which is waited for. A process group may be dropped between
        any two steps of a thread, by its garbage collection: that one may hold locks which leaving
        takes, and then it goes on after a while."""
        if os.getpid() != self._process:
            # A forked child has a copy of the process group, and may touch nothing of it.
            return

        def run() -> None:
            # Nobody is there to be told.
            with contextlib.suppress(Error, RuntimeError):
                self.leave()

        # At the interpreter's end there are no more threads; then all is left as it is.
        with contextlib.suppress(RuntimeError):
            thread = aside.thread("process group: end", run)
            thread.start()
            thread.join(PATIENCE)

    def _give_up(self, leave_group: Callable[[], None]) -> None:
        with contextlib.ExitStack() as rest:
            if self.levels is not None:
                rest.callback(self.levels.leave)
            leave_group()
