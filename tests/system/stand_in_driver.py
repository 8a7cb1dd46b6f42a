"""The driver that stands in for CUDA's where no GPU is."""

import subprocess

from harness import ROOT

SOURCE = ROOT / "tests" / "cuda" / "stand_in.c"


def build(folder):
    """Builds it in a folder, where programs find it by LD_LIBRARY_PATH."""
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]
    subprocess.run(["gcc", *flags, f"{folder}/libcuda.so.1", SOURCE], check=True)
