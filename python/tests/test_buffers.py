# SPDX-License-Identifier: Apache-2.0
"""Where vectors lie, and what is refused."""

import array
import ctypes
import gc
import mmap
import unittest

import numpy as np
from tributary.buffers import vector
from tributary.datatypes import operator
from tributary.errors import InvalidError, UnsupportedError


class OnDevice:
    """An array of a device, as CuPy and others show theirs."""

    def __init__(self, typestr="<f4", shape=(2, 3), strides=None, stream=None, address=4096):
        self.shown = {
            "typestr": typestr, "shape": shape, "strides": strides, "stream": stream, "data": (address, False), "version": 3,
        }  # fmt: skip

    @property
    def __cuda_array_interface__(self):
        return self.shown


class Buffers(unittest.TestCase):
    def test_every_kind_of_buffer_is_found_with_its_type(self):
        for source, name, count in (
            (np.zeros((2, 3), "f4"), "float32", 6),
            (np.zeros(4, "f2"), "float16", 4),
            (np.zeros(3, "?"), "bool", 3),
            (np.zeros(3, "c16"), "complex128", 3),
            (array.array("q", [1, 2]), "int64", 2),
            (array.array("d", [1, 2, 3]), "float64", 3),
            (bytearray(5), "uint8", 5),
            (b"bytes", "uint8", 5),
            (memoryview(np.zeros(2, "u2")), "uint16", 2),
            ((ctypes.c_float * 3)(), "float32", 3),
            (mmap.mmap(-1, 4096), "uint8", 4096),
        ):
            found = vector(source)
            self.assertEqual((found.dtype.name, found.count), (name, count), source)

    def test_the_address_is_where_the_bytes_are(self):
        for source in (bytearray(b"tributary"), np.frombuffer(b"tributary", "u1"), array.array("b", b"tributary"), b"tributary"):
            self.assertEqual(ctypes.string_at(vector(source).address, 9), b"tributary")

    def test_arrays_of_a_device_come_with_their_stream(self):
        for source, name, count, stream in (
            (OnDevice(), "float32", 6, 0),
            (OnDevice("<i8", (5,), (8,), stream=1), "int64", 5, 1),
            (OnDevice("|b1", (4, 2), (2, 1), stream=4711), "bool", 8, 4711),
            (OnDevice("<c16", ()), "complex128", 1, 0),
        ):
            found = vector(source)
            self.assertEqual((found.address, found.dtype.name, found.count, found.stream), (4096, name, count, stream))
        self.assertEqual(vector(OnDevice("<u2", (8,)), "bfloat16").dtype.name, "bfloat16")
        self.assertIsNone(vector(np.zeros(3)).stream)
        with self.assertRaisesRegex(InvalidError, "not C-contiguous"):
            vector(OnDevice("<f4", (2, 3), (4, 8)))
        self.assertEqual(vector(OnDevice(shape=(0,), address=0)).count, 0)

    def test_an_empty_vector_has_no_elements(self):
        for source in (bytearray(), np.zeros(0), array.array("f")):
            self.assertEqual((vector(source).count, vector(source).nbytes), (0, 0))

    def test_a_buffer_cannot_move_while_its_vector_lives(self):
        source = bytearray(8)
        held = vector(source)
        with self.assertRaises(BufferError):
            source.extend(bytes(1 << 20))
        del held
        gc.collect()
        source.extend(bytes(1 << 20))

    def test_bytes_are_taken_for_another_type_when_that_is_asked_for(self):
        self.assertEqual(vector(np.zeros(4, "u2"), "bfloat16").dtype.name, "bfloat16")
        with self.assertRaisesRegex(InvalidError, "no whole number of float32"):
            vector(bytearray(6), "float32")

    def test_what_is_no_contiguous_vector_of_ours_is_refused_with_words(self):
        for source, kind, words in (
            (np.zeros((4, 4))[:, 1], InvalidError, "ascontiguousarray"),
            (np.zeros(4, ">f4"), UnsupportedError, "order of another machine"),
            (np.array(["text"]), UnsupportedError, "no datatype"),
            (np.zeros(2, "f4,i4"), UnsupportedError, "no datatype"),
            (np.float64(3.0), UnsupportedError, r"numpy.array\(\[x\]\)"),
            ([1, 2, 3], UnsupportedError, "list has no buffer"),
            (memoryview(bytearray(8))[::2], InvalidError, "not C-contiguous"),
        ):
            with self.assertRaisesRegex(kind, words):
                vector(source)

    def test_objects_are_refused_as_bytes_too(self):
        """Their bytes are addresses in this process."""
        with self.assertRaisesRegex(UnsupportedError, "Python objects"):
            vector(np.array(["a", None], dtype=object), "uint8")
        with self.assertRaisesRegex(UnsupportedError, "no memory of its own"):
            vector(np.zeros(3).sum(), "uint8")

    def test_a_result_is_not_written_to_read_only_memory(self):
        frozen = np.zeros(3)
        frozen.flags.writeable = False
        for source in (b"bytes", frozen):
            with self.assertRaisesRegex(InvalidError, "read-only"):
                vector(source).check_writable("the result")

    def test_operators_are_checked_against_the_type(self):
        floats, truth, complex_ = (vector(np.zeros(1, kind)).dtype for kind in ("f4", "?", "c8"))
        self.assertEqual(operator("sum", truth), operator("lor", truth))
        operator("sum", complex_)
        for op, dtype in (("band", floats), ("prod", complex_), ("max", complex_)):
            with self.assertRaises(TypeError):
                operator(op, dtype)
        with self.assertRaisesRegex(InvalidError, "no operator 'plus'"):
            operator("plus", floats)


if __name__ == "__main__":
    unittest.main()
