import ctypes
from ctypes import c_int, c_uint32, c_void_p
from typing import Any, Final

API_MAJOR: Final[int]
IN_PLACE: Final[c_void_p]
LIBRARY_ENV: Final[str]
PROTOTYPES: Final[dict[str, tuple[type, list[type]]]]

GATHER: Any
BROADCAST: Any
PROGRESS: Any

class OutOfBand(ctypes.Structure):
    ctx: c_void_p
    gather: Any
    bcast: Any

class Params(ctypes.Structure):
    struct_size: int
    rank: int
    size: int
    manager: bytes | None
    host: bytes | None
    oob: Any
    timeout_ms: int
    progress: Any
    progress_ctx: int | None
    quota: bytes | None
    calls: bytes | None

class Counters(ctypes.Structure):
    struct_size: int
    operations_llt: int
    operations_sat: int
    datagrams_sent: int
    datagrams_received: int
    datagrams_rejected: int
    stream_bytes_sent: int
    stream_bytes_received: int
    retransmissions: int
    probes: int
    groups_created: int
    groups_freed: int
    datagrams_repeated: int
    epochs: int
    replayed: int
    operations_board: int
    operations_combined: int

class Range(ctypes.Structure):
    start: int
    end: int

class Prediction(ctypes.Structure):
    struct_size: int
    known: int
    barrier: int
    allreduces: int
    reduces: int
    allreduce: ctypes.Array[Range]
    reduce: ctypes.Array[Range]
    in_memory: int
    unused: int

class Library:
    """`libtributary.so`; statuses are 0 or one of `tributary.errors`."""

    def trib_init(self, params: Params, context: c_void_p) -> int: ...
    def trib_fall_back(self, context: c_void_p, why: bytes) -> int: ...
    def trib_finalize(self, context: c_void_p) -> int: ...
    def trib_strerror(self, status: int) -> bytes: ...
    def trib_last_error(self) -> bytes: ...
    def trib_group_create_named_nb(
        self,
        context: c_void_p,
        world_ranks: ctypes.Array[c_uint32],
        size: int,
        tag: int,
        name: bytes | None,
        group: c_void_p,
        request: c_void_p,
    ) -> int: ...
    def trib_group_free(self, group: c_void_p) -> int: ...
    def trib_group_leave(self, group: c_void_p) -> int: ...
    def trib_group_set_sums(self, group: c_void_p, sums: int) -> int: ...
    def trib_int8_feed_back(self, vector: int, residual: int, count: int, t: int, factor: float) -> int: ...
    def trib_group_status(self, group: c_void_p) -> int: ...
    def trib_group_error(self, group: c_void_p, words: ctypes.Array[Any], length: int) -> int: ...
    def trib_allreduce_nb(
        self, group: c_void_p, sbuf: int | c_void_p | None, rbuf: int | None, count: int, t: int, op: int, request: c_void_p
    ) -> int: ...
    def trib_reduce_nb(
        self, group: c_void_p, sbuf: int | c_void_p | None, rbuf: int | None, count: int, t: int, op: int, root: int, request: c_void_p
    ) -> int: ...
    def trib_bcast_nb(self, group: c_void_p, buf: int, length: int, root: int, request: c_void_p) -> int: ...
    def trib_barrier_nb(self, group: c_void_p, request: c_void_p) -> int: ...
    def trib_reduce_scatter_nb(
        self, group: c_void_p, sbuf: int | c_void_p | None, rbuf: int | None, count: int, t: int, op: int, request: c_void_p
    ) -> int: ...
    def trib_allgather_nb(
        self, group: c_void_p, sbuf: int | c_void_p | None, rbuf: int | None, length: int, request: c_void_p
    ) -> int: ...
    def trib_allreduce_stream_nb(
        self, group: c_void_p, sbuf: int | c_void_p | None, rbuf: int | None, count: int, t: int, op: int, stream: int, request: c_void_p
    ) -> int: ...
    def trib_reduce_stream_nb(
        self,
        group: c_void_p,
        sbuf: int | c_void_p | None,
        rbuf: int | None,
        count: int,
        t: int,
        op: int,
        root: int,
        stream: int,
        request: c_void_p,
    ) -> int: ...
    def trib_bcast_stream_nb(self, group: c_void_p, buf: int, length: int, root: int, stream: int, request: c_void_p) -> int: ...
    def trib_reduce_scatter_stream_nb(
        self, group: c_void_p, sbuf: int | c_void_p | None, rbuf: int | None, count: int, t: int, op: int, stream: int, request: c_void_p
    ) -> int: ...
    def trib_allgather_stream_nb(
        self, group: c_void_p, sbuf: int | c_void_p | None, rbuf: int | None, length: int, stream: int, request: c_void_p
    ) -> int: ...
    def trib_wait_stream(self, request: c_void_p, stream: int, timeout_ms: int) -> int: ...
    def trib_test(self, request: c_void_p, done: c_int) -> int: ...
    def trib_wait(self, request: c_void_p, timeout_ms: int) -> int: ...
    def trib_finish(self, request: c_void_p, timeout_ms: int) -> int: ...
    def trib_request_free(self, request: c_void_p) -> int: ...
    def trib_progress(self, context: c_void_p) -> int: ...
    def trib_supports(self, t: int, op: int) -> int: ...
    def trib_predict(self, context: c_void_p, world_ranks: ctypes.Array[c_uint32], size: int, prediction: Prediction) -> int: ...
    def trib_get_counters(self, context: c_void_p, counters: Counters) -> int: ...

def load() -> Library: ...

lib: Library
