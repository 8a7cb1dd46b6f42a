"""mpi4py's own tests, of its source distribution: with the component for Open MPI, and with the preloaded library under several MPIs."""

import collections
import dataclasses
import json
import pathlib
import re

import mpi4py_source
import mpis
import wheels
from launch import COMPONENT, Failed, Late, Outcome, Way, mpirun, with_us
from mpi4py_source import DEBIANS
from steps import Step

OUTCOMES = pathlib.Path(__file__).with_name("outcomes.py")
#: They start further programs, which have no part in this one's job. Open MPI 4.1 itself sometimes
#: hangs when one program starts many others, so each of these tests has an mpirun of its own, and a
#: few attempts.
APART = ("test_spawn", "test_dynproc")
#: It starts programs and sets them time limits, so that a loaded machine decides how it ends.
TIMED = "test_util_pool"
#: Tests that hang without us. Debian's MPICH 4.0.2: one rank looks for another's notice for ever,
#: which waits in MPI_Win_free (8 of 8 plain runs with two ranks).
HANGING = {"mpich-4": ("test_util_sync",)}
#: In parts, where all of it takes longer than a step may: ranks of Debian's MPICH that wait do not
#: give way, so that three of them on two processors take eleven minutes.
PARTS = {("mpich-4", 3): {"-cco": ("-i", "test_cco"), "-rma": ("-i", "test_rma"), "-rest": ("-e", "test_cco", "-e", "test_rma")}}
LIMIT, LIMIT_APART, ATTEMPTS = 280, 20, 3


def unpack(place, version):
    try:
        return mpi4py_source.unpack(version, place.kept, place.folder)
    except mpi4py_source.Missing as missing:
        raise Failed(str(missing)) from missing


@dataclasses.dataclass
class Setup:
    """An MPI with an mpi4py of this version, and how ours gets in."""

    way: Way = COMPONENT
    python: pathlib.Path = pathlib.Path("/usr/bin/python3")
    version: str = DEBIANS


def noted(folder, ranks):
    """[{test: how it ended} of each rank]"""
    files = [folder / f"{rank}.json" for rank in range(ranks)]
    if not all(file.exists() for file in files):
        return None
    return [json.loads(file.read_text()) for file in files]


def begun(folder):
    """Lines that say which test each rank has begun last."""
    return [f"rank {file.stem} has begun {file.read_text()}" for file in sorted(folder.glob("*.begun"))]


def once(place, setup, suite, how, ranks, options):
    folder = place.make(how)
    results = place.make(f"{how}-results")
    words = [setup.python, OUTCOMES, suite, results, "-q", *options]
    try:
        outcome = mpirun(place, how, ranks, words, folder, LIMIT, setup.way)
    except Late as late:
        raise Late("\n".join([str(late), *begun(results)])) from late
    outcome.noted = noted(results, ranks)
    if outcome.noted is None:
        raise Failed(f"it ended with {outcome.code} before all tests had run ({how}, {ranks} ranks):\n{outcome.tail()}")
    return with_us(outcome, how, ranks)


def differences(plain, tree):
    for rank, (left, right) in enumerate(zip(plain.noted, tree.noted)):
        for test in sorted(left.keys() | right.keys()):
            if left.get(test) != right.get(test):
                yield f"rank {rank}: {test} {right.get(test, 'did not run')}, and plainly {left.get(test, 'did not run')}"


def compare(place, setup, ranks, options):
    suite = unpack(place, setup.version)
    outcomes = {how: once(place, setup, suite, how, ranks, options) for how in ("plain", "tree")}
    found = list(differences(outcomes["plain"], outcomes["tree"]))
    if found:
        raise Failed(f"{len(found)} tests ended otherwise:\n" + "\n".join(found[:20]))
    if outcomes["plain"].code != outcomes["tree"].code:
        raise Failed(f"it ended with {outcomes['tree'].code}, and plainly with {outcomes['plain'].code}")
    ends = collections.Counter(outcomes["tree"].noted[0].values())
    outcomes["tree"].words = ", ".join(f"{count} {how}" for how, count in sorted(ends.items())) + ", as plainly"
    return outcomes


def tests_of(suite, file):
    """The names of its tests, as runtests.py takes them. To load the file would start MPI here."""
    text = (suite / f"test/{file}.py").read_text()
    return [f"{group}.{test}" for group in re.findall(r"^class (Test\w+)", text, re.M) for test in re.findall(r"def (test\w+)", text)]


@dataclasses.dataclass
class Alone:
    """How one test ended on each rank, in how many seconds, and how many attempts hung before."""

    end: str
    seconds: float = 0.0
    hung: int = ATTEMPTS


def alone(place, how, ranks, suite, file, test):
    for attempt in range(ATTEMPTS):
        folder = place.make(f"{how}-{test}-{attempt}")
        words = [Setup.python, OUTCOMES, suite, folder, "-q", "-i", file, test]
        try:
            outcome = mpirun(place, how, ranks, words, folder, LIMIT_APART)
        except Failed:
            continue
        ends = [end for rank in noted(folder, ranks) or [] for end in rank.values()]
        return Alone(", ".join(sorted(set(ends))) or f"ended with {outcome.code}", outcome.seconds, attempt)
    return Alone("hangs")


def compare_apart(place, ranks):
    suite = unpack(place, DEBIANS)
    tests = [(file, test) for file in APART for test in tests_of(suite, file)]
    ends = {how: {test: alone(place, how, ranks, suite, file, test) for file, test in tests} for how in ("plain", "tree")}
    plain, tree = ends["plain"], ends["tree"]
    found = [f"{test} {tree[test].end}, and plainly {plain[test].end}" for test in plain if plain[test].end != tree[test].end]
    if found:
        raise Failed(f"{len(found)} tests ended otherwise:\n" + "\n".join(found))
    outcomes = {how: Outcome(0, "", sum(test.seconds for test in of.values()), None) for how, of in ends.items()}
    hung = {how: sum(test.hung for test in of.values()) for how, of in ends.items()}
    counts = collections.Counter(test.end for test in tree.values())
    outcomes["tree"].words = (", ".join(f"{count} {how}" for how, count in sorted(counts.items()))
                              + f", as plainly; attempts that hung: {hung['tree']}, plainly {hung['plain']}")
    return outcomes


def with_preloaded(name):
    way, python = mpis.WITH_MPI4PY[name]()
    return Setup(way, python, DEBIANS if name == "openmpi-4.1" else wheels.MPI4PY)


def step(ranks):
    options = [word for name in APART for word in ("-e", name)]
    return Step(f"mpi4py/{ranks}", ranks, lambda place: compare(place, Setup(), ranks, options), f"runtests.py {' '.join(options)}")


def step_preloaded(name, ranks, part, which):
    options = [*which, *(word for module in (*APART, TIMED, *HANGING.get(name, ())) for word in ("-e", module))]
    return Step(f"mpi4py-preloaded/{name}-{ranks}{part}", ranks, lambda place: compare(place, with_preloaded(name), ranks, options),
                f"runtests.py {' '.join(options)}, with the preloaded library")


def step_apart(ranks):
    return Step(f"mpi4py/spawn-{ranks}", ranks, lambda place: compare_apart(place, ranks), "runtests.py for each test that starts programs")


def steps():
    return ([step(ranks) for ranks in (1, 2, 3, 4)] + [step_apart(ranks) for ranks in (1, 2)]
            + [step_preloaded(name, ranks, *part) for name in mpis.WITH_MPI4PY for ranks in (1, 2, 3)
               for part in PARTS.get((name, ranks), {"": ()}).items()])
