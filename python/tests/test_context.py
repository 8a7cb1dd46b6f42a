# SPDX-License-Identifier: Apache-2.0
"""What the library is told about a job."""

import math
import unittest
from unittest import mock

from tributary.context import Context


class Contexts(unittest.TestCase):
    def test_a_limit_is_a_c_int_of_milliseconds(self):
        for timeout, told in ((None, 0), (0.0, 1), (1.5, 1500), (1.8e8, 2**31 - 1), (math.inf, 2**31 - 1)):
            with mock.patch("tributary.context.lib") as lib:
                lib.trib_init.return_value = 0
                Context(0, 1, timeout=timeout)
            params, _ = lib.trib_init.call_args.args
            self.assertEqual(params.timeout_ms, told, timeout)


if __name__ == "__main__":
    unittest.main()
