"""Ranks that share hosts: in a group with, and a group without the rank that hosts their host's node;
and in one with a rank that is late."""

import json
import os
import pathlib
import time

import numpy as np

import native
from rank import note


class Outstanding:
    """One checked allreduce after the other in a group, without ever waiting for one."""

    def __init__(self, group):
        self.group, self.said, self.done, self.at = group, "right", 0, time.time()
        self.post()

    def post(self):
        self.out = np.zeros(2000, np.int64)
        self.request = self.group.allreduce(np.full(2000, self.done, np.int64), self.out, "int64", "sum")

    def look(self):
        try:
            if self.request is None or not self.request.test():
                return
        except native.Failed as failed:
            self.request = None
            self.said = {"status": failed.status, "text": failed.text, "after": time.time() - self.at}
            return
        assert (self.out == self.group.size * self.done).all(), self.done
        self.done, self.at = self.done + 1, time.time()
        self.post()


def sums(group, number, is_last):
    """A round of checked allreduces. Whether this is the last one, as all members want."""
    ranks = group.size * (group.size + 1) // 2
    for count in (3, 20_000):
        out = np.zeros(count, np.int64)
        group.allreduce(np.arange(count) * (group.rank + 1) + number, out, "int64", "sum").wait(120_000)
        assert np.array_equal(out, np.arange(count) * ranks + group.size * number), number
    is_over = np.zeros(1, np.int64)
    group.allreduce(np.array([is_last], np.int64), is_over, "int64", "min").wait(120_000)
    return bool(is_over[0])


def survive(argument):
    """Sums in the group of all beside sums in a group without the lead, until a file says stop; and,
    if the lead is to die, until the group of all has failed. What has become of both goes to a
    file, because the job does not end well: the test ends it."""
    folder, lead = pathlib.Path(argument["folder"]), argument["lead"]
    context = native.Context()
    world, number, is_over = Outstanding(context.group()), 0, False
    others = None if context.rank == lead else context.group([rank for rank in range(context.size) if rank != lead], tag=1)
    while not is_over:
        world.look()
        is_last = (folder / "stop").exists() and not (argument["dies"] and world.said == "right")
        is_over = sums(others, number, is_last) if others else is_last
        number += 1
        note(number)
        time.sleep(0.01)
    (folder / f"{context.rank}.tmp").write_text(json.dumps({"world": world.said, "others": number}))
    os.replace(folder / f"{context.rank}.tmp", folder / f"{context.rank}.over")
    time.sleep(120)


def late(argument):
    """Two sums, to the second of which one rank comes only when a file says so. The others wait for
    it, or compute; those that wait say what they hear when they have waited for a while. Then
    nobody does anything until a file says stop."""
    folder = pathlib.Path(argument["folder"])
    context = native.Context()
    group, text = context.group(name="field"), None
    for number in range(2):
        out = np.zeros(3, np.int64)
        if number == 1 and context.rank == argument["late"]:
            await_file(folder / "come")
        request = group.allreduce(np.full(3, context.rank), out, "int64", "sum")
        if argument["computes"] and number == 1:
            await_file(folder / "come")
        elif number == 1 and context.rank != argument["late"]:
            try:
                request.wait(700)
            except native.Failed as failed:
                text = failed.text
                note(1)
        request.wait(60_000)
        assert (out == context.size * (context.size - 1) // 2).all(), out
    note(2)
    await_file(folder / "stop")
    counters = context.counters()
    group.free()
    context.finalize()
    return {"text": text, "counters": counters}


def await_file(path):
    while not path.exists():
        time.sleep(0.01)
