"""The collectives that the ranks of a round repeat, and their results by the plain reference."""

import json
import os

import numpy as np

import random_worker
import reference
import round_worker

#: Two leaves with four hosts each, so this is the shape of the fold.
TREE = [[0, 1, 2, 3], [4, 5, 6, 7]]
SEED = 16
MIB = 1 << 20


def long_calls(size):
    """So many bytes each, of the streamed path, float sums among them, whose bits depend on the order."""
    count, parts = size // 4, 8
    shapes = [
        ("allreduce", count, False), ("allreduce", count, True), ("bcast", count, False), ("reduce", count, False),
        ("reduce_scatter", count // parts, False), ("allreduce", count, False), ("allgather", count // parts, True),
    ]
    for index, (collective, count, in_place) in enumerate(shapes):
        yield {
            "index": index, "input": 0, "dtype": "float32", "op": "sum", "group": index % 2, "collective": collective,
            "count": count, "root": 5, "in_place": in_place,
        }


def short_calls():
    """At most 256 B each (pairs of value and index a little more), of all collectives, types and
    operators, in seven groups."""
    for call in random_worker.calls(SEED, 60, 32):
        yield {**call, "input": call["index"]}


#: By size: the calls, how many of them are outstanding, after how many the ranks agree whether to
#: go on, and how often they look whether they stand still, in seconds.
KINDS = {
    "256 B": {"calls": short_calls, "outstanding": 4, "stride": 20, "period": 0.002},
    "4 MiB": {"calls": lambda: long_calls(4 * MIB), "outstanding": 2, "stride": 2, "period": 0.005},
    "64 MiB": {"calls": lambda: long_calls(64 * MIB), "outstanding": 2, "stride": 1, "period": 0.005},
}


def write(folder, size):
    """Writes calls and results, and returns what the ranks have to know."""
    kind = KINDS[size]
    calls = list(kind["calls"]())
    folder.mkdir()
    (folder / "calls.json").write_text(json.dumps(calls))
    inputs = [round_worker.Inputs(SEED, rank) for rank in range(8)]
    for call in calls:
        members = random_worker.GROUPS[call["group"]]
        outputs = reference.result(TREE, members, call, {rank: inputs[rank].of(call) for rank in members})
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
    return {"expected": str(folder), "seed": SEED, **{k: kind[k] for k in ("outstanding", "stride", "period")}}
