"""What the applications have in common: where they run, a case of one, a step, and how numbers are
compared."""

import dataclasses
import pathlib
import shutil
import typing

from launch import HOWS, Failed, good


@dataclasses.dataclass
class Place:
    """Where a step runs: a fabric, a folder of its own, and one for files that are kept. On a loaded
    machine limits are so many times longer."""

    manager: str
    folder: pathlib.Path
    kept: pathlib.Path
    patience: float = 1

    def run(self, how, ranks, program, folder, limit):
        """Runs a program that must end with 0. `how` is one of launch.HOWS."""
        return good(self, how, ranks, program, folder, limit)

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


@dataclasses.dataclass
class Case:
    """What an application computes, by `program`, a list of words.

    `fill(folder, ranks)` writes its input into an empty folder; `read(folder, said)` returns what came
    out, or raises Failed; `differences(plain, tree)` are lines that say how two such differ by more
    than they may; `words(result)` says what agrees. `limit` is in seconds."""

    name: str
    program: list
    fill: typing.Callable
    read: typing.Callable
    differences: typing.Callable
    words: typing.Callable
    limit: int

    def prepare(self, folder, ranks):
        """A folder with the input, of which every run gets a copy."""
        filled = folder / "input"
        filled.mkdir()
        self.fill(filled, ranks)
        return filled

    def once(self, place, how, ranks, filled):
        folder = place.folder / how.replace(" ", "-")
        shutil.copytree(filled, folder)
        outcome = place.run(how, ranks, self.program, folder, self.limit)
        outcome.result = self.read(folder, outcome.said)
        return outcome

    def step(self, ranks):
        def compare(place):
            filled = self.prepare(place.folder, ranks)
            outcomes = {how: self.once(place, how, ranks, filled) for how in HOWS}
            plain, tree = outcomes["plain"].result, outcomes["tree"].result
            if found := self.differences(plain, tree):
                raise Failed("\n".join(found))
            outcomes["tree"].words = self.words(tree)
            return outcomes

        return Step(self.name, ranks, compare, " ".join(self.program))


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
