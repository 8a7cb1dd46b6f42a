"""libtributary.so from Python: a thin ctypes layer over tributary.h, for the ranks of the system
tests."""

import ctypes as c
import os

import numpy as np

DTYPES = {  # name -> (code, numpy storage type)
    "uint32": (0, np.uint32),
    "int32": (1, np.int32),
    "uint64": (2, np.uint64),
    "int64": (3, np.int64),
    "float32": (4, np.float32),
    "float64": (5, np.float64),
    "float16": (8, np.float16),
    "bfloat16": (9, np.uint16),
    # A value and its index, without padding. The high bits of the code are the index's code plus
    # one, the low bits the value's code.
    "float64:int32": (0x25, np.dtype([("value", "<f8"), ("index", "<i4")])),
    "float32:int64": (0x44, np.dtype([("value", "<f4"), ("index", "<i8")])),
    "int16:uint8": (0xB7, np.dtype([("value", "<i2"), ("index", "u1")])),
}
OPS = {
    "max": 0, "min": 1, "sum": 2, "prod": 3, "land": 4, "band": 5, "lor": 6, "bor": 7, "lxor": 8, "bxor": 9, "maxloc": 10, "minloc": 11,
}
IN_PLACE = c.c_void_p(-1)


class Counters(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [
        (name, c.c_uint64)
        for name in (
            "operations_llt operations_sat datagrams_sent datagrams_received datagrams_rejected stream_bytes_sent "
            "stream_bytes_received retransmissions probes groups_created groups_freed datagrams_repeated "
            "epochs replayed operations_board"
        ).split()
    ]


class Params(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("rank", c.c_uint32),
        ("size", c.c_uint32),
        ("manager", c.c_char_p),
        ("host", c.c_char_p),
        ("oob", c.c_void_p),
        ("timeout_ms", c.c_int),
        ("progress", c.c_void_p),
        ("progress_ctx", c.c_void_p),
    ]


class Failed(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


lib = c.CDLL(os.environ["TRIB_TEST_LIBRARY"])
lib.trib_last_error.restype = c.c_char_p
lib.trib_strerror.restype = c.c_char_p
P, SZ, U32, I = c.c_void_p, c.c_size_t, c.c_uint32, c.c_int
lib.trib_group_create.argtypes = [P, P, U32, c.c_uint64, P]
lib.trib_group_create_nb.argtypes = [P, P, U32, c.c_uint64, P, P]
lib.trib_group_create_named_nb.argtypes = [P, P, U32, c.c_uint64, c.c_char_p, P, P]
lib.trib_allreduce.argtypes = [P, P, P, SZ, I, I]
lib.trib_allreduce_nb.argtypes = [P, P, P, SZ, I, I, P]
lib.trib_reduce_nb.argtypes = [P, P, P, SZ, I, I, U32, P]
lib.trib_bcast_nb.argtypes = [P, P, SZ, U32, P]
lib.trib_barrier_nb.argtypes = [P, P]
lib.trib_reduce_scatter_nb.argtypes = [P, P, P, SZ, I, I, P]
lib.trib_allgather_nb.argtypes = [P, P, P, SZ, P]
lib.trib_allreduce.argtypes = [P, P, P, SZ, I, I]
lib.trib_barrier.argtypes = [P]
lib.trib_test.argtypes = [P, P]
lib.trib_wait.argtypes = [P, I]
for name in ("trib_request_free", "trib_progress", "trib_group_free", "trib_finalize"):
    getattr(lib, name).argtypes = [P]
lib.trib_group_error.argtypes = [P, c.c_char_p, SZ]
lib.trib_group_status.argtypes = [P]
lib.trib_get_counters.argtypes = [P, P]


def check(status):
    if status != 0:
        raise Failed(status, lib.trib_last_error().decode())


def _at(array):
    if array is None:
        return None
    if array is IN_PLACE:
        return IN_PLACE
    return array.ctypes.data_as(c.c_void_p)


class Context:
    """One rank of a job whose ranks meet at the manager. While a call blocks, the library calls
    `progress`."""

    def __init__(self, rank=None, size=None, timeout_ms=0, manager=None, host=None, progress=None):
        self.rank = int(os.environ["TRIB_RANK"]) if rank is None else rank
        self.size = int(os.environ["TRIB_SIZE"]) if size is None else size
        self.callback = progress and c.CFUNCTYPE(None, c.c_void_p)(lambda _: progress())
        params = Params(
            struct_size=c.sizeof(Params), rank=self.rank, size=self.size, timeout_ms=timeout_ms,
            manager=manager and manager.encode(), host=host and host.encode(),
            progress=c.cast(self.callback, c.c_void_p) if progress else None,
        )
        self.handle = c.c_void_p()
        check(lib.trib_init(c.byref(params), c.byref(self.handle)))

    def group(self, ranks=None, tag=0, name=None):
        return Group(self, list(range(self.size)) if ranks is None else list(ranks), tag, name)

    def progress(self):
        check(lib.trib_progress(self.handle))

    def counters(self):
        counters = Counters(struct_size=c.sizeof(Counters))
        check(lib.trib_get_counters(self.handle, c.byref(counters)))
        return {name: getattr(counters, name) for name, _ in Counters._fields_[1:]}

    def finalize(self):
        check(lib.trib_finalize(self.handle))


class Group:
    def __init__(self, context, ranks, tag=0, name=None):
        self.ranks, self.size = ranks, len(ranks)
        self.rank = ranks.index(context.rank)
        list_ = (c.c_uint32 * len(ranks))(*ranks)
        self.handle = c.c_void_p()
        if name is None:
            check(lib.trib_group_create(context.handle, list_, len(ranks), tag, c.byref(self.handle)))
            return
        ready, group = c.c_void_p(), c.byref(self.handle)
        check(lib.trib_group_create_named_nb(context.handle, list_, len(ranks), tag, name.encode(), group, c.byref(ready)))
        made = Request(ready, ())
        made.wait()
        made.free()

    def post(self, call, *args, keep=()):
        request = c.c_void_p()
        check(getattr(lib, f"trib_{call}_nb")(self.handle, *args, c.byref(request)))
        return Request(request, keep)

    def allreduce(self, sbuf, rbuf, dtype, op):
        return self.post("allreduce", _at(sbuf), _at(rbuf), rbuf.size, DTYPES[dtype][0], OPS[op], keep=(sbuf, rbuf))

    def allreduce_blocking(self, sbuf, rbuf, dtype, op):
        check(lib.trib_allreduce(self.handle, _at(sbuf), _at(rbuf), rbuf.size, DTYPES[dtype][0], OPS[op]))

    def reduce(self, sbuf, rbuf, dtype, op, root):
        count = (rbuf if sbuf is IN_PLACE else sbuf).size
        return self.post("reduce", _at(sbuf), _at(rbuf), count, DTYPES[dtype][0], OPS[op], root, keep=(sbuf, rbuf))

    def bcast(self, buf, root):
        return self.post("bcast", _at(buf), buf.nbytes, root, keep=(buf,))

    def barrier(self):
        return self.post("barrier")

    def reduce_scatter(self, sbuf, rbuf, count, dtype, op):
        return self.post(
            "reduce_scatter", _at(sbuf), _at(rbuf), count, DTYPES[dtype][0], OPS[op], keep=(sbuf, rbuf)
        )

    def allgather(self, sbuf, rbuf, block_bytes):
        return self.post("allgather", _at(sbuf), _at(rbuf), block_bytes, keep=(sbuf, rbuf))

    def status(self):
        text = c.create_string_buffer(1024)
        status = lib.trib_group_error(self.handle, text, len(text))
        return status, text.value.decode()

    def free(self):
        check(lib.trib_group_free(self.handle))


class Request:
    def __init__(self, handle, keep):
        self.handle, self.keep = handle, keep

    def wait(self, timeout_ms=-1):
        """Waits and frees; raises on failure."""
        status = lib.trib_wait(self.handle, timeout_ms)
        if status != 0:
            raise Failed(status, lib.trib_last_error().decode())
        self.free()

    def test(self):
        done = c.c_int()
        check(lib.trib_test(self.handle, c.byref(done)))
        return bool(done.value)

    def free(self):
        lib.trib_request_free(self.handle)
        self.handle = None
