"""Ranks of test_random_collectives: they run a seeded list of operations, and return each result
as a digest."""

import hashlib
import random
import time

import numpy as np

import native
import reference
from native import DTYPES, IN_PLACE
from rank import note

GROUPS = [
    [0, 1, 2, 3, 4, 5, 6, 7],
    [7, 6, 5, 4, 3, 2, 1, 0],
    [0, 2, 4, 6],
    [1, 3, 5, 7],
    [0, 1, 2, 3],
    [5, 4, 7],
    [3, 6, 0, 5, 1],
]
INTEGERS = ["uint32", "int32", "uint64", "int64"]
PAIR_OPS = ["maxloc", "minloc"]
INTEGER_OPS = [op for op in native.OPS if op not in PAIR_OPS]


def calls(seed, number, most):
    """The operations of a run, the same on every rank."""
    draw = random.Random(seed)
    for index in range(number):
        dtype = draw.choice(list(DTYPES))
        ops = PAIR_OPS if ":" in dtype else INTEGER_OPS if dtype in INTEGERS else ["max", "min", "sum", "prod"]
        group = draw.randrange(len(GROUPS))
        collective = draw.choice(["allreduce"] * 4 + ["reduce", "reduce", "bcast", "bcast", "barrier"]
                                 + ["reduce_scatter", "allgather"] * 2)
        count = draw.choice([0, 1, 2, 3]) if draw.random() < 0.1 else int(most ** draw.random())
        if index % 40 == 7:
            count, collective = most, "allreduce"
        if collective in ("reduce_scatter", "allgather"):
            count //= len(GROUPS[group])
        yield {
            "index": index, "dtype": dtype, "op": draw.choice(ops), "group": group, "collective": collective,
            "count": count, "root": draw.randrange(len(GROUPS[group])), "in_place": draw.random() < 0.3,
        }


def input_of(call, seed, rank):
    count = given_by(call, GROUPS)
    return reference.make_input(call["dtype"], seed * 100_003 + call["index"], rank, count)


def given_by(call, groups):
    """How many elements each rank gives."""
    return call["count"] * (len(groups[call["group"]]) if call["collective"] == "reduce_scatter" else 1)


def digest(array):
    return "-" if array is None else hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()


def run(argument):
    """Returns digests of the results by call index; posts up to four operations of different
    groups at once."""
    seed, shuffled = argument["seed"], argument["shuffled"]
    context = native.Context()
    mine = {i: context.group(ranks, tag=i) for i, ranks in enumerate(GROUPS) if context.rank in ranks}
    late = random.Random(argument["shuffle_seed"] * 977 + context.rank)
    digests, open_requests = {}, []

    def finish():
        for call, request, output in open_requests:
            request.wait()
            digests[call["index"]] = digest(output)
        open_requests.clear()

    for call in calls(seed, argument["number"], argument["most"]):
        note(call["index"])
        group = mine.get(call["group"])
        if group is None:
            continue
        if shuffled and late.random() < 0.3:
            time.sleep(late.random() * 0.004)
        open_requests.append((call, *post(group, call, input_of(call, seed, context.rank))))
        if len(open_requests) == 4:
            finish()
    finish()
    counters = context.counters()
    for group in mine.values():
        group.free()
    context.finalize()
    return {"digests": digests, "counters": counters}


def post(group, call, data):
    """Starts one operation; returns the request and the array that will hold the result (or
    None)."""
    collective, dtype, op, count, root = (call[k] for k in ("collective", "dtype", "op", "count", "root"))
    storage = DTYPES[dtype][1]
    sbuf = data
    if collective == "barrier":
        return group.barrier(), None
    if collective == "bcast":
        buffer = data.copy() if group.rank == root else np.zeros(count, storage)
        return group.bcast(buffer, root), None if group.rank == root else buffer
    if collective == "allgather":
        output = np.zeros(count * group.size, storage)
        if call["in_place"]:
            output[group.rank * count : (group.rank + 1) * count] = data
            sbuf = IN_PLACE
        return group.allgather(sbuf, output, count * data.itemsize), output
    if collective == "reduce_scatter":
        if call["in_place"]:
            output = data.copy()
            return group.reduce_scatter(IN_PLACE, output, count, dtype, op), output[:count]
        output = np.zeros(count, storage)
        return group.reduce_scatter(sbuf, output, count, dtype, op), output
    output = data.copy() if call["in_place"] else np.zeros(count, storage)
    if call["in_place"]:
        sbuf = IN_PLACE
    if collective == "allreduce":
        return group.allreduce(sbuf, output, dtype, op), output
    if group.rank == root:
        return group.reduce(sbuf, output, dtype, op, root), output
    return group.reduce(data, None, dtype, op, root), None
