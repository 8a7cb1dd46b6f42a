"""A plain reference for whole collectives, in NumPy. It shares no code with the system that it
judges.

Folds follow the tree: left to right over a node's children, one node after the other from the
leaves up. float16 and bfloat16 are accumulated in float32 and rounded to nearest even once per
node.
"""

import numpy as np

from native import DTYPES


def make_input(dtype, seed, rank, count):
    """Values that differ on every rank. Float sums and products depend on the order and stay
    finite."""
    random = np.random.default_rng([seed, rank])
    storage = DTYPES[dtype][1]
    if ":" in dtype:
        # There are few values, so that indices often decide.
        elements = np.empty(count, storage)
        elements["value"] = random.integers(-2, 3, count)
        elements["index"] = random.integers(0, 200, count)
        return elements
    if dtype in ("float32", "float64"):
        return (random.standard_normal(count) * 3).astype(storage)
    if dtype == "float16":
        return random.standard_normal(count).astype(np.float16)
    if dtype == "bfloat16":
        return to_bfloat16(random.standard_normal(count).astype(np.float32))
    info = np.iinfo(storage)
    return random.integers(info.min, info.max, count, dtype=storage, endpoint=True)


def to_bfloat16(values):
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


STEP = {
    "max": np.maximum, "min": np.minimum, "sum": np.add, "prod": np.multiply,
    "land": np.logical_and, "lor": np.logical_or, "lxor": np.logical_xor,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}


def fold_pairs(op, operands):
    """The best of the values, and the smallest index of those that equal it."""
    pairs = np.stack(operands)
    best = (np.max if op == "maxloc" else np.min)(pairs["value"], axis=0)
    beyond = np.iinfo(pairs["index"].dtype).max
    result = np.empty(operands[0].shape, pairs.dtype)
    result["value"] = best
    result["index"] = np.where(pairs["value"] == best, pairs["index"], beyond).min(axis=0)
    return result


def fold(dtype, op, operands):
    """One node: folds its children's vectors, in order, into one."""
    if len(operands) == 1:
        return operands[0]
    if ":" in dtype:
        return fold_pairs(op, operands)
    widen = {"float16": lambda v: v.astype(np.float32), "bfloat16": from_bfloat16}.get(dtype, lambda v: v)
    total = widen(operands[0])
    with np.errstate(over="ignore"):
        for operand in operands[1:]:
            total = STEP[op](total, widen(operand)).astype(total.dtype)
        if dtype == "float16":
            return total.astype(np.float16)
    return to_bfloat16(total) if dtype == "bfloat16" else total


def reduce_tree(tree, dtype, op, by_rank):
    """Folds a tree, which is a rank, or a list of trees in child order; ranks without a vector
    are not members."""
    if not isinstance(tree, list):
        return by_rank.get(tree)
    below = [reduce_tree(child, dtype, op, by_rank) for child in tree]
    below = [vector for vector in below if vector is not None]
    return fold(dtype, op, below) if below else None


def result(tree, ranks, call, inputs):
    """What each member gets: {rank: array or None}. inputs: {rank: array}."""
    kind, root = call["collective"], call["root"]
    if kind == "barrier":
        return {rank: None for rank in ranks}
    if kind == "bcast":
        return {rank: None if i == root else inputs[ranks[root]] for i, rank in enumerate(ranks)}
    if kind == "allgather":
        whole = np.concatenate([inputs[rank] for rank in ranks])
        return {rank: whole for rank in ranks}
    total = reduce_tree(tree, call["dtype"], call["op"], inputs)
    if kind == "allreduce":
        return {rank: total for rank in ranks}
    if kind == "reduce":
        return {rank: total if i == root else None for i, rank in enumerate(ranks)}
    block = call["count"]
    return {rank: total[i * block : (i + 1) * block] for i, rank in enumerate(ranks)}
