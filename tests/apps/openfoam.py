"""OpenFOAM's simpleFoam with its tutorial pitzDaily, decomposed for four ranks."""

import os
import pathlib
import re
import shutil

from launch import Failed, good, run
from steps import Step, all_close

CASE = pathlib.Path("/usr/share/doc/openfoam-examples/examples/incompressible/simpleFoam/pitzDaily")
RANKS, LIMIT = 4, 240
DECOMPOSITION = """\
FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }
numberOfSubdomains 4;
method simple;
simpleCoeffs { n (2 2 1); delta 0.001; }
"""
#: A field's tolerance is this share of its largest value. The steps end at residuals of 1e-3, and
#: where another order of summands has led by then differs: by 2e-3 between the algorithms that
#: plain Open MPI has for an allreduce.
FIELDS = ("U", "p", "k", "epsilon")
RELATIVE = 1e-2
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def prepare(place):
    os.environ.setdefault("WM_PROJECT_DIR", "/usr/share/openfoam")
    case = place.folder / "case"
    shutil.copytree(CASE, case)
    (case / "system/decomposeParDict").write_text(DECOMPOSITION)
    control = case / "system/controlDict"
    # Streamlines are no part of the solution, and take as long to write.
    control.write_text(re.sub(r"\nfunctions\s*\{.*?\n\}", "", control.read_text(), flags=re.S))
    for words in (["blockMesh"], ["decomposePar"]):
        code, said, _ = run(words, case, 60)
        if code != 0:
            raise Failed(f"{words[0]} ended with {code}:\n{said[-1500:]}")
    return case


def internal(path):
    """The numbers of a field inside the mesh."""
    text = path.read_text()
    body = re.search(r"internalField\s+nonuniform\s+List<\w+>\s*\d+\s*\((.*?)\n\)\s*;", text, re.S)
    if body is None:
        raise Failed(f"{path.name} has no values for each cell")
    return [float(number) for number in NUMBER.findall(body[1])]


def fields(folder):
    """(last time, {field: its numbers on all ranks})"""
    last = max((entry.name for entry in (folder / "processor0").iterdir() if entry.name.isdigit()), key=int)
    return last, {field: [value for rank in range(RANKS) for value in internal(folder / f"processor{rank}/{last}/{field}")]
                  for field in FIELDS}


def residuals(said):
    """The last initial residual of each equation."""
    return dict(re.findall(r"Solving for (\w+), Initial residual = (\S+),", said))


def once(place, how, case):
    folder = place.folder / how
    shutil.copytree(case, folder)
    outcome = good(place, how, RANKS, ["simpleFoam", "-parallel"], folder, LIMIT)
    outcome.time, outcome.fields = fields(folder)
    return outcome


def compare(place):
    case = prepare(place)
    outcomes = {how: once(place, how, case) for how in ("plain", "counted", "tree")}
    plain, tree = outcomes["plain"], outcomes["tree"]
    found = [] if plain.time == tree.time else [f"it converged in {tree.time} steps, and plainly in {plain.time}"]
    for field in FIELDS:
        largest = max(map(abs, plain.fields[field]))
        found += all_close(field, plain.fields[field], tree.fields[field], 0.0, RELATIVE * largest)
    left, right = residuals(plain.said), residuals(tree.said)
    found += all_close("residuals", [float(left[name]) for name in sorted(left)], [float(right[name]) for name in sorted(right)], 0.05)
    if found:
        raise Failed("\n".join(found))
    tree.words = f"converged in {tree.time} steps, as plainly; residuals and fields agree"
    return outcomes


def steps():
    return [Step("openfoam/pitzDaily", RANKS, compare, "simpleFoam -parallel")]
