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
#: 0.041 in the absolute. In the melt only the first velocities depend on it, and 32 ranks of the
#: tree part from as many of the plain program by 1e-9 after 850 steps, 1e-6 after 1,000 and 2e-4
#: after 1,250; so only so many first numbers are compared.
CASES = {"melt": (100, 1e-9, 0.0), "peptide": (None, 1e-4, 0.05)}


def thermo(folder, _):
    """All numbers of the thermodynamic output."""
    log = (folder / "log.lammps").read_text()
    found = re.findall(r"^(?:Per MPI rank memory|.*Mbytes\n)(.*?)^Loop time", log, re.M | re.S)
    text = re.sub(r"CPU =\s+\S+", "", "".join(found))
    return [float(number) for number in re.findall(rf"(?<![\w.]){NUMBER}(?![\w.])", text)]


def compare(plain, tree, first, relative, absolute):
    """Lines that say how the output differs."""
    if len(plain) != len(tree):
        return [f"thermodynamic output of {len(tree)} numbers, and plainly of {len(plain)}"]
    return all_close("thermodynamic output", plain[:first], tree[:first], relative, absolute)


def case(name, run=None, limit=LIMIT):
    """The example of this name, with as many steps as it has unless `run` is given."""
    def fill(folder, _):
        shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
        script = folder / f"in.{name}"
        if run is not None:
            script.write_text(re.sub(r"^run(\s+)\d+", rf"run\g<1>{run}", script.read_text(), flags=re.M))

    return Case(
        f"lammps/{name}", ["lmp", "-in", f"in.{name}", "-log", "log.lammps"], fill, thermo,
        lambda plain, tree: compare(plain, tree, *CASES[name]),
        lambda tree: f"{len(tree)} numbers of the thermodynamic output agree", limit,
    )


def steps():
    return [case(name).step(RANKS) for name in CASES]
