"""What each rank does for bench/sums/run."""

import resource
import time

import numpy as np

import native
from sums_worker import setting


def measure(argument):
    """Sums one vector over and over, kinds in turn. Returns, by kind and turn, the seconds of an
    operation, the bytes that this rank sent and its processor time in ns, each for a byte given."""
    context = native.Context()
    group = context.group()
    mine = normal(argument["type"], argument["bytes"], context.rank)
    out, all_of_them = np.zeros_like(mine), np.zeros(mine.size * context.size, mine.dtype)
    found = {kind: {"seconds": [], "sent": [], "cpu_ns": []} for kind in argument["kinds"]}
    for turn in range(argument["turns"] + 1):
        for kind, figures in found.items():
            setting(group, "plain" if kind == "gather" else kind)
            times = max(1, min(20, (4 << 20) // argument["bytes"]))
            group.barrier().wait()
            sent, cpu, began = sent_by(context), processor_time(), time.monotonic()
            for _ in range(times):
                if kind == "gather":
                    group.allgather(mine, all_of_them, mine.nbytes).wait()
                    add_up(argument["type"], all_of_them.reshape(context.size, -1))
                else:
                    group.allreduce_blocking(mine, out, argument["type"], "sum")
            seconds, bytes_given = time.monotonic() - began, times * mine.nbytes
            if turn > 0:
                figures["seconds"].append(seconds / times)
                figures["sent"].append((sent_by(context) - sent) / bytes_given)
                figures["cpu_ns"].append(1e9 * (processor_time() - cpu) / bytes_given)
    context.finalize()
    return found


def normal(dtype, nbytes, seed):
    numbers = np.random.default_rng(seed).normal(0, 1e-3, nbytes)
    if dtype == "bfloat16":
        return (numbers[: nbytes // 2].astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers[: nbytes // np.dtype(dtype).itemsize].astype(dtype)


def add_up(dtype, rows):
    if dtype == "bfloat16":
        rows = (rows.astype(np.uint32) << 16).view(np.float32)
    return rows.sum(axis=0)


def sent_by(context):
    return context.counters()["stream_bytes_sent"]


def processor_time():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
