"""A program that begins and ends, which tells what joining a fabric costs."""

import subprocess

from launch import BUILD, ROOT
from steps import Case

PROGRAM = BUILD.parent / "apps/unused"


def fill(*_):
    subprocess.run(["make", "-s", "-C", ROOT / "tests/mpi", f"BUILD={PROGRAM.parent}", PROGRAM], check=True, timeout=60)


def case(limit):
    return Case("empty", [str(PROGRAM)], fill, lambda *_: True, lambda *_: [], lambda _: "it ends well", limit)
