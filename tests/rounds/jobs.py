"""The two kinds of jobs that a round may have: ranks that repeat collectives by the native API, and an
application under Open MPI."""

import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile

import expected
from harness import BUILD, ROOT, TRIB, Ranks, RanksOnHosts
from plan import HOSTS


def prepare(size, folder, lab):
    """What a round with these vectors has to know: once for all of them, before the first fault."""
    if size == "mpi":
        return Application(folder, lab)
    return Collectives(folder, lab, size)


class Collectives:
    def __init__(self, folder, lab, size):
        self.lab, self.ranks = lab, expected.KINDS[size]["ranks"]
        self.argument = expected.write(folder, size)

    def start(self, stop):
        """Starts a job that ends when the file `stop` is there."""
        argument = {**self.argument, "stop": str(stop)}
        return RanksOnHosts(self.lab, self.ranks, "round_worker", "run", argument, apart=HOSTS // self.ranks)


class Application:
    def __init__(self, folder, lab):
        self.lab, self.program = lab, folder / "conjugate_gradient"
        make = ["make", "-s", "-C", ROOT / "tests" / "mpi", f"BUILD={folder}", self.program]
        subprocess.run(make, check=True, timeout=120)
        # The undisturbed run says what all others have to come to.
        stop = folder / "stop"
        stop.touch()
        with ApplicationRanks(lab, self.program, [], stop) as ranks:
            (self.hash,) = {result["hash"] for result in ranks.results(120)}

    def start(self, stop):
        return ApplicationRanks(self.lab, self.program, [self.hash], stop)


class ApplicationRanks(Ranks):
    """An MPI program with a rank on each host, whose collectives go through the tree."""

    def __init__(self, lab, program, words, stop):
        self.ranks, self.stop_file = HOSTS, pathlib.Path(stop)
        self.folder = tempfile.TemporaryDirectory(prefix="trib-test-")
        folder = pathlib.Path(self.folder.name)
        (folder / "stop").symlink_to(self.stop_file)
        # What the tree does not take by itself is given to it, too.
        variables = {"LD_PRELOAD": BUILD / "libtrib_mpi.so", "TRIB_MPI": "force", "TRIB_MPI_REPORT_FILE": folder / "report"}
        env = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
        command = [TRIB, "lab", "mpirun", "--name", lab, "-n", str(HOSTS), *env, "--", program, folder, *words]
        mine = {**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        self.process = subprocess.Popen(command, env=mine, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def progress(self, rank):
        """Each of rank 0's collectives has all ranks."""
        try:
            (done,) = struct.unpack("q", (pathlib.Path(self.folder.name) / "progress").read_bytes())
            return done
        except (OSError, struct.error):
            return -1

    def results(self, timeout=120):
        """As those of `round_worker`."""
        results = super().results(timeout)
        report = json.loads((pathlib.Path(self.folder.name) / "report").read_text())
        left = {name: uses["mpi"] for name, uses in report["collectives"].items() if set(uses["mpi"]) - {"not_taken"}}
        assert not left, f"calls that were not for the tree, though it takes such: {left}"
        # The report has the sum over all ranks.
        counters = {"epochs": math.ceil(report["counters"]["epochs"] / self.ranks)}
        for result in results:
            result |= {"counters": counters, "epochs": [], "wrong": ["solutions"] * result["wrong"]}
        return results
