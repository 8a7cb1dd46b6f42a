"""What ranks of one host do in tests of the memory that they share."""

import os
import pathlib
import threading
import time

import numpy as np

import native
from loop_worker import cpu_now, vectors
from rank import end_without_a_word, note


def computing(argument):
    """Posts one long operation and computes without a call of the library until it is done, as the
    library's thread sees to. Returns how long that took, and the counters."""
    context = native.Context()
    group = context.group()
    took = []
    for iteration in range(argument["iterations"]):
        mine, total = vectors(context.rank, context.size, argument["count"], iteration)
        out = np.full_like(mine, -1)
        group.barrier().wait()
        began = time.monotonic()
        request = group.allreduce(mine, out, "int64", "sum")
        while out[-1] != total[-1] and time.monotonic() < began + argument["limit"]:
            pass
        took.append(time.monotonic() - began)
        request.wait()
        assert np.array_equal(out, total)
    counters = context.counters()
    context.finalize()
    return {"took": took, "counters": counters}


def long_waits(argument):
    """Waits for a long operation, first for two milliseconds, then to the end. Returns the status of
    the first wait, and how often the library has called the progress function meanwhile."""
    called = [0]

    def progress():
        called[0] += 1

    context = native.Context(progress=progress)
    group = context.group()
    mine, total = vectors(context.rank, context.size, argument["count"], 0)
    out = np.full_like(mine, -1)
    group.barrier().wait()
    before, status = called[0], 0
    request = group.allreduce(mine, out, "int64", "sum")
    try:
        request.wait(2)
    except native.Failed as failed:
        status = failed.status
        request.wait()
    progress_calls = called[0] - before
    assert np.array_equal(out, total)
    context.finalize()
    return {"status": status, "progress": progress_calls}


def beside_a_sleeper(argument):
    """One thread of each rank waits in a barrier to which rank 1 comes `seconds` late, of a group on
    its host or of one with a third rank on another. Meanwhile
    another one has sums in a second group, to each of which rank 1 comes `pause` late, too. Returns
    how long each took this rank: first in one call, then posted and looked for in memory."""
    rank = int(os.environ["TRIB_RANK"])
    context = native.Context(host="other" if rank == 2 else "one")
    one = context.group()
    if rank == 2:
        one.barrier().wait()
        context.finalize()
        return []
    two = context.group([0, 1], 1)
    two.barrier().wait()

    def wait_long():
        time.sleep(argument["seconds"] * rank)
        one.barrier().wait()

    sleeper = threading.Thread(target=wait_long)
    sleeper.start()
    time.sleep(0.1)
    took = []
    for turn in range(2 * argument["turns"]):
        mine, total = vectors(rank, 2, argument["count"], turn)
        out = np.full_like(mine, -1)
        time.sleep(argument["pause"] * rank)
        began = time.monotonic()
        if turn < argument["turns"]:
            two.allreduce_blocking(mine, out, "int64", "sum")
        else:
            request = two.allreduce(mine, out, "int64", "sum")
            while out[-1] != total[-1]:
                time.sleep(0.001)
            request.wait()
        took.append(time.monotonic() - began)
        assert np.array_equal(out, total)
    sleeper.join()
    context.finalize()
    return took


def short_ones_beside(argument):
    """Posts a long operation with a rank of another host. Two ranks of one host then do short ones
    over their board, without a pause, until they have the long one's result. Returns whether that
    came in time."""
    rank = int(os.environ["TRIB_RANK"])
    context = native.Context(host="other" if rank == 2 else "one")
    world = context.group()
    near = context.group([0, 1], 1) if rank < 2 else None
    mine, total = vectors(rank, context.size, argument["count"], 0)
    out, mark, least = np.full_like(mine, -1), np.zeros(1, np.int64), np.zeros(1, np.int64)
    world.barrier().wait()
    request = world.allreduce(mine, out, "int64", "sum")
    until = time.monotonic() + argument["limit"]
    while near and least[0] == 0:
        # 2: it has not come in time.
        mark[0] = 1 if out[-1] == total[-1] else 2 * (time.monotonic() > until)
        near.allreduce_blocking(mark, least, "int64", "min")
    request.wait()
    assert np.array_equal(out, total)
    counters = context.counters()
    context.finalize()
    return {"in_time": int(least[0]) < 2, "counters": counters}


