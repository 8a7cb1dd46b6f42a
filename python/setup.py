# SPDX-License-Identifier: Apache-2.0
"""Puts `libtributary.so` into the package: one wheel serves every Python from 3.11 on, because
ctypes loads the library and nothing is compiled against an interpreter or against torch."""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROFILE = os.environ.get("TRIB_PROFILE", "release")
LIBRARY = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / PROFILE / "libtributary.so"


class BuildWithLibrary(build_py):
    """Copies the library that the project has built, or builds it."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        if not LIBRARY.exists():
            subprocess.run(["cargo", "build", "--profile", PROFILE, "-p", "tributary"], cwd=ROOT, check=True)
        folder = pathlib.Path(self.build_lib) / "tributary" / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(LIBRARY, folder / LIBRARY.name)
        # Where there is no strip, the wheel has lines of the source, too.
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", folder / LIBRARY.name], check=True)


class WheelForAnyPython(bdist_wheel):
    """The wheel fits one kind of machine and every Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class DistributionWithLibrary(Distribution):
    """What the wheel holds depends on the machine."""

    def has_ext_modules(self):
        return True


setup(
    version=re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)[1],
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelForAnyPython},
    distclass=DistributionWithLibrary,
)
