"""What the applications have in common: where they run, a step, and how numbers are compared."""

import dataclasses
import pathlib
import typing


@dataclasses.dataclass
class Place:
    """Where a step runs: a fabric, a folder of its own, and one for files that are kept. On a loaded
    machine limits are so many times longer."""

    manager: str
    folder: pathlib.Path
    kept: pathlib.Path
    patience: float = 1

    def make(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder


@dataclasses.dataclass
class Step:
    """One case of an application. `run(place)` returns {how: outcome}, or raises Failed."""

    name: str
    ranks: int
    run: typing.Callable
    words: str


def close(name, plain, tree, relative, absolute=0.0):
    """A line that says how two numbers differ by more than that, or none."""
    if abs(plain - tree) <= max(absolute, relative * max(abs(plain), abs(tree))):
        return []
    return [f"{name} is {tree!r} and plainly {plain!r}, which differ by more than {relative:g} of it"]


def all_close(name, plain, tree, relative, absolute=0.0):
    """The same for lists of numbers, of which the first difference is told."""
    if len(plain) != len(tree) or not plain:
        return [f"{name}: {len(tree)} numbers, and plainly {len(plain)}"]
    for index, (left, right) in enumerate(zip(plain, tree)):
        found = close(f"{name}, number {index}", left, right, relative, absolute)
        if found:
            return found
    return []
