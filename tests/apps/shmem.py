"""OpenSHMEM, whose collectives Debian's Open MPI hands to MPI's (scoll/mpi)."""

import dataclasses
import pathlib
import re
import subprocess

from launch import COMPONENT, Failed, mpirun
from steps import Step

SOURCE = pathlib.Path(__file__).with_name("shmem_sums.c")
RANKS, TIMES = 4, 100
OSHRUN = dataclasses.replace(COMPONENT, launcher=("oshrun",))


def told(outcome):
    """What the program itself has said."""
    return sorted(re.findall(r"^\d+ sums:.*$", outcome.said, re.M))


def compare(place):
    program = place.folder / "shmem_sums"
    subprocess.run(["oshcc", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE], check=True, timeout=60)
    outcomes = {
        how: mpirun(place, how, RANKS, [program, TIMES], place.make(how), 60, way=OSHRUN) for how in ("plain", "counted", "tree")
    }
    plain, tree = outcomes["plain"], outcomes["tree"]
    if told(plain) != told(tree) or len(told(tree)) != RANKS or any(" 0 wrong" not in line for line in told(tree)):
        raise Failed(f"it said {told(tree)}, and plainly {told(plain)}:\n{tree.tail()}")
    if plain.code != tree.code:
        raise Failed(f"it ended with {tree.code}, and plainly with {plain.code}:\n{tree.tail()}")
    collectives = tree.report["collectives"]
    for name in ("MPI_Allreduce", "MPI_Barrier"):
        if collectives[name]["tree"] < RANKS * TIMES:
            raise Failed(f"{name} went through the tree {collectives[name]['tree']} times, for {RANKS * TIMES} calls")
    tree.words = f"{TIMES} sums and barriers are right; exit code {tree.code}, as plainly"
    return outcomes


def steps():
    return [Step("shmem/sums", RANKS, compare, "oshrun shmem_sums")]
