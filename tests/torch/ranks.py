"""Ranks of a torch program on a fabric of their own, as `torchrun` or a user's own script starts
them."""

import json
import os
import pathlib
import socket
import subprocess
import sys

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
            **os.environ, "PYTHONPATH": str(package), "TRIB_MANAGER": fabric.manager, "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks), **(env or {}),
        }  # fmt: skip
        self.command = [str(python), "-W", "ignore", str(HERE / worker), *map(str, words)]
        self.processes = []

    def start(self):
        """Starts each rank by itself: no launcher ends the others when one dies."""
        for rank in range(self.ranks):
            env = {**self.env, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            self.processes.append(subprocess.Popen(self.command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return self

    def told(self, limit, dead=()):
        """What each rank has told, by its number. Ranks in `dead` are to have died."""
        told, wrong = {}, []
        try:
            for rank, process in enumerate(self.processes):
                output, _ = process.communicate(timeout=limit * self.patience)
                if rank in dead:
                    continue
                lines = [line for line in output.splitlines() if line.startswith("{")]
                if process.returncode or not lines:
                    wrong.append(f"rank {rank} ended with {process.returncode}:\n{output[-3000:]}")
                else:
                    told[rank] = json.loads(lines[-1])
        except subprocess.TimeoutExpired:
            raise Failed(f"rank {rank} runs or hangs after {limit * self.patience:.0f} s") from None
        finally:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if wrong:
            raise Failed("\n".join(wrong[:2]))
        return told

    def run(self, limit=300):
        """Starts all ranks and waits for what they tell."""
        return self.start().told(limit)

    def torchrun(self, folder, limit, *options):
        """The same under torchrun: what each rank has left in the folder."""
        python, *words = self.command
        words = words[words.index(str(next(word for word in words if word.endswith(".py")))) :]
        command = [python, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", str(self.ranks), *options, *words]
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
