# SPDX-License-Identifier: Apache-2.0
"""Where a vector lies: the memory behind NumPy arrays, torch tensors, `array.array`, `bytearray`
and whatever else exports a buffer.

A vector is C-contiguous memory of the host, or of a CUDA device: a torch tensor, or an array of
CuPy, Numba or whatever else has `__cuda_array_interface__`. Its address stays right for as long as
the `Vector` lives, which holds what exports it.
"""

import ctypes
import math
import sys
from collections.abc import Callable
from typing import Any

from tributary.datatypes import DataType, datatype
from tributary.errors import InvalidError, UnsupportedError


class Vector:
    """A vector in memory: `address`, `count` elements of `dtype`, `nbytes` bytes. Memory of a device
    comes with the `stream` that it is used in."""

    __slots__ = ("address", "count", "dtype", "holder", "nbytes", "readonly", "stream")

    def __init__(
        self, address: int, nbytes: int, dtype: DataType, readonly: bool, holder: object, stream: int | None = None
    ) -> None:
        self.address = address
        self.nbytes = nbytes
        self.dtype = dtype
        self.count = nbytes // dtype.size
        self.readonly = readonly
        self.holder = holder
        self.stream = stream

    def check_writable(self, what: str) -> None:
        """Raises `InvalidError` if a result cannot be written there."""
        if self.readonly:
            raise InvalidError(f"{what} is read-only: give an array that can be written, or a copy")


def vector(source: Any, dtype: str | None = None) -> Vector:
    """The vector that lies in `source`.

    With `dtype` its bytes are taken for elements of that type: `numpy.uint16` holds `"bfloat16"`.
    Raises `UnsupportedError` if it has another type than ours, or no memory of the host or of a
    CUDA device, and `InvalidError` if it is not contiguous.
    """
    kind = type(source)
    look = _known.get(kind)
    if look is None:
        look = _known[kind] = _way_of(kind)
    return look(source, dtype)


def _way_of(kind: type) -> Callable[[Any, str | None], Vector]:
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):
        return _of_tensor
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.generic):
        return _of_scalar
    if hasattr(kind, "__array_interface__"):
        return _of_array
    return _of_device_array if hasattr(kind, "__cuda_array_interface__") else _of_buffer


def _of_tensor(tensor: Any, dtype: str | None) -> Vector:
    if tensor.device.type not in ("cpu", "cuda"):
        raise UnsupportedError(f"the tensor is on {tensor.device}: only memory of the host and of CUDA devices is reduced here")
    if not tensor.is_contiguous():
        raise InvalidError("the tensor is not contiguous: give tensor.contiguous()")
    if tensor.is_conj() or tensor.is_neg():
        raise InvalidError("the tensor's memory has other numbers than it shows: give tensor.resolve_conj().resolve_neg()")
    own = datatype(dtype or str(tensor.dtype).removeprefix("torch."))
    stream = sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else None
    return _checked(tensor.data_ptr(), tensor.numel() * tensor.element_size(), own, False, tensor, stream)


def _of_array(array: Any, dtype: str | None) -> Vector:
    interface = array.__array_interface__
    if not array.flags.c_contiguous:
        raise InvalidError("the array is not C-contiguous: give numpy.ascontiguousarray(array)")
    if not array.dtype.isnative:
        raise UnsupportedError(f"the array's bytes are in the order of another machine ({array.dtype})")
    if array.dtype.hasobject:
        raise UnsupportedError("the array has Python objects for elements, which are addresses in this process")
    address, readonly = interface["data"]
    return _checked(address, array.nbytes, datatype(dtype or array.dtype.name), readonly, array)


def _of_scalar(scalar: Any, dtype: str | None) -> Vector:
    raise UnsupportedError(f"{type(scalar).__name__} is a NumPy scalar, which has no memory of its own: give numpy.array([x])")


def _of_device_array(array: Any, dtype: str | None) -> Vector:
    interface = array.__cuda_array_interface__
    kind, size = interface["typestr"][1], int(interface["typestr"][2:])
    shape, strides = interface["shape"], interface.get("strides")
    if strides is not None and tuple(strides) != _strides(shape, size):
        raise InvalidError("the array is not C-contiguous: give a copy that is")
    name = dtype or ("bool" if kind == "b" else f"{_TYPESTRS.get(kind, kind)}{8 * size}")
    address, readonly = interface["data"]
    # Without one the array's library leaves all that it has queued to the default stream.
    stream = interface.get("stream") or 0
    return _checked(address or 0, math.prod(shape) * size, datatype(name), readonly, array, stream)


def _strides(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The distances in bytes between the elements of a C-contiguous array."""
    return tuple(size * math.prod(shape[at + 1 :]) for at in range(len(shape)))


#: What the kinds of a `typestr` are called.
_TYPESTRS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
#: The kind and, where the size does not say it, the size of what a letter of `struct` stands for.
_KINDS = {
    **dict.fromkeys("bhilqn", "int"), **dict.fromkeys("BHILQN", "uint"), **dict.fromkeys("efd", "float"), "?": "bool",
}  # fmt: skip


def _of_buffer(source: Any, dtype: str | None) -> Vector:
    try:
        view = memoryview(source)
    except TypeError:
        raise UnsupportedError(
            f"{type(source).__name__} has no buffer: give a NumPy array, a torch tensor, an array.array or a bytearray"
        ) from None
    if not view.c_contiguous:
        raise InvalidError("the buffer is not C-contiguous")
    buffer = _Buffer(source)
    name = dtype or _name(view)
    return _checked(buffer.address, view.nbytes, datatype(name), view.readonly, buffer)


def _name(view: memoryview) -> str:
    letter = view.format.removeprefix("<").removeprefix("=").removeprefix("@")
    kind = _KINDS.get(letter)
    if kind is None:
        raise UnsupportedError(f"the buffer has elements of format {view.format!r}: name their type as dtype=")
    return kind if kind == "bool" else f"{kind}{8 * view.itemsize}"


def _checked(
    address: int, nbytes: int, dtype: DataType, readonly: bool, holder: object, stream: int | None = None
) -> Vector:
    if nbytes % dtype.size:
        raise InvalidError(f"{nbytes} bytes are no whole number of {dtype.name}, which has {dtype.size}")
    return Vector(address, nbytes, dtype, readonly, holder, stream)


class _View(ctypes.Structure):
    """`Py_buffer`, of Python's stable interface since 3.11."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_View), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_View)]
_release_buffer.restype = None


class _Buffer:
    """A buffer that its exporter may not move or free: a memoryview does not tell its address."""

    __slots__ = ("_view", "address")

    def __init__(self, source: Any) -> None:
        self._view = _View()
        _get_buffer(source, self._view, 0)
        self.address = self._view.buf or 0

    def __del__(self, release: Any = _release_buffer) -> None:
        release(self._view)


_known: dict[type, Callable[[Any, str | None], Vector]] = {}
