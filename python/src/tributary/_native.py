# SPDX-License-Identifier: Apache-2.0
"""`libtributary.so` as `tributary.h` declares it, through ctypes.

Nothing here decides anything: the names, types and layouts are the header's, and a test holds them
against it. ctypes gives the interpreter's lock up while a call runs, so a rank that waits holds up
no other thread.
"""

import ctypes
import ctypes.util
import os
import pathlib
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p

#: The interface that this package was written for, as `TRIB_API_MAJOR` says it.
API_MAJOR = 0
#: The `sbuf` that means: the input lies in the receive buffer.
IN_PLACE = c_void_p(-1)
#: A file named here is loaded instead of the library that the package brings.
LIBRARY_ENV = "TRIBUTARY_LIBRARY"

GATHER = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t)
BROADCAST = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
PROGRESS = ctypes.CFUNCTYPE(None, c_void_p)


class OutOfBand(ctypes.Structure):
    """`trib_oob`."""

    _fields_ = [("ctx", c_void_p), ("gather", GATHER), ("bcast", BROADCAST)]


class Params(ctypes.Structure):
    """`trib_params`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("rank", c_uint32),
        ("size", c_uint32),
        ("manager", c_char_p),
        ("host", c_char_p),
        ("oob", POINTER(OutOfBand)),
        ("timeout_ms", c_int),
        ("progress", PROGRESS),
        ("progress_ctx", c_void_p),
        ("quota", c_char_p),
        ("calls", c_char_p),
    ]


class Counters(ctypes.Structure):
    """`trib_counters`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("operations_llt", c_uint64),
        ("operations_sat", c_uint64),
        ("datagrams_sent", c_uint64),
        ("datagrams_received", c_uint64),
        ("datagrams_rejected", c_uint64),
        ("stream_bytes_sent", c_uint64),
        ("stream_bytes_received", c_uint64),
        ("retransmissions", c_uint64),
        ("probes", c_uint64),
        ("groups_created", c_uint64),
        ("groups_freed", c_uint64),
        ("datagrams_repeated", c_uint64),
        ("epochs", c_uint64),
        ("replayed", c_uint64),
        ("operations_board", c_uint64),
        ("operations_combined", c_uint64),
    ]


class Range(ctypes.Structure):
    """`trib_range`."""

    _fields_ = [("start", c_uint64), ("end", c_uint64)]


class Prediction(ctypes.Structure):
    """`trib_prediction`."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("known", c_uint32),
        ("barrier", c_uint32),
        ("allreduces", c_uint32),
        ("reduces", c_uint32),
        ("allreduce", Range * 2),
        ("reduce", Range * 2),
        ("in_memory", c_uint32),
        ("unused", c_uint32),
    ]


#: What each function returns and takes.
PROTOTYPES = {
    "trib_init": (c_int, [POINTER(Params), POINTER(c_void_p)]),
    "trib_fall_back": (c_int, [c_void_p, c_char_p]),
    "trib_finalize": (c_int, [c_void_p]),
    "trib_strerror": (c_char_p, [c_int]),
    "trib_last_error": (c_char_p, []),
    "trib_group_create_named_nb": (
        c_int,
        [c_void_p, POINTER(c_uint32), c_uint32, c_uint64, c_char_p, POINTER(c_void_p), POINTER(c_void_p)],
    ),
    "trib_group_free": (c_int, [c_void_p]),
    "trib_group_leave": (c_int, [c_void_p]),
    "trib_group_set_sums": (c_int, [c_void_p, c_int]),
    "trib_int8_feed_back": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_float]),
    "trib_group_status": (c_int, [c_void_p]),
    "trib_group_error": (c_int, [c_void_p, c_char_p, c_size_t]),
    "trib_allreduce_nb": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(c_void_p)]),
    "trib_reduce_nb": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_uint32, POINTER(c_void_p)]),
    "trib_bcast_nb": (c_int, [c_void_p, c_void_p, c_size_t, c_uint32, POINTER(c_void_p)]),
    "trib_barrier_nb": (c_int, [c_void_p, POINTER(c_void_p)]),
    "trib_reduce_scatter_nb": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(c_void_p)]),
    "trib_allgather_nb": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(c_void_p)]),
    "trib_allreduce_stream_nb": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, POINTER(c_void_p)],
    ),
    "trib_reduce_stream_nb": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_uint32, c_void_p, POINTER(c_void_p)],
    ),
    "trib_bcast_stream_nb": (c_int, [c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, POINTER(c_void_p)]),
    "trib_reduce_scatter_stream_nb": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, POINTER(c_void_p)],
    ),
    "trib_allgather_stream_nb": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, POINTER(c_void_p)]),
    "trib_wait_stream": (c_int, [c_void_p, c_void_p, c_int]),
    "trib_test": (c_int, [c_void_p, POINTER(c_int)]),
    "trib_wait": (c_int, [c_void_p, c_int]),
    "trib_finish": (c_int, [POINTER(c_void_p), c_int]),
    "trib_request_free": (c_int, [c_void_p]),
    "trib_progress": (c_int, [c_void_p]),
    "trib_supports": (c_int, [c_int, c_int]),
    "trib_predict": (c_int, [c_void_p, POINTER(c_uint32), c_uint32, POINTER(Prediction)]),
    "trib_get_counters": (c_int, [c_void_p, POINTER(Counters)]),
}


def load() -> ctypes.CDLL:
    """Loads the library: the file that `TRIBUTARY_LIBRARY` names, else the one in this package,
    else the system's.

    Raises `ImportError` if there is none, or one with another interface.
    """
    bundled = pathlib.Path(__file__).parent / "lib" / "libtributary.so"
    soname = f"libtributary.so.{API_MAJOR}"
    named = os.environ.get(LIBRARY_ENV)
    path = named or (str(bundled) if bundled.exists() else soname)
    try:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as failure:
        raise ImportError(
            f"{path} cannot be loaded as Tributary's library: {failure}. "
            f"Install the package with the library (pip install ./python), or name a file in {LIBRARY_ENV}"
        ) from None
    return library


lib = load()
