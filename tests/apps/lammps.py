"""LAMMPS, with examples of its package: a melt, and a peptide in water, whose thermostat feeds sums
over all ranks back into the motion."""

import pathlib
import re
import shutil

from launch import Failed, good
from steps import Step, all_close

EXAMPLES = pathlib.Path("/usr/share/lammps/examples")
RANKS, LIMIT = 4, 150
NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
#: Relative and absolute tolerance. Where the order of summands feeds back, trajectories part: after
#: 300 steps of the peptide, three ranks of the plain program differ from four of it by 9e-5, and by
#: 0.041 in the absolute.
CASES = {"melt": (1e-9, 0.0), "peptide": (1e-4, 0.05)}


def thermo(folder):
    """All numbers of the thermodynamic output."""
    log = (folder / "log.lammps").read_text()
    found = re.findall(r"^(?:Per MPI rank memory|.*Mbytes\n)(.*?)^Loop time", log, re.M | re.S)
    text = re.sub(r"CPU =\s+\S+", "", "".join(found))
    return [float(number) for number in re.findall(rf"(?<![\w.]){NUMBER}(?![\w.])", text)]


def once(place, how, case):
    folder = place.folder / how
    shutil.copytree(EXAMPLES / case, folder)
    outcome = good(place, how, RANKS, ["lmp", "-in", f"in.{case}", "-log", "log.lammps"], folder, LIMIT)
    outcome.thermo = thermo(folder)
    return outcome


def compare(place, case):
    outcomes = {how: once(place, how, case) for how in ("plain", "counted", "tree")}
    found = all_close("thermodynamic output", outcomes["plain"].thermo, outcomes["tree"].thermo, *CASES[case])
    if found:
        raise Failed("\n".join(found))
    outcomes["tree"].words = f"{len(outcomes['tree'].thermo)} numbers of the thermodynamic output agree"
    return outcomes


def step(case):
    return Step(f"lammps/{case}", RANKS, lambda place: compare(place, case), f"lmp -in in.{case}")


def steps():
    return [step(case) for case in CASES]
