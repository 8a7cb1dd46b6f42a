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
import reference
from rank import note


def run(argument):
    """`calls` in turn, so many at once, until the file `stop` exists on rank 0. After each `stride`
    calls rank 0 tells all others by a bcast whether it does."""
    folder, stop = pathlib.Path(argument["expected"]), pathlib.Path(argument["stop"])
    calls = json.loads((folder / "calls.json").read_text())
    context = native.Context()
    groups = {i: context.group(ranks, tag=i) for i, ranks in enumerate(argument["groups"]) if context.rank in ranks}
    mine = [call for call in calls if call["group"] in groups or call["index"] % argument["stride"] == 0]
    inputs = Inputs(argument["seed"], context.rank, argument["groups"])
    wanted = [expected(folder, call["index"], context.rank) for call in calls]
    open_calls, wrong, told = [], [], []
    watch = Watch(context, argument["period"])
    teller = Teller(watch, stop)

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
            flag = np.array([context.rank == 0 and teller.is_over], dtype=np.uint8)
            open_calls.append((None, groups[0].bcast(flag, 0), flag))
        if call["group"] in groups:
            open_calls.append((call["index"], *random_worker.post(groups[call["group"]], call, inputs.of(call))))
        while len(open_calls) > argument["outstanding"]:
            finish()
    while open_calls:
        finish()
    teller.end()
    gaps, epochs = watch.end()
    counters = context.counters()
    for group in groups.values():
        group.free()
    context.finalize()
    return {"done": watch.done, "wrong": wrong[:5], "gaps": gaps, "epochs": epochs, "counters": counters}


class Inputs:
    """The vectors of this rank, each made once."""

    def __init__(self, seed, rank, groups):
        self.seed, self.rank, self.groups, self.made = seed, rank, groups, {}

    def of(self, call):
        count = random_worker.given_by(call, self.groups)
        key = call["input"], call["dtype"], count
        if key not in self.made:
            # Long ones repeat themselves, but never after a whole number of segments.
            piece = reference.make_input(call["dtype"], self.seed * 100_003 + call["input"], self.rank, min(count, PRIME))
            self.made[key] = piece if count <= PRIME else np.resize(piece, count)
        return self.made[key]


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
    64 KiB have gone over its connection. Notes the longer gaps between such moments, each with the
    time for which threads of this process were ready and had no processor in it, and the moments at
    which the rank has gone on in another epoch, by the clock that all processes of a machine share."""

    def __init__(self, context, period):
        super().__init__(daemon=True)
        self.context, self.period, self.done = context, period, 0
        self.gaps, self.epochs, self.going = [], [], True
        self.start()

    def run(self):
        state, epochs, last = None, 0, time.monotonic()
        waited, measured = waited_for_a_processor(), last
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
                    before, waited, measured = waited, waited_for_a_processor(), now
                    self.gaps.append((last, now, min(waited - before, now - last)))
                last = now
            if last == now and now - measured > MEASURED:
                waited, measured = waited_for_a_processor(), now
            time.sleep(self.period)

    def end(self):
        self.going = False
        self.join()
        return self.gaps, self.epochs


class Teller(threading.Thread):
    """Tells the test how far the rank is, and learns whether it is over. File systems make those who
    ask wait, so no other thread does it."""

    def __init__(self, watch, stop):
        super().__init__(daemon=True)
        self.watch, self.stop, self.is_over, self.going = watch, stop, False, True
        self.start()

    def run(self):
        while self.going:
            note(self.watch.done)
            self.is_over = self.stop.exists()
            time.sleep(0.02)

    def end(self):
        self.going = False
        self.join()


def waited_for_a_processor():
    """For how long the threads of this process, put together, were ready to run and did not, in
    seconds."""
    waited = 0
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            waited += int((task / "schedstat").read_bytes().split()[1])
        except OSError:
            pass  # It has ended meanwhile.
    return waited / 1e9


#: Gaps that are shorter than this, in seconds, are what a shared processor makes.
LEAST = 0.005
#: How old a measurement of waiting may be at the beginning of a gap, in seconds.
MEASURED = 0.01
BLOCK = 1 << 20
PAGE = 4096
PRIME = 1_000_003
