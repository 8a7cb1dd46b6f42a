"""What ranks do on whose edge an attacker is: one sum of a long vector, and what came of it."""

import numpy as np

import native


def sums(argument):
    """Rank 0 gives a text again and again, the others nothing. Tells how many elements of the sum are
    wrong, or with what error it ended."""
    context = native.Context()
    group = context.group()
    group.barrier().wait()
    text = np.frombuffer((argument["text"].encode() * (argument["bytes"] // len(argument["text"]) + 1))[: argument["bytes"]], dtype=np.int32)
    given = text if context.rank == 0 else np.zeros_like(text)
    got = np.zeros_like(text)
    told = {"wrong": None, "error": None}
    try:
        group.allreduce(given.copy(), got, "int32", "sum").wait()
        told["wrong"] = int((got != text).sum())
        group.free()
        context.finalize()
    except native.Failed as error:
        told["error"] = str(error)
    return told
