"""Ranks that repeat checked operations until they are told to stop, for tests in which something
happens around a running job."""

import contextlib
import hashlib
import os
import pathlib
import resource
import threading
import time

import numpy as np

import native
from rank import await_note, note
from system_calls import waits


def vectors(rank, size, count, iteration):
    mine = (np.arange(count, dtype=np.int64) * 7 + rank * 1_000_003 + iteration).astype(np.int64)
    total = (np.arange(count, dtype=np.int64) * 7 + iteration) * size + 1_000_003 * (size * (size - 1) // 2)
    return mine, total


def loop(argument):
    """Allreduces of the given counts, in turn, with each element checked, until the file `stop`
    exists on rank 0 or the number of iterations is reached. All ranks stop together: rank 0
    tells them by a bcast."""
    context = native.Context()
    group = context.group()
    stop, digest = pathlib.Path(argument.get("stop", "/nonexistent")), hashlib.blake2b(digest_size=16)
    iteration, most = 0, argument.get("iterations", 1 << 60)
    before = context.counters()
    while True:
        for count in argument["counts"]:
            mine, total = vectors(context.rank, context.size, count, iteration)
            out = np.empty_like(mine)
            group.allreduce(mine, out, "int64", "sum").wait()
            assert np.array_equal(out, total), f"wrong sum in iteration {iteration}, count {count}"
        flag = np.array([stop.exists() or iteration + 1 >= most], dtype=np.uint8)
        group.bcast(flag, 0).wait()
        iteration += 1
        digest.update(b"".join([bytes(out[:4])]))
        note(iteration)
        if flag[0]:
            break
        if argument.get("pause"):
            time.sleep(argument["pause"])
    counters = context.counters()
    group.free()
    context.finalize()
    return {"iterations": iteration, "digest": digest.hexdigest(), "counters": counters, "before": before}


def floats(argument):
    """Float sums, whose bits would show any change of order, as digests."""
    context = native.Context()
    group, digest = context.group(), hashlib.blake2b(digest_size=16)
    random = np.random.default_rng([argument["seed"], context.rank])
    for iteration in range(argument["iterations"]):
        for count in argument["counts"]:
            mine = random.standard_normal(count).astype(np.float32)
            out = np.empty_like(mine)
            group.allreduce(mine, out, "float32", "sum").wait()
            digest.update(out.tobytes())
        note(iteration)
        time.sleep(argument.get("pause", 0))
    counters = context.counters()
    context.finalize()
    return {"digest": digest.hexdigest(), "counters": counters}


def many_groups(argument):
    """Makes and frees groups, with an operation on each; returns the rate and how the use of
    memory changed."""
    context = native.Context()
    world = context.group()
    out = np.zeros(4, np.int64)
    big = np.zeros(argument.get("stream_count", 0), np.int64)

    def one(index):
        members = list(range(context.size)) if index % 2 else list(reversed(range(context.size)))
        group = context.group(members)
        group.allreduce(np.full(4, group.rank, np.int64), out, "int64", "sum").wait()
        assert out[0] == context.size * (context.size - 1) // 2
        if big.size and index % 10 == 0:
            group.allreduce(np.full(big.size, 2, np.int64), big, "int64", "sum").wait()
            assert (big == 2 * context.size).all()
        group.free()

    for index in range(argument["warm_up"]):
        one(index)
    world.barrier().wait()
    note(0)
    if argument.get("gate"):
        while not pathlib.Path(argument["gate"]).exists():
            time.sleep(0.02)
    rss, start = rss_bytes(), time.monotonic()
    for index in range(argument["number"]):
        one(index)
    elapsed = time.monotonic() - start
    grown = rss_bytes() - rss
    context.finalize()
    return {"rate": argument["number"] / elapsed, "grown": grown}


def late(argument):
    """One rank comes late by `seconds`; the others wait in a barrier. Returns the cost of the
    waiting, per rank."""
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    is_late = context.rank == argument["rank"]
    before, cpu, start = context.counters(), cpu_now(), time.monotonic()
    if is_late:
        time.sleep(argument["seconds"])
    group.barrier().wait()
    elapsed = time.monotonic() - start
    after = context.counters()
    context.finalize()
    packets = sum(after[k] - before[k] for k in ("datagrams_sent", "datagrams_received"))
    return {"late": is_late, "elapsed": elapsed, "packets": packets, "cpu": cpu_now() - cpu}


class Work:
    """What an application's own runtime has to do after a while without any: pieces that take a tenth
    of a millisecond each."""

    def __init__(self, after, pieces):
        self.begins, self.left = time.monotonic() + after, pieces
        self.begun, self.slept = None, None

    def progress(self):
        if time.monotonic() < self.begins or self.left == 0:
            return
        if self.begun is None:
            self.begun = asleep_now()
        self.left -= 1
        end = time.thread_time_ns() + 100_000
        while time.thread_time_ns() < end:
            pass
        if self.left == 0:
            self.slept = asleep_now() - self.begun
            note(1)


def asleep_now():
    """For how many seconds this thread has slept, from an arbitrary beginning. While it waits for a
    processor that others use it does not sleep."""
    ran, waited, _ = map(int, pathlib.Path("/proc/thread-self/schedstat").read_text().split())
    return time.monotonic() - (ran + waited) / 1e9


def late_with_work(argument):
    """The last rank comes when rank 0, which waits for it, has done its other work. Returns how
    long that rank slept meanwhile."""
    work = Work(argument["after"], argument["pieces"] if int(os.environ["TRIB_RANK"]) == 0 else 0)
    context = native.Context(progress=work.progress)
    group = context.group()
    if context.rank == context.size - 1:
        await_note(0)
    group.barrier().wait()
    context.finalize()
    return {"slept": work.slept}


def outstanding(argument):
    """Many operations posted at once, of both paths; the library's threads are counted
    meanwhile."""
    context = native.Context()
    group = context.group()
    operations = []
    for index in range(argument["number"]):
        count = argument["counts"][index % len(argument["counts"])]
        mine, total = vectors(context.rank, context.size, count, index)
        out = np.empty_like(mine)
        operations.append((group.allreduce(mine, out, "int64", "sum"), out, total))
    most = len(os.listdir("/proc/self/task"))
    for request, out, total in operations:
        request.wait()
        assert np.array_equal(out, total)
    context.finalize()
    return {"with_library": most, "after": threads_that_stay()}


def threads_that_stay():
    """How many threads this process has. A thread that has been joined is listed until the kernel
    has taken it down, which may be a moment later."""
    last = time.monotonic() + 10
    while (number := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < last:
        time.sleep(0.001)
    return number


def computes(argument):
    """Rank 0 computes after its operations in the group of all ranks, which leave that group a
    lease; it calls the library again only when an operation of the others' own group is done, or
    after a while. Returns whether it was done by then, and how often rank 0 woke meanwhile."""
    context = native.Context()
    both = context.group()
    others = context.group(range(1, context.size)) if context.rank else None
    done = pathlib.Path(argument["done"])
    mine, out = np.ones(argument["count"], np.int64), np.empty(argument["count"], np.int64)
    seen = []
    for turn in range(argument["turns"]):
        both.allreduce(mine, out, "int64", "sum").wait()
        assert (out == context.size).all()
        time.sleep(argument["pauses"][turn % len(argument["pauses"])])
        flag, before, end = done.with_suffix(f".{turn}"), waits(os.getpid()), time.monotonic() + argument["limit"]
        if others is not None:
            others.allreduce(mine, out, "int64", "sum").wait(int(1000 * argument["limit"]))
            assert (out == others.size).all()
            flag.touch()
        naps = 0
        while not flag.exists() and time.monotonic() < end:
            time.sleep(0.1)
            naps += 1
        seen.append((flag.exists(), waits(os.getpid()) - before - naps))
    context.finalize()
    return seen


def crossing(argument):
    """Streams on two groups that are posted in opposite order on odd and even ranks, with no
    wait in between."""
    context = native.Context()
    a = context.group()
    b = context.group(list(reversed(range(context.size))))
    for iteration in range(argument["iterations"]):
        mine, total = vectors(context.rank, context.size, argument["count"], iteration)
        outs = [np.empty_like(mine), np.empty_like(mine)]
        order = [(a, outs[0]), (b, outs[1])]
        if context.rank % 2:
            order.reverse()
        for request in [group.allreduce(mine, out, "int64", "sum") for group, out in order]:
            request.wait(60_000)
        assert all(np.array_equal(out, total) for out in outs)
    counters = context.counters()
    context.finalize()
    return counters


def allgathers(argument):
    """Short allgathers in several groups, in turn, each checked."""
    context = native.Context()
    groups = [context.group(tag=tag) for tag in range(argument["groups"])]
    for operation in range(argument["operations"]):
        mine, out = np.array([context.rank + operation], np.int64), np.zeros(context.size, np.int64)
        groups[operation % len(groups)].allgather(mine, out, 8).wait()
        assert np.array_equal(out, np.arange(context.size) + operation), f"allgather {operation}"
    for group in groups:
        group.free()
    context.finalize()
    return {}


def disagree(argument):
    """One rank calls with another count; every rank must get an error that names two ranks. On demand it dies of it."""
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    count = argument["odd"] if context.rank == argument["rank"] else argument["even"]
    mine = np.ones(count, np.float32)
    try:
        group.allreduce(mine, np.empty_like(mine), "float32", "sum").wait(30_000)
    except native.Failed as failed:
        if argument.get("die"):
            os._exit(3)
        status = group.status()
        context.finalize()
        return {"status": failed.status, "text": failed.text, "group": status}
    return {"status": 0, "text": "no error"}


def until_error(argument):
    """Runs operations until one fails; tells how it failed, and how soon after the test's signal
    file appeared."""
    context = native.Context()
    group = context.group(name=argument.get("name"))
    signal, iteration = pathlib.Path(argument["signal"]), 0
    while True:
        seen = signal.stat().st_mtime if signal.exists() else None
        try:
            for count in argument["counts"]:
                mine, total = vectors(context.rank, context.size, count, iteration)
                out = np.empty_like(mine)
                group.allreduce(mine, out, "int64", "sum").wait()
                assert np.array_equal(out, total)
        except native.Failed as failed:
            seen = seen or (signal.stat().st_mtime if signal.exists() else time.time())
            return {"status": failed.status, "text": failed.text, "after": time.time() - seen, "iterations": iteration}
        iteration += 1
        note(iteration)


def first_byte(argument):
    """Streams one large vector, and compares when the first result arrives with what has been
    sent by then."""
    context = native.Context()
    group = context.group()
    count = argument["bytes"] // 8
    group.barrier().wait()
    mine, total = vectors(context.rank, context.size, count, 0)
    out = np.full(count, -1, np.int64)
    before = context.counters()["stream_bytes_sent"]
    request = group.allreduce(mine, out, "int64", "sum")
    sent = None
    while not request.test():
        if sent is None and out[0] != -1:
            sent = context.counters()["stream_bytes_sent"] - before
    sent = argument["bytes"] if sent is None else sent
    assert np.array_equal(out, total)
    context.finalize()
    return {"sent_at_first_result": sent}


def huge(argument):
    """One operation longer than 4 GiB, in place."""
    context = native.Context()
    group = context.group()
    count = argument["bytes"] // 4
    data = np.full(count, context.rank + 1, np.uint32)
    marks = [0, 1, count // 2, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, count - 1]
    for i, mark in enumerate(marks):
        data[mark] = 1000 * (context.rank + 1) + i
    group.allreduce(native.IN_PLACE, data, "uint32", "sum").wait()
    size = context.size
    ranks = size * (size + 1) // 2
    for i, mark in enumerate(marks):
        assert data[mark] == 1000 * ranks + i * size, (mark, data[mark])
        data[mark] = ranks
    assert (data == ranks).all()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counters = context.counters()
    context.finalize()
    return {"peak_kib": peak, "counters": counters}


def rss_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_now():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def leave(gate):
    """Rank 0 finalizes while rank 1 has not left the group, which it does once the file exists. Returns whether rank 0 had no
    helper thread any more while it waited; rank 0 makes the file when it has seen that, and that it still waits."""
    context = native.Context()
    group, gate = context.group(), pathlib.Path(gate)
    value = np.zeros(100_000, dtype=np.int64)
    group.allreduce(value, value, "int64", "sum").wait()
    is_alone = False
    if context.rank == 0:
        leaving = threading.Thread(target=context.finalize)
        leaving.start()
        while leaving.is_alive() and not is_alone:
            is_alone = "tributary\n" not in names_of_threads()
            time.sleep(0.05)
        is_alone = is_alone and leaving.is_alive()
        gate.touch()
        leaving.join()
    else:
        while not gate.exists():
            time.sleep(0.001)
        context.finalize()
    return is_alone


def names_of_threads():
    names = []
    for file in pathlib.Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.append(file.read_text())
    return names
