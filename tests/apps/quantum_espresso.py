"""Quantum ESPRESSO, which is Fortran: the ground state of silicon carbide, an example of its package
with fewer points."""

import gzip
import pathlib
import re

from launch import Failed
from steps import Case, close

EXAMPLE = pathlib.Path("/usr/share/doc/quantum-espresso/examples/EPW/sic")
RANKS, LIMIT = 4, 240
#: Rydberg. The calculation itself stops at 1e-10.
TOLERANCE = 1e-8


def text_of(path):
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()


def filled(points):
    """Writes the example, with so many k-points along each axis."""
    def fill(folder, _):
        for name in ("C.UPF", "Si.pz-vbc.UPF"):
            (folder / name).write_text(text_of(EXAMPLE / "pp" / name))
        given = text_of(EXAMPLE / "epw/scf.in").replace("'../pp/'", "'./'").replace("8 8 8 1 1 1", f"{points} {points} {points} 1 1 1")
        (folder / "scf.in").write_text(given)

    return fill


def energy(_, said):
    energies = re.findall(r"^!\s+total energy\s+=\s+(\S+) Ry", said, re.M)
    if "JOB DONE." not in said or len(energies) != 1:
        raise Failed(f"pw.x has not come to its end:\n{said[-1500:]}")
    return float(energies[0])


def case(limit=LIMIT, options=(), points=4):
    """Of 32 ranks it asks for `-ndiag`: there are too few bands for all of them."""
    return Case(
        "quantum-espresso/sic", ["pw.x", *options, "-in", "scf.in"], filled(points), energy,
        lambda plain, tree: close("the total energy", plain, tree, 0.0, TOLERANCE),
        lambda tree: f"total energy {tree:.8f} Ry, as plainly", limit,
    )


def steps():
    return [case().step(RANKS)]
