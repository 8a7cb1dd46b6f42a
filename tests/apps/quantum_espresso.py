"""Quantum ESPRESSO, which is Fortran: the ground state of silicon carbide, an example of its package
with fewer points."""

import gzip
import pathlib
import re

from launch import Failed, good
from steps import Step, close

EXAMPLE = pathlib.Path("/usr/share/doc/quantum-espresso/examples/EPW/sic")
RANKS, LIMIT = 4, 240
#: Rydberg. The calculation itself stops at 1e-10.
TOLERANCE = 1e-8


def text_of(path):
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()


def once(place, how):
    folder = place.make(how)
    for name in ("C.UPF", "Si.pz-vbc.UPF"):
        (folder / name).write_text(text_of(EXAMPLE / "pp" / name))
    given = text_of(EXAMPLE / "epw/scf.in").replace("'../pp/'", "'./'").replace("8 8 8 1 1 1", "4 4 4 1 1 1")
    (folder / "scf.in").write_text(given)
    outcome = good(place, how, RANKS, ["pw.x", "-in", "scf.in"], folder, LIMIT)
    energies = re.findall(r"^!\s+total energy\s+=\s+(\S+) Ry", outcome.said, re.M)
    if "JOB DONE." not in outcome.said or len(energies) != 1:
        raise Failed(f"pw.x has not come to its end:\n{outcome.tail()}")
    outcome.energy = float(energies[0])
    return outcome


def compare(place):
    outcomes = {how: once(place, how) for how in ("plain", "counted", "tree")}
    found = close("the total energy", outcomes["plain"].energy, outcomes["tree"].energy, 0.0, TOLERANCE)
    if found:
        raise Failed("\n".join(found))
    outcomes["tree"].words = f"total energy {outcomes['tree'].energy:.8f} Ry, as plainly"
    return outcomes


def steps():
    return [Step("quantum-espresso/sic", RANKS, compare, "pw.x -in scf.in")]
