"""The driver that stands in for CUDA's where no GPU is."""

import subprocess
import tempfile

from harness import ROOT

SOURCE = ROOT / "tests" / "cuda" / "stand_in.c"


def build(folder):
    """Builds it in a folder, where programs find it by LD_LIBRARY_PATH."""
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]
    subprocess.run(["gcc", *flags, f"{folder}/libcuda.so.1", SOURCE], check=True)


def built_for(cls):
    """A folder with it, which goes with the tests of this class."""
    folder = tempfile.TemporaryDirectory(prefix="trib-device-")
    cls.addClassCleanup(folder.cleanup)
    build(folder.name)
    return folder.name
