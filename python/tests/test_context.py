# SPDX-License-Identifier: Apache-2.0
"""What the library is told about a job."""

import contextlib
import ctypes
import gc
import math
import threading
import unittest
from unittest import mock

from tributary.context import Context
from tributary.errors import InvalidError

#: Longer than anything takes here, in seconds.
SOON = 20


@contextlib.contextmanager
def stand_in():
    """A library that does nothing and hands out handles."""
    with mock.patch("tributary.context.lib") as lib, mock.patch("tributary.group.lib", lib), mock.patch("tributary.request.lib", lib):

        def init(params, handle):
            handle.value = 1
            return 0

        def create(context, members, size, tag, name, group, ready):
            group.value, ready.value = 2, 3
            return 0

        def test(request, over):
            over.value = 1
            return 0

        lib.trib_init.side_effect, lib.trib_group_create_named_nb.side_effect, lib.trib_test.side_effect = init, create, test
        for call in ("wait", "finalize", "group_leave", "group_free", "request_free"):
            getattr(lib, f"trib_{call}").return_value = 0
        yield lib


class Contexts(unittest.TestCase):
    def test_a_limit_is_a_c_int_of_milliseconds(self):
        for timeout, told in ((None, 0), (0.0, 1), (1.5, 1500), (1.8e8, 2**31 - 1), (math.inf, 2**31 - 1)):
            with mock.patch("tributary.context.lib") as lib:
                lib.trib_init.return_value = 0
                Context(0, 1, timeout=timeout)
            params, _ = lib.trib_init.call_args.args
            self.assertEqual(params.timeout_ms, told, timeout)

    def test_no_group_is_freed_while_a_thread_is_inside_its_call(self):
        with stand_in() as lib:
            context = Context(0, 1)
            group = context.group()
            inside, may_return, is_freed = threading.Event(), threading.Event(), threading.Event()

            def allreduce(*arguments):
                inside.set()
                may_return.wait(SOON)
                return 0

            def free(handle):
                is_freed.set()
                return 0

            lib.trib_allreduce_nb.side_effect, lib.trib_group_free.side_effect = allreduce, free
            vector = (ctypes.c_double * 4)()
            caller = threading.Thread(target=lambda group: group.iallreduce(vector, dtype="float64"), args=[group])
            caller.start()
            self.assertTrue(inside.wait(SOON))
            context.abandon()
            lib.trib_group_leave.assert_called_once()
            lib.trib_finalize.assert_called_once()
            with self.assertRaisesRegex(InvalidError, "left already"):
                context.group()
            del group
            gc.collect()
            self.assertFalse(is_freed.is_set())
            may_return.set()
            caller.join()
            del caller
            gc.collect()
            self.assertTrue(is_freed.wait(SOON))
            context.close()
            lib.trib_group_free.assert_called_once()
            lib.trib_finalize.assert_called_once()

    def test_who_drops_a_group_that_was_abandoned_does_not_wait_for_its_device(self):
        with stand_in() as lib:
            may_return, is_freed = threading.Event(), threading.Event()

            def free(handle):
                may_return.wait(SOON)
                is_freed.set()
                return 0

            lib.trib_group_free.side_effect = free
            context = Context(0, 1)
            group = context.group()
            context.abandon()
            del group
            gc.collect()
            self.assertFalse(is_freed.is_set())
            may_return.set()
            self.assertTrue(is_freed.wait(SOON))


if __name__ == "__main__":
    unittest.main()
