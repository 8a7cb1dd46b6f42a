"""OpenFOAM with its tutorials pitzDaily, decomposed: simpleFoam's, which is steady, and pisoFoam's
large-eddy simulation."""

import os
import pathlib
import re
import shutil

from launch import Failed, run
from steps import Case, all_close

CASES = pathlib.Path("/usr/share/doc/openfoam-examples/examples/incompressible")
RANKS, LIMIT = 4, 240
#: How the mesh is cut for so many ranks.
PARTS = {4: (2, 2, 1), 8: (4, 2, 1), 32: (8, 4, 1)}
DECOMPOSITION = """\
FoamFile {{ version 2.0; format ascii; class dictionary; object decomposeParDict; }}
numberOfSubdomains {ranks};
method simple;
simpleCoeffs {{ n ({parts}); delta 0.001; }}
"""
#: A field's tolerance is this share of its largest value. The steady case's steps end at residuals
#: of 1e-3, and where another order of summands has led by then differs: by 2e-3 between the
#: algorithms that plain Open MPI has for an allreduce.
RELATIVE = 1e-2
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def set_entry(text, name, value):
    """A dictionary's text with this value of an entry at its outermost level."""
    changed, count = re.subn(rf"^{name}(\s+)[^;]+;", rf"{name}\g<1>{value};", text, flags=re.M)
    if count != 1:
        raise Failed(f"controlDict has {count} entries {name}")
    return changed


def without_functions(text):
    """Samples on the way are no part of the solution, and take as long to write."""
    begin = re.search(r"^functions\s*\{", text, re.M)
    at, depth = begin.end(), 1
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return text[:begin.start()] + text[at:]


def filled(tutorial, end):
    """Writes the tutorial, which ends and is written at the time {entry of controlDict: value}."""
    def fill(folder, ranks):
        os.environ.setdefault("WM_PROJECT_DIR", "/usr/share/openfoam")
        shutil.copytree(CASES / tutorial, folder, dirs_exist_ok=True)
        parts = " ".join(map(str, PARTS[ranks]))
        (folder / "system/decomposeParDict").write_text(DECOMPOSITION.format(ranks=ranks, parts=parts))
        control = folder / "system/controlDict"
        text = without_functions(control.read_text())
        for name, value in end.items():
            text = set_entry(text, name, value)
        control.write_text(text)
        for words in (["blockMesh"], ["decomposePar"]):
            code, said, _ = run(words, folder, 60)
            if code != 0:
                raise Failed(f"{words[0]} ended with {code}:\n{said[-1500:]}")

    return fill


def internal(path):
    """The numbers of a field inside the mesh."""
    text = path.read_text()
    body = re.search(r"internalField\s+nonuniform\s+List<\w+>\s*\d+\s*\((.*?)\n\)\s*;", text, re.S)
    if body is None:
        raise Failed(f"{path.name} has no values for each cell")
    return [float(number) for number in NUMBER.findall(body[1])]


def is_time(name):
    return NUMBER.fullmatch(name) is not None


def residuals(said):
    """The last initial residual of each equation."""
    return dict(re.findall(r"Solving for (\w+), Initial residual = (\S+),", said))


def reads(fields):
    """(last time, {field: its numbers on all ranks}, {equation: residual})"""
    def read(folder, said):
        last = max((entry.name for entry in (folder / "processor0").iterdir() if is_time(entry.name)), key=float)
        ranks = len(list(folder.glob("processor*")))
        values = {field: [value for rank in range(ranks) for value in internal(folder / f"processor{rank}/{last}/{field}")]
                  for field in fields}
        return last, values, residuals(said)

    return read


def differences(plain, tree):
    found = [] if plain[0] == tree[0] else [f"it ended at {tree[0]}, and plainly at {plain[0]}"]
    for field, values in plain[1].items():
        found += all_close(field, values, tree[1][field], 0.0, RELATIVE * max(map(abs, values)))
    numbers = lambda result: [float(result[2][name]) for name in sorted(result[2])]
    return found + all_close("residuals", numbers(plain), numbers(tree), 0.05)


def steady(end=None, limit=LIMIT):
    """Until it converges, or for so many steps."""
    given = {} if end is None else {"endTime": end, "writeInterval": end}
    return Case("openfoam/pitzDaily", ["simpleFoam", "-parallel"], filled("simpleFoam/pitzDaily", given), reads(("U", "p", "k", "epsilon")),
                differences, lambda tree: f"it ended after {tree[0]} steps, as plainly; residuals and fields agree", limit)


def large_eddies(steps, limit=LIMIT):
    """So many time steps of 10 us."""
    given = {"endTime": f"{steps}e-05", "writeInterval": steps}
    return Case("openfoam/pitzDaily-LES", ["pisoFoam", "-parallel"], filled("pisoFoam/LES/pitzDaily", given), reads(("U", "p")),
                differences, lambda tree: f"it ended after {float(tree[0]):g} s, as plainly; residuals and fields agree", limit)


def steps():
    return [steady().step(RANKS), large_eddies(10).step(RANKS)]
