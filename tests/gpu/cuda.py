"""CUDA's driver through ctypes, as far as the tests need one: memory, streams, and a kernel that
takes long."""

import ctypes as c
import math

P, U64, SZ = c.c_void_p, c.c_uint64, c.c_size_t

#: Runs for so many nanoseconds.
SPIN = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 span) {
    .reg .u64 %r<5>;
    .reg .pred %p;
    ld.param.u64 %r1, [span];
    mov.u64 %r2, %globaltimer;
again:
    mov.u64 %r3, %globaltimer;
    sub.u64 %r4, %r3, %r2;
    setp.lt.u64 %p, %r4, %r1;
    @%p bra again;
    ret;
}
"""


class NoGpu(Exception):
    """There is none that can be tested, in words."""


class Failed(Exception):
    """A call of the driver failed."""


class Device:
    """The first GPU, whose context is current on this thread from now on."""

    def __init__(self, ordinal: int = 0) -> None:
        try:
            self.lib = c.CDLL("libcuda.so.1")
        except OSError:
            raise NoGpu("there is no CUDA driver (libcuda.so.1) on this machine") from None
        count, device, context, version = c.c_int(), c.c_int(), P(), c.c_int()
        if self.lib.cuInit(0) or self.lib.cuDeviceGetCount(c.byref(count)) or count.value == 0:
            raise NoGpu("there is a CUDA driver on this machine, and no GPU that it can use")
        self.call("cuDeviceGet", c.byref(device), c.c_int(ordinal % count.value))
        self.call("cuDevicePrimaryCtxRetain", c.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = c.create_string_buffer(100)
        self.call("cuDeviceGetName", name, c.c_int(len(name)), device)
        self.call("cuDriverGetVersion", c.byref(version))
        self.name = name.value.decode()
        self.driver_version = f"{version.value // 1000}.{version.value % 1000 // 10}"

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function that has to succeed."""
        code = getattr(self.lib, name)(*arguments)
        if code:
            raise Failed(f"{name} returned {code}")

    def stream(self) -> P:
        """A new stream."""
        stream = P()
        self.call("cuStreamCreate", c.byref(stream), c.c_uint(1))
        return stream

    def event(self, stream: P) -> P:
        """A new event, recorded in a stream."""
        event = P()
        self.call("cuEventCreate", c.byref(event), c.c_uint(2))
        self.call("cuEventRecord", event, stream)
        return event

    def has_come(self, event: P) -> bool:
        """Whether an event has."""
        return self.lib.cuEventQuery(event) == 0

    def copy(self, target: int, source: int, nbytes: int, stream: P) -> None:
        """Queues a copy."""
        self.call("cuMemcpyAsync", U64(target), U64(source), SZ(nbytes), stream)

    def wait(self, stream: P) -> None:
        """Waits for what is queued in a stream."""
        self.call("cuEventSynchronize", self.event(stream))

    def pinned(self, nbytes: int) -> int:
        """Pinned memory of the host, which the test never frees."""
        start = P()
        self.call("cuMemHostAlloc", c.byref(start), SZ(nbytes), c.c_uint(0))
        return start.value

    def spin(self, stream: P, nanoseconds: int) -> None:
        """Queues a kernel that takes so long."""
        module, function, span = P(), P(), U64(nanoseconds)
        self.call("cuModuleLoadData", c.byref(module), c.c_char_p(SPIN))
        self.call("cuModuleGetFunction", c.byref(function), module, c.c_char_p(b"spin"))
        arguments = (P * 1)(c.cast(c.byref(span), P))
        one, none = c.c_uint(1), c.c_uint(0)
        self.call("cuLaunchKernel", function, one, one, one, one, one, one, none, stream, arguments, P())

    def array(self, like: "object", stream: P) -> "Array":
        """A copy of a NumPy array."""
        return Array(self, like, stream)


class Array:
    """An array on the device, which `tributary` takes as it takes those of CuPy."""

    def __init__(self, device: Device, like: "object", stream: P) -> None:
        self.device, self.like, self.stream = device, like.copy(), stream
        address = U64()
        device.call("cuMemAlloc_v2", c.byref(address), SZ(max(self.like.nbytes, 1)))
        self.address = address.value
        device.copy(self.address, self.like.ctypes.data, self.like.nbytes, stream)

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.like.shape,
            "typestr": self.like.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": self.stream.value,
            "version": 3,
        }

    def read(self) -> "object":
        """What work finds that is queued in the array's stream now."""
        array = self.like.copy()
        self.device.copy(array.ctypes.data, self.address, array.nbytes, self.stream)
        self.device.wait(self.stream)
        return array

    def __len__(self) -> int:
        return math.prod(self.like.shape)
