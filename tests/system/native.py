"""libtributary.so from Python for the ranks of the system tests: thin, over the declarations of the
package for Python."""

import ctypes as c
import importlib.util
import os
import pathlib

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


def declarations():
    """The package's declarations, with the library that is tested. They are one file: the rest of the
    package would be imported in vain, by thousands of ranks."""
    os.environ["TRIBUTARY_LIBRARY"] = os.environ["TRIB_TEST_LIBRARY"]
    file = pathlib.Path(__file__).resolve().parents[2] / "python/src/tributary/_native.py"
    spec = importlib.util.spec_from_file_location("declarations", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


declared = declarations()
lib, IN_PLACE, Counters, Params = declared.lib, declared.IN_PLACE, declared.Counters, declared.Params
# What the package makes of other calls.
lib.trib_group_create.argtypes = [c.c_void_p, c.c_void_p, c.c_uint32, c.c_uint64, c.c_void_p]
lib.trib_group_create_nb.argtypes = [*lib.trib_group_create.argtypes, c.c_void_p]
lib.trib_allreduce.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t, c.c_int, c.c_int]
lib.trib_barrier.argtypes = [c.c_void_p]


class Failed(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


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
        self.callback = declared.PROGRESS(lambda _: progress()) if progress else declared.PROGRESS()
        params = Params(
            struct_size=c.sizeof(Params), rank=self.rank, size=self.size, timeout_ms=timeout_ms,
            manager=manager and manager.encode(), host=host and host.encode(), progress=self.callback,
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
