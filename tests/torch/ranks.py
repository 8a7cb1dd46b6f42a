"""Ranks of a torch program on a fabric of their own, as `torchrun` or a user's own script starts
them."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "system")]


class Failed(Exception):
    """A step has not shown what it is to show."""


class Program:
    """A worker of this folder on some ranks, with one Python and the package as it was installed."""

    #: How many times as long as on a machine of its own everything may take.
    patience = 1.0

    def __init__(self, python, package, fabric, ranks, worker, *words, env=None):
        self.ranks = ranks
        self.env = {
            **os.environ, "PYTHONPATH": str(package), "TRIB_MANAGER": fabric.manager, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks), **(env or {}),
        }  # fmt: skip
        self.python = [str(python), "-W", "ignore"]
        self.worker = [str(HERE / worker), *map(str, words)]
        self.forker = self.folder = None

    def start(self):
        """Starts the ranks; none ends because another one has died."""
        self.folder = tempfile.TemporaryDirectory(prefix="trib-torch-")
        command = [*self.python, HERE / "forker.py", str(self.ranks), self.folder.name, *self.worker]
        self.forker = subprocess.Popen(command, env=self.env)
        return self

    def told(self, limit, dead=()):
        """What each rank has told, by its number. Ranks in `dead` are to have died."""
        with self.folder:
            try:
                self.forker.wait(limit * self.patience)
            except subprocess.TimeoutExpired:
                left = [rank for rank in range(self.ranks) if self.code_of(rank) is None]
                raise Failed(f"after {limit * self.patience:.0f} s these ranks run or hang: {left}") from None
            finally:
                # Its ranks end with it.
                self.forker.kill()
                self.forker.wait()
            told, wrong = {}, []
            for rank in range(self.ranks):
                said = self.file_of(rank, "said")
                lines = [line for line in said.splitlines() if line.startswith("{")]
                if rank in dead:
                    continue
                if self.code_of(rank) != 0 or not lines:
                    wrong.append(f"rank {rank} ended with {self.code_of(rank)}:\n{said[-3000:]}")
                else:
                    told[rank] = json.loads(lines[-1])
        if wrong:
            raise Failed("\n".join(wrong[:2]))
        return told

    def code_of(self, rank):
        """What a rank has ended with; None if it has not."""
        code = self.file_of(rank, "ended")
        return int(code) if code else None

    def file_of(self, rank, what):
        file = pathlib.Path(self.folder.name) / f"{rank}.{what}"
        return file.read_text() if file.exists() else ""

    def run(self, limit=300):
        """Starts all ranks and waits for what they tell."""
        return self.start().told(limit)

    def torchrun(self, folder, limit, *options):
        """The same under torchrun: what each rank has left in the folder."""
        command = [*self.python, "-m", "torch.distributed.run", "--nproc-per-node", str(self.ranks), *options, *self.worker]
        try:
            done = subprocess.run(
                command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit * self.patience
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"torchrun runs or hangs after {limit * self.patience:.0f} s") from None
        if done.returncode:
            raise Failed(f"torchrun ended with {done.returncode}:\n{done.stdout[-4000:]}")
        return {rank: json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(self.ranks)}


def free_port():
    """A port for the program's own store that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
