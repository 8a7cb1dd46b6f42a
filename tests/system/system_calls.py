"""System calls of processes, counted by the kernel's tracepoint, which does not stop the
processes."""

import ctypes as c
import errno
import fcntl
import os
import pathlib

lib = c.CDLL(None, use_errno=True)
lib.syscall.restype = c.c_long


class Attributes(c.Structure):
    """The head of the kernel's `perf_event_attr`, in the size of its first version."""

    _fields_ = [
        ("kind", c.c_uint32), ("size", c.c_uint32), ("config", c.c_uint64), ("period", c.c_uint64),
        ("sample_type", c.c_uint64), ("read_format", c.c_uint64), ("flags", c.c_uint64), ("wakeup", c.c_uint32),
        ("breakpoint", c.c_uint32), ("config1", c.c_uint64),
    ]


def tracepoint():
    """The number of the tracepoint at the end of every system call; None where this kernel does not
    show it."""
    if os.uname().machine not in NUMBERS:
        return None
    for folder in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        try:
            return int((pathlib.Path(folder) / "events/raw_syscalls/sys_exit/id").read_text())
        except (OSError, ValueError):
            continue
    return None


class Calls:
    """Counts the calls of the threads that a process has now. `counts()` is None where the
    kernel does not let the test count."""

    def __init__(self, pid, point):
        self.counters = {"calls": [], "sends": []}
        filters = {"calls": WORK, "sends": SENDS}
        for thread in [] if point is None else os.listdir(f"/proc/{pid}/task"):
            for name, counters in self.counters.items():
                counters.append(_open(int(thread), point, filters[name]))

    def counts(self):
        """(calls that did something, those of them that send). Yields, and looks that found
        nothing, do nothing."""
        if not self.counters["calls"] or None in sum(self.counters.values(), []):
            return None
        return tuple(sum(_read(counter) for counter in counters) for counters in self.counters.values())

    def close(self):
        for counter in sum(self.counters.values(), []):
            if counter is not None:
                counter.close()


def _open(thread, point, which):
    """A counter's file, or None."""
    attributes = Attributes(kind=PERF_TYPE_TRACEPOINT, size=c.sizeof(Attributes), config=point)
    numbers = (c.c_long(n) for n in (thread, ANY_PROCESSOR, NO_GROUP, PERF_FLAG_FD_CLOEXEC))
    number = lib.syscall(c.c_long(CALL["perf_event_open"]), c.byref(attributes), *numbers)
    if number < 0:
        return None
    file = os.fdopen(number, "rb", buffering=0)
    try:
        fcntl.ioctl(file, PERF_EVENT_IOC_SET_FILTER, which.encode() + b"\0")
    except OSError:
        file.close()
        return None
    return file


def _read(counter):
    return int.from_bytes(counter.read(8), "little")


def waits(pid):
    """How often the threads of a process have given up the processor to wait."""
    status = [path.read_text() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    lines = [line for text in status for line in text.splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


PERF_TYPE_TRACEPOINT = 2
PERF_FLAG_FD_CLOEXEC = 8
PERF_EVENT_IOC_SET_FILTER = 0x40082406
ANY_PROCESSOR = NO_GROUP = -1

NAMES = "perf_event_open sched_yield poll ppoll epoll_wait epoll_pwait write writev sendto sendmsg sendmmsg".split()
NUMBERS = {  # None where the machine has no such call
    "x86_64": (298, 24, 7, 271, 232, 281, 1, 20, 44, 46, 307),
    "aarch64": (241, 124, None, 73, None, 22, 64, 66, 206, 211, 269),
}
CALL = {name: n for name, n in zip(NAMES, NUMBERS.get(os.uname().machine, [None] * len(NAMES))) if n is not None}


def _among(names, sign, joint):
    return "(" + joint.join(f"id {sign} {CALL[name]}" for name in names if name in CALL) + ")"


if CALL:
    IS_NO_LOOK = _among(["poll", "ppoll", "epoll_wait", "epoll_pwait"], "!=", " && ")
    WORK = f"id != {CALL['sched_yield']} && ret != {-errno.EAGAIN} && (ret != 0 || {IS_NO_LOOK})"
    SENDS = _among(["write", "writev", "sendto", "sendmsg", "sendmmsg"], "==", " || ") + f" && ret != {-errno.EAGAIN}"
