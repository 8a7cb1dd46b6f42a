# SPDX-License-Identifier: Apache-2.0
"""The last operations of this rank, for a look after something went wrong."""

import collections
import itertools
import json
import os
import pathlib
import time
from typing import Any

#: How many operations are remembered; 0 remembers none.
LENGTH_ENV = "TRIB_TORCH_RECORD"


class Record:
    """One operation: what was asked for, when, and what became of it. It is among the last ones from
    its beginning."""

    __slots__ = ("begun", "call", "dtype", "ended", "failure", "group", "number", "shape")

    def __init__(self, group: str, call: str, tensor: Any) -> None:
        self.number, self.group, self.call = next(_numbers), group, call
        self.dtype, self.shape = (None, None) if tensor is None else (tensor.dtype, tensor.shape)
        self.begun = time.time()
        self.ended: float | None = None
        # The words alone: an exception holds the frames, with their tensors, that it came through.
        self.failure: str | None = None
        _records.append(self)

    def end(self) -> None:
        """It went well."""
        self.ended = time.time()

    def fail(self, failure: BaseException) -> None:
        """It went wrong, or took too long."""
        self.failure = str(failure) or type(failure).__name__

    def told(self) -> dict[str, Any]:
        """The record for JSON. Times are in seconds since 1970."""
        state = "failed" if self.failure else "done" if self.ended else "under way"
        return {
            "number": self.number,
            "group": self.group,
            "call": self.call,
            "dtype": None if self.dtype is None else str(self.dtype).removeprefix("torch."),
            "shape": None if self.shape is None else list(self.shape),
            "begun": self.begun,
            "ended": self.ended,
            "state": state,
            "error": self.failure,
        }


def _length(told: str) -> int:
    """How many operations that asks for."""
    if not told:
        return 512
    if not (told.isascii() and told.isdigit()):
        raise ValueError(f"{LENGTH_ENV}={told} is no whole number of operations")
    return int(told)


_records: collections.deque[Record] = collections.deque(maxlen=_length(os.environ.get(LENGTH_ENV, "")))
_numbers = itertools.count()


def dump(path: str | pathlib.Path | None = None) -> list[dict[str, Any]]:
    """The last operations of this rank, oldest first; with `path` they are written there as JSON.

    An operation that has failed or taken too long has the library's words in `error`: they name the
    ranks that are late, as `trib explain` does.
    """
    told = [record.told() for record in list(_records)]
    if path is not None:
        pathlib.Path(path).write_text(json.dumps(told, indent=1) + "\n")
    return told
