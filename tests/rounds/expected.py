"""The collectives that the ranks of a round repeat, and their results by the plain reference."""

import json
import os

import numpy as np

import random_worker
import reference
import round_worker

SEED = 16
MIB = 1 << 20


def long_calls(size):
    """So many bytes each, of the streamed path, float sums among them, whose bits depend on the order."""
    count, parts = size // 4, 8
    shapes = [
        ("allreduce", count, False), ("allreduce", count, True), ("bcast", count, False), ("reduce", count, False),
        ("reduce_scatter", count // parts, False), ("allreduce", count, False), ("allgather", count // parts, True),
    ]
    return streamed(shapes, 5)


def longest_calls(size):
    """The same for ranks that have memory for one of these operations at a time."""
    count = size // 4
    return streamed([("allreduce", count, False), ("allreduce", count, True), ("reduce", count, False)], 2)


def streamed(shapes, root):
    for index, (collective, count, in_place) in enumerate(shapes):
        yield {
            "index": index, "input": 0, "dtype": "float32", "op": "sum", "group": index % 2, "collective": collective,
            "count": count, "root": root, "in_place": in_place,
        }


def short_calls():
    """At most 256 B each (pairs of value and index a little more), of all collectives, types and
    operators, in seven groups."""
    for call in random_worker.calls(SEED, 60, 32):
        yield {**call, "input": call["index"]}


#: By size: the ranks, the calls, how many of them are outstanding, after how many the ranks agree
#: whether to go on, and how often they look whether they stand still, in seconds.
KINDS = {
    "256 B": {"ranks": 8, "calls": short_calls, "outstanding": 4, "stride": 20, "period": 0.002},
    "4 MiB": {"ranks": 8, "calls": lambda: long_calls(4 * MIB), "outstanding": 2, "stride": 2, "period": 0.005},
    "64 MiB": {"ranks": 8, "calls": lambda: long_calls(64 * MIB), "outstanding": 2, "stride": 1, "period": 0.005},
    "1 GiB": {"ranks": 4, "calls": lambda: longest_calls(1024 * MIB), "outstanding": 0, "stride": 1, "period": 0.005},
}
#: The shape of the fold: half of the ranks are below each leaf. Beside it stand the groups.
SHAPES = {
    8: ([[0, 1, 2, 3], [4, 5, 6, 7]], random_worker.GROUPS),
    4: ([[0, 1], [2, 3]], [[0, 1, 2, 3], [3, 2, 1, 0]]),
}


def write(folder, size):
    """Writes calls and results, and returns what the ranks have to know."""
    kind = KINDS[size]
    ranks, calls = kind["ranks"], list(kind["calls"]())
    tree, groups = SHAPES[ranks]
    folder.mkdir()
    (folder / "calls.json").write_text(json.dumps(calls))
    inputs = [round_worker.Inputs(SEED, rank, groups) for rank in range(ranks)]
    for call in calls:
        members = groups[call["group"]]
        outputs = reference.result(tree, members, call, {rank: inputs[rank].of(call) for rank in members})
        written = {}
        for rank, output in outputs.items():
            if output is None:
                continue
            path = folder / f"{call['index']}.{rank}.npy"
            if id(output) in written:
                os.link(written[id(output)], path)
            else:
                np.save(path, output)
                written[id(output)] = path
    words = {k: kind[k] for k in ("outstanding", "stride", "period")}
    return {"expected": str(folder), "seed": SEED, "groups": groups, **words}
