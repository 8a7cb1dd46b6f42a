# SPDX-License-Identifier: Apache-2.0
"""Datatypes and operators, by their names in NumPy and torch and by their codes in `tributary.h`."""

from typing import NamedTuple

from tributary._native import lib
from tributary.errors import InvalidError, UnsupportedError


class DataType(NamedTuple):
    """How the elements of a vector are laid out and reduced."""

    #: Its name in NumPy and torch.
    name: str
    #: The code of what is reduced.
    code: int
    #: Bytes per element.
    size: int
    #: How many values of that code an element has: 2 for complex numbers.
    values: int = 1


DATATYPES: dict[str, DataType] = {
    each.name: each
    for each in (
        DataType("uint32", 0, 4),
        DataType("int32", 1, 4),
        DataType("uint64", 2, 8),
        DataType("int64", 3, 8),
        DataType("float32", 4, 4),
        DataType("float64", 5, 8),
        DataType("uint16", 6, 2),
        DataType("int16", 7, 2),
        DataType("float16", 8, 2),
        DataType("bfloat16", 9, 2),
        DataType("uint8", 10, 1),
        DataType("int8", 11, 1),
        DataType("bool", 10, 1),
        DataType("complex64", 4, 8, 2),
        DataType("complex128", 5, 16, 2),
    )
}

OPERATORS: dict[str, int] = {
    "max": 0, "min": 1, "sum": 2, "prod": 3, "land": 4, "band": 5, "lor": 6, "bor": 7, "lxor": 8, "bxor": 9,
}  # fmt: skip

#: What an operator is on truth values, which are the bytes 0 and 1.
ON_BOOL = {"sum": "lor", "prod": "land", "max": "lor", "min": "land"}


def datatype(name: str) -> DataType:
    """The datatype of this name. Raises `UnsupportedError`."""
    try:
        return DATATYPES[name]
    except KeyError:
        raise UnsupportedError(f"no datatype {name!r}; there are {', '.join(DATATYPES)}") from None


def operator(op: str, dtype: DataType) -> int:
    """The code of an operator on a datatype. Raises `InvalidError` for a name that no operator has,
    `UnsupportedError` where the tree has no such combination."""
    if dtype.name == "bool":
        op = ON_BOOL.get(op, op)
    code = OPERATORS.get(op)
    if code is None:
        raise InvalidError(f"no operator {op!r}; there are {', '.join(OPERATORS)}")
    if not (op == "sum" if dtype.values > 1 else lib.trib_supports(dtype.code, code)):
        raise UnsupportedError(f"{op} is not defined on {dtype.name}")
    return code
