#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the demo's three trainings and tells what went through the tree. Exit code 1 if the demo failed."""

import json
import sys
from pathlib import Path

WITHOUT, WITH = "mpi", ("tree1", "tree2")


def read(folder: Path, name: str) -> dict:
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def read_report(folder: Path, name: str) -> dict:
    """What the library for MPI programs wrote; where it wrote nothing, a report that says so."""
    if not (folder / f"{name}.report.json").exists():
        return {"collectives": {}, "reason": "the library for MPI programs wrote no report; is TRIB_MPI=off set?"}
    return read(folder, f"{name}.report")


def show_training(folder: Path) -> list:
    """Prints the three results; returns what is wrong with them."""
    for name, words in ((WITHOUT, "Open MPI alone"), (WITH[0], "through the tree"), (WITH[1], "through the tree again")):
        result = read(folder, name)
        print(f"  {words:24s} accuracy {100 * result['accuracy']:6.2f} %   {result['seconds']:6.2f} s   "
              f"weights {result['weights_sha256'][:16]}...")
    digests = {read(folder, name)["weights_sha256"] for name in WITH}
    print("  the two runs through the tree gave " + ("bit-identical weights" if len(digests) == 1 else "DIFFERENT weights"))
    return [] if len(digests) == 1 else ["two runs through the tree gave different weights"]


def show_collectives(report: dict) -> int:
    """Prints what one run's collectives did; returns how many went through the tree."""
    through = 0
    for collective, counts in report["collectives"].items():
        fallbacks = ", ".join(f"{count} {reason}" for reason, count in counts["mpi"].items()) or "none"
        print(f"  {collective:24s} {counts['tree']:8d} through the tree, {counts['tree_bytes']:12d} bytes; "
              f"left to the MPI: {fallbacks}")
        through += counts["tree"]
    return through


def main() -> int:
    folder = Path(sys.argv[1])
    problems = show_training(folder)
    for name in WITH:
        print(f"  collectives of run {name}, summed over its ranks:")
        report = read_report(folder, name)
        if show_collectives(report) == 0:
            reason = report["reason"] or "every collective was left to the MPI"
            problems.append(f"run {name}: nothing went through the tree: {reason}")
    for problem in problems:
        print(f"demo: FAILED: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