def many_under_way(argument):
    """Posts operations of all lengths and kinds before the first is waited for, in two groups, in
    place and not, and before the groups are ready."""
    context = native.Context()
    groups = [context.group(name="one"), context.group(list(reversed(range(context.size))), 7, "other")]
    rank, size = context.rank, context.size
    posted = []
    for turn in range(argument["turns"]):
        for group in groups:
            count = argument["counts"][turn % len(argument["counts"])]
            mine, total = vectors(group.rank, size, count, turn)
            posted.append((group.allreduce(mine, out := np.empty_like(mine), "int64", "sum"), out, total))
            in_place = mine.copy()
            posted.append((group.allreduce(native.IN_PLACE, in_place, "int64", "sum"), in_place, total))
            root = turn % size
            data = vectors(root, size, count, turn)[0] if group.rank == root else np.empty(count, np.int64)
            posted.append((group.bcast(data, root), data, vectors(root, size, count, turn)[0]))
            summed = np.empty_like(mine) if group.rank == root else mine
            posted.append((group.reduce(mine, summed, "int64", "sum", root), summed, total if group.rank == root else mine))
            all_blocks = np.concatenate([vectors(member, size, count, turn)[0] for member in range(size)])
            gathered = np.empty_like(all_blocks)
            posted.append((group.allgather(mine, gathered, mine.nbytes), gathered, all_blocks))
            mine_times = np.tile(mine, size)
            scattered = np.empty_like(mine)
            posted.append((group.reduce_scatter(mine_times, scattered, count, "int64", "sum"), scattered, total))
            posted.append((group.barrier(), np.zeros(0), np.zeros(0)))
    for number, (request, out, want) in enumerate(posted):
        request.wait()
        assert np.array_equal(out, want), f"operation {number}"
    counters = context.counters()
    for group in groups:
        group.free()
    context.finalize()
    return counters


def leaves(argument):
    """One rank leaves the group, and the others call once more. Returns their errors."""
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    if context.rank == argument["rank"]:
        group.free()
        time.sleep(1)
        context.finalize()
        return None
    try:
        mine = np.ones(argument["count"], np.float32)
        group.allreduce(mine, np.empty_like(mine), "float32", "sum").wait(30_000)
    except native.Failed as failed:
        context.finalize()
        return {"status": failed.status, "text": failed.text}
    return {"status": 0, "text": "no error"}


def hears_first(_):
    """The last rank dies while others wait for it. Rank 0, which has called nothing, hears of it as
    soon as can be and leaves the group with the error. Returns what each hears of the group."""
    context = native.Context()
    group = context.group()
    one, out = np.ones(1), np.empty(1)
    group.barrier().wait()
    if context.rank == context.size - 1:
        time.sleep(1)
        end_without_a_word()
    while context.rank == 0 and group.status()[0] == 0:
        context.progress()
    try:
        group.allreduce_blocking(one, out, "float64", "sum")
        text = "no error"
    except native.Failed as failed:
        text = failed.text
    group.free()
    context.finalize()
    return text


def other_call(argument):
    """One rank gathers while the others sum. Returns the error."""
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    mine = np.ones(argument["count"], np.float32)
    try:
        if context.rank == argument["rank"]:
            group.allgather(mine, np.empty(context.size * mine.size, np.float32), mine.nbytes).wait(30_000)
        else:
            group.allreduce(mine, np.empty_like(mine), "float32", "sum").wait(30_000)
    except native.Failed as failed:
        context.finalize()
        return {"status": failed.status, "text": failed.text}
    return {"status": 0, "text": "no error"}


def late_ones(argument):
    """Ranks are late in turn, by so long that the others sleep. Returns how much of a processor
    these took, and how long after the late rank's call the slowest had its result."""
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    cpu, began, after = cpu_now(), time.monotonic(), []
    for turn in range(argument["turns"]):
        late = turn % context.size
        value = np.zeros(1)
        if context.rank == late:
            time.sleep(argument["seconds"])
            value[0] = time.monotonic()
        group.bcast(np.zeros(1), late).wait()
        called = np.zeros(1)
        group.allreduce(value, called, "float64", "sum").wait()
        after.append(time.monotonic() - called[0])
    share = (cpu_now() - cpu) / (time.monotonic() - began)
    context.finalize()
    return {"share": share, "after": after}


def helpers(argument):
    """Does short operations back to back. Returns how often the library's thread has slept
    meanwhile, and how long that took."""
    context = native.Context()
    group = context.group()
    mine, out = np.ones(1), np.zeros(1)
    names = pathlib.Path("/proc/self/task").glob("*/comm")
    [thread] = [path.parent for path in names if path.read_text().strip() == "tributary"]

    def sleeps():
        [line] = [line for line in (thread / "status").read_text().splitlines() if line.startswith("voluntary")]
        return int(line.split()[1])

    for _ in range(20):
        group.allreduce_blocking(mine, out, "float64", "sum")
    before, began = sleeps(), time.monotonic()
    for _ in range(argument["iterations"]):
        group.allreduce_blocking(mine, out, "float64", "sum")
    slept, took = sleeps() - before, time.monotonic() - began
    assert out[0] == context.size
    context.finalize()
    return {"slept": slept, "took": took}


def boards(argument):
    """Makes groups, and tells how many boards this process has mapped before, with and after them."""
    context = native.Context()

    def mapped():
        return pathlib.Path("/proc/self/maps").read_text().count("memfd:tributary-board")

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    seen, opened = [mapped()], [descriptors()]
    groups = [context.group(tag=tag) for tag in range(argument["groups"])]
    for group in groups:
        group.barrier().wait()
    seen.append(mapped())
    opened.append(descriptors())
    for group in groups:
        group.free()
    seen.append(mapped())
    note(1)
    context.finalize()
    return {"mapped": seen, "descriptors": opened}
