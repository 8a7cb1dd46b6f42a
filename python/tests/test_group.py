# SPDX-License-Identifier: Apache-2.0
"""What is refused before the library is asked."""

import ctypes
import unittest
from unittest import mock

import numpy as np
from tributary.errors import InvalidError
from tributary.group import Group


class Groups(unittest.TestCase):
    def test_a_result_is_as_long_as_the_input(self):
        group = Group(mock.Mock(rank=0), ctypes.c_void_p(), (0,), None)
        for call in (group.allreduce, group.reduce):
            for length in (1, 999, 1001):
                room = np.zeros(2000)
                with self.assertRaisesRegex(InvalidError, "does not fit"):
                    call(np.ones(1000), out=room[:length])
                self.assertFalse(room.any())


if __name__ == "__main__":
    unittest.main()
