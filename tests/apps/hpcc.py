"""HPC Challenge: HPL, PTRANS, FFT, RandomAccess and so on, which check their own results."""

import pathlib
import re

from launch import Failed, good
from steps import Step

INPUT = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
RANKS, LIMIT = 4, 240


def once(place, how):
    folder = place.make(how)
    (folder / "hpccinf.txt").write_text(INPUT.read_text())
    outcome = good(place, how, RANKS, ["hpcc"], folder, LIMIT)
    outcome.output = (folder / "hpccoutf.txt").read_text()
    return outcome


def verdict(output):
    """(passed, failed) of all checks that the output tells of"""
    success = re.search(r"^Success=(\d)", output, re.M)
    if success is None or success[1] != "1":
        raise Failed(f"HPCC does not say that it has succeeded:\n{output[-1500:]}")
    if "End of HPC Challenge tests" not in output:
        raise Failed("HPCC has not come to its end")
    return len(re.findall(r"\bPASSED\b", output)), len(re.findall(r"\bFAILED\b", output))


def compare(place):
    outcomes = {how: once(place, how) for how in ("plain", "counted", "tree")}
    plain, tree = verdict(outcomes["plain"].output), verdict(outcomes["tree"].output)
    if tree != plain or tree[1] > 0:
        raise Failed(f"{tree[0]} checks passed and {tree[1]} failed, and plainly {plain[0]} and {plain[1]}")
    outcomes["tree"].words = f"all {tree[0]} checks of its own passed"
    return outcomes


def steps():
    return [Step("hpcc/example", RANKS, compare, "hpcc, with the input file of its package")]
