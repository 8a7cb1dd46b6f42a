"""JAX on the processor, whose programs call MPI from compiled functions by mpi4jax. Both come from PyPI; mpi4jax is built here, with
Debian's Open MPI."""

import pathlib
import re
import sys

from launch import Failed, good, run
from steps import Step

PROGRAM = pathlib.Path(__file__).with_name("jax_sums.py")
RANKS, TIMES, LIMIT = 4, 50, 120
#: What pip is to install, known by SHA-256: first JAX and what builds mpi4jax, then mpi4jax. JAX's
#: binaries are for Debian 12's CPython 3.11.
PACKAGES = """\
cython==3.0.12 --hash=sha256:563de1728c8e48869d2380a1b76bbc1b1b1d01aba948480d68c1d05e52d20c92
jax==0.4.30 --hash=sha256:289b30ae03b52f7f4baf6ef082a9f4e3e29c1080e22d13512c5ecf02d5f1a55b
jaxlib==0.4.30 --hash=sha256:16b2ab18ea90d2e15941bcf45de37afc2f289a029129c88c8d7aba0404dd0043
ml_dtypes==0.4.1 --hash=sha256:74c6cfb5cf78535b103fde9ea3ded8e9f16f75bc07789054edc7776abfb3d752
opt_einsum==3.4.0 --hash=sha256:69bb92469f86a1565195ece4ac0323943e83477171b91d24c35afe028a90d7cd
setuptools==70.3.0 --hash=sha256:fe384da74336c398e0d956d1cae0669bc02eed936cdb1d49b57de1990dc11ffc
wheel==0.45.1 --hash=sha256:708e7481cc80179af0e556bbf0cc00b8444c7321e2700b8d8580231d13017248
"""
BUILT = "mpi4jax==0.5.4 --hash=sha256:c87bae6202f307d1b235f274aa50d223e9a738459e9fd17c4966ebec619568a6\n"


def python(place):
    """The Python that has JAX and mpi4jax, and Debian's mpi4py and NumPy."""
    folder = place.kept / "mpi4jax"
    done = folder / "complete"
    if not done.exists():
        install = [folder / "bin/pip", "install", "--quiet", "--no-deps", "--require-hashes", "--no-build-isolation", "--requirement"]
        steps = [[sys.executable, "-m", "venv", "--clear", "--system-site-packages", folder]]
        for name, text in (("packages", PACKAGES), ("built", BUILT)):
            (place.folder / name).write_text(text)
            steps.append([*install, place.folder / name])
        for words in steps:
            code, said, _ = run(words, place.folder, 200 * place.patience)
            if code != 0:
                raise Failed(f"{words[0]} {words[1]} ended with {code}:\n{said[-1500:]}")
        done.touch()
    return folder / "bin/python"


def compare(place):
    words = [python(place), PROGRAM, TIMES]
    outcomes = {how: good(place, how, RANKS, words, place.make(how), LIMIT) for how in ("plain", "counted", "tree")}
    for how, outcome in outcomes.items():
        # A rank's line may be put into another's before its end.
        if re.findall(r"sums: \d+ wrong", outcome.said) != ["sums: 0 wrong"] * RANKS:
            raise Failed(f"it said ({how}):\n{outcome.tail()}")
    in_tree = outcomes["tree"].report["collectives"]["MPI_Allreduce"]["tree"]
    if in_tree != RANKS * TIMES:
        raise Failed(f"MPI_Allreduce went through the tree {in_tree} times, for {RANKS * TIMES} calls")
    outcomes["tree"].words = f"{TIMES} sums are right"
    return outcomes


def steps():
    return [Step("mpi4jax/sums", RANKS, compare, "jax_sums.py, with JAX and mpi4jax of PyPI")]
