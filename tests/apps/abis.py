"""The preloaded library under every MPI that it knows: what tests/system/test_mpi_abis.py tests, with those MPIs, too, that
`make test-long` leaves out because they are Python packages of some hundred megabytes."""

import re
import sys

import mpis
from launch import ROOT, Failed, Outcome, run
from steps import Step

import wheels

RANKS, LIMIT = 4, 500


def test(place):
    for package in wheels.PINNED:
        mpis.environment(package)
    limit = LIMIT * place.patience
    code, said, seconds = run([sys.executable, ROOT / "tests/system/test_mpi_abis.py", "-v"], place.make("tests"), limit)
    if code is None:
        raise Failed(f"the tests ran for more than {limit} s:\n{said}")
    ran = re.search(r"^Ran (\d+) tests", said, re.M)
    left_out = re.findall(r"skipped[ =](.*)$", said, re.M)
    if code != 0 or ran is None or left_out:
        raise Failed(f"the tests ended with {code}; left out: {left_out}\n" + "\n".join(said.splitlines()[-40:]))
    outcome = Outcome(code, said, seconds, None)
    outcome.words = f"{ran[1]} tests, none left out"
    return {"tree": outcome}


def steps():
    return [Step("abis/tests", RANKS, test, "the tests of tests/system/test_mpi_abis.py")]
