"""LAMMPS, with examples of its package: a melt, and a peptide in water, whose thermostat feeds sums
over all ranks back into the motion."""

import pathlib
import re
import shutil

from steps import Case, all_close

EXAMPLES = pathlib.Path("/usr/share/lammps/examples")
RANKS, LIMIT = 4, 150
NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
#: Relative and absolute tolerance. Where the order of summands feeds back, trajectories part: after
#: 300 steps of the peptide, three ranks of the plain program differ from four of it by 9e-5, and by
#: 0.041 in the absolute. In the melt only the first velocities depend on it: after 2,400 steps four
#: ranks of the plain program differ from three of it by 4e-2, and those of the tree by 2e-8 from as
#: many of the plain one.
CASES = {"melt": (1e-6, 0.0), "peptide": (1e-4, 0.05)}


def thermo(folder, _):
    """All numbers of the thermodynamic output."""
    log = (folder / "log.lammps").read_text()
    found = re.findall(r"^(?:Per MPI rank memory|.*Mbytes\n)(.*?)^Loop time", log, re.M | re.S)
    text = re.sub(r"CPU =\s+\S+", "", "".join(found))
    return [float(number) for number in re.findall(rf"(?<![\w.]){NUMBER}(?![\w.])", text)]


def case(name, run=None, limit=LIMIT):
    """The example of this name, with as many steps as it has unless `run` is given."""
    def fill(folder, _):
        shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
        script = folder / f"in.{name}"
        if run is not None:
            script.write_text(re.sub(r"^run(\s+)\d+", rf"run\g<1>{run}", script.read_text(), flags=re.M))

    return Case(
        f"lammps/{name}", ["lmp", "-in", f"in.{name}", "-log", "log.lammps"], fill, thermo,
        lambda plain, tree: all_close("thermodynamic output", plain, tree, *CASES[name]),
        lambda tree: f"{len(tree)} numbers of the thermodynamic output agree", limit,
    )


def steps():
    return [case(name).step(RANKS) for name in CASES]
