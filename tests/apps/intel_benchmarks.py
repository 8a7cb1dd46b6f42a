"""Intel's MPI Benchmarks under Intel MPI, as PyPI has both, and ours of the same shape: Intel's do not check what a call has brought, ours do."""

import os
import re
import subprocess

import mpis
from launch import ROOT, Failed, good
from steps import Step

RANKS, LIMIT = 4, 240
#: Of each collective as few calls of each length, 4 bytes to 64 KiB: none is left out for want of
#: time.
SHORT = ("-msglog", "2:16", "-iter", "5", "-iter_policy", "off", "-time", "60", "-npmin", RANKS)
NAMES = "allgather allgatherv allreduce alltoall alltoallv barrier bcast gather gatherv reduce reduce_scatter scatter scatterv".split()
PROGRAMS = {"IMB-MPI1": [*NAMES, "reduce_scatter_block"], "IMB-NBC": [f"i{name}" for name in NAMES]}


def rows(said):
    """{benchmark: the lengths of which it tells a time}"""
    found = {}
    for name, text in re.findall(r"^# Benchmarking (\w+)(.*?)(?=^# Benchmarking|\Z)", said, re.M | re.S):
        found[name.lower()] = re.findall(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+", text, re.M)
        if name.lower().endswith("barrier"):
            found[name.lower()] = re.findall(r"^ +\d+ +[\d.]+ +[\d.]+", text, re.M)[:1]
    return found


def compare_intels(place, program):
    way, python = mpis.intel()
    words = [python.with_name(program), *SHORT, *PROGRAMS[program]]
    outcomes = {how: good(place, how, RANKS, words, place.make(how), LIMIT, way) for how in ("plain", "tree")}
    plain, tree = rows(outcomes["plain"].said), rows(outcomes["tree"].said)
    missing = [name for name in PROGRAMS[program] if not tree.get(name)]
    if missing or {name: len(lines) for name, lines in plain.items()} != {name: len(lines) for name, lines in tree.items()}:
        raise Failed(f"times are missing of {missing}; with ours: {tree}, and plainly {plain}")
    outcomes["tree"].words = f"times of {len(tree)} collectives, as plainly"
    return outcomes


def compare_ours(place, *how_called):
    way, _ = mpis.intel()
    compiler = mpis.environment("mpich") / "bin/mpicc"  # of the same ABI
    program = place.folder / "benchmarks"
    subprocess.run(["make", "-s", "-C", ROOT / "tests/mpi", f"MPICC={compiler}", f"BUILD={place.folder}", program], check=True,
                   timeout=120, env=dict(os.environ))
    outcomes = {how: good(place, how, RANKS, [program, 65536, 2, 5, *how_called], place.make(how), LIMIT, way) for how in ("plain", "tree")}
    count = outcomes["tree"].said.count('"collective"')
    outcomes["tree"].words = f"{count} times, every result checked"
    return outcomes


def steps():
    intels = [Step(f"imb/{program}", RANKS, lambda place, program=program: compare_intels(place, program), f"{program} of Intel MPI, preloaded")
              for program in PROGRAMS]
    ours = [Step(f"imb/checked-{kind}", RANKS, lambda place, kind=kind: compare_ours(place, kind),
                 f"tests/mpi/benchmarks, {kind}, under Intel MPI, preloaded") for kind in ("blocking", "non-blocking")]
    return [*intels, *ours]
