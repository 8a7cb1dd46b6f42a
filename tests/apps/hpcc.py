"""HPC Challenge: HPL, PTRANS, FFT, RandomAccess and so on, which check their own results."""

import pathlib
import re

from launch import Failed
from steps import Case

INPUT = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
RANKS, LIMIT = 4, 240
#: The grid of processes that HPL gets.
GRIDS = {4: (2, 2), 8: (2, 4), 32: (4, 8)}


def written(order):
    """Writes the package's input, with this order of HPL's matrix."""
    def fill(folder, ranks):
        text = INPUT.read_text()
        for value, name in zip((order, *GRIDS[ranks]), ("Ns", "Ps", "Qs")):
            text = re.sub(rf"^\d+(\s+{name})$", rf"{value}\1", text, flags=re.M)
        (folder / "hpccinf.txt").write_text(text)

    return fill


def verdict(folder, _):
    """(passed, failed) of all checks that the output tells of"""
    output = (folder / "hpccoutf.txt").read_text()
    success = re.search(r"^Success=(\d)", output, re.M)
    if success is None or success[1] != "1":
        raise Failed(f"HPCC does not say that it has succeeded:\n{output[-1500:]}")
    if "End of HPC Challenge tests" not in output:
        raise Failed("HPCC has not come to its end")
    return len(re.findall(r"\bPASSED\b", output)), len(re.findall(r"\bFAILED\b", output))


def differences(plain, tree):
    if tree != plain or tree[1] > 0:
        return [f"{tree[0]} checks passed and {tree[1]} failed, and plainly {plain[0]} and {plain[1]}"]
    return []


def case(order=1000, limit=LIMIT):
    return Case("hpcc/example", ["hpcc"], written(order), verdict, differences, lambda tree: f"all {tree[0]} checks of its own passed", limit)


def steps():
    return [case().step(RANKS)]
