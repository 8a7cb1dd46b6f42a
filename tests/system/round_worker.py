"""Ranks of a round (tests/rounds): they repeat a list of collectives until they are told to stop,
compare every result with the reference, and tell when they stood still."""

import itertools
import json
import pathlib
import threading
import time

import numpy as np

import native
import random_worker
from rank import note


def run(argument):
    """`calls` in turn, on the groups of random_worker, so many at once, until the file `stop` exists
    on rank 0. After each `stride` calls rank 0 tells all others by a bcast whether it does."""
    folder, stop = pathlib.Path(argument["expected"]), pathlib.Path(argument["stop"])
    calls = json.loads((folder / "calls.json").read_text())
    context = native.Context()
    groups = {i: context.group(ranks, tag=i) for i, ranks in enumerate(random_worker.GROUPS) if context.rank in ranks}
    mine = [call for call in calls if call["group"] in groups or call["index"] % argument["stride"] == 0]
    inputs = Inputs(argument["seed"], context.rank)
    wanted = [expected(folder, call["index"], context.rank) for call in calls]
    open_calls, wrong, told = [], [], []
    watch = Watch(context, argument["period"])

    def finish():
        index, request, output = open_calls.pop(0)
        request.wait()
        watch.done += 1
        if index is None:
            told.append(bool(output[0]))
        elif output is not None and (at := difference(output, wanted[index])) is not None:
            wrong.append({"call": calls[index], "byte": at, "done": watch.done})

    for turn, call in enumerate(itertools.cycle(mine)):
        if call["index"] % argument["stride"] == 0:
            asked = turn and asked + 1
            # The word before the last counts, on all ranks: the newest may still be under way.
            while len(told) < asked - 1:
                finish()
            if asked > 1 and told[asked - 2]:
                break
            flag = np.array([context.rank == 0 and stop.exists()], dtype=np.uint8)
            open_calls.append((None, groups[0].bcast(flag, 0), flag))
        if call["group"] in groups:
            open_calls.append((call["index"], *random_worker.post(groups[call["group"]], call, inputs.of(call))))
        while len(open_calls) > argument["outstanding"]:
            finish()
        watch.note()
    while open_calls:
        finish()
    gaps, epochs = watch.end()
    counters = context.counters()
    for group in groups.values():
        group.free()
    context.finalize()
    return {"done": watch.done, "wrong": wrong[:5], "gaps": gaps, "epochs": epochs, "counters": counters}


class Inputs:
    """The vectors of this rank, each made once."""

    def __init__(self, seed, rank):
        self.seed, self.rank, self.made = seed, rank, {}

    def of(self, call):
        key = call["input"], call["dtype"], call["count"], call["collective"] == "reduce_scatter"
        if key not in self.made:
            self.made[key] = input_of(call, self.seed, self.rank)
        return self.made[key]


def input_of(call, seed, rank):
    return random_worker.input_of({**call, "index": call["input"]}, seed, rank)


def expected(folder, index, rank):
    path = folder / f"{index}.{rank}.npy"
    return np.load(path, mmap_mode="r") if path.exists() and path.stat().st_size > PAGE else (
        np.load(path) if path.exists() else None)


def difference(output, wanted):
    """The first byte that differs, or None."""
    output, wanted = output.view(np.uint8), wanted.view(np.uint8)
    if output.size != wanted.size:
        return min(output.size, wanted.size)
    for start in range(0, output.size, BLOCK):
        differs = output[start : start + BLOCK] != wanted[start : start + BLOCK]
        if differs.any():
            return start + int(np.argmax(differs))
    return None


class Watch(threading.Thread):
    """Looks every `period` seconds whether the rank has come further: an operation has ended, or
    64 KiB have gone over its connection. Notes the longer gaps between such moments, and the moments
    at which the rank has gone on in another epoch, by the clock that all processes of a machine share."""

    def __init__(self, context, period):
        super().__init__(daemon=True)
        self.context, self.period, self.done = context, period, 0
        self.gaps, self.epochs, self.noted, self.going = [], [], 0.0, True
        self.start()

    def note(self):
        """Tells the test how far the rank is, but not for every operation of a few microseconds."""
        now = time.monotonic()
        if now - self.noted > 0.02:
            self.noted = now
            note(self.done)

    def run(self):
        state, epochs, last = None, 0, time.monotonic()
        while self.going:
            counters = self.context.counters()
            now = time.monotonic()
            if counters["epochs"] != epochs:
                epochs = counters["epochs"]
                self.epochs.append((now, epochs))
            streamed = (counters["stream_bytes_sent"] + counters["stream_bytes_received"]) >> 16
            if (self.done, streamed) != state:
                state = self.done, streamed
                if now - last > LEAST:
                    self.gaps.append((last, now))
                last = now
            time.sleep(self.period)

    def end(self):
        self.going = False
        self.join()
        return self.gaps, self.epochs


#: Gaps that are shorter than this, in seconds, are what a shared processor makes.
LEAST = 0.005
BLOCK = 1 << 20
PAGE = 4096
