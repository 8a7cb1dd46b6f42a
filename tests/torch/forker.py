"""Starts the ranks of a worker as forks of one process, which has imported torch for all of them:
forker.py RANKS FOLDER WORKER [WORD...].

That is two thirds of what a rank has to compute here. A rank goes on in the worker's `main`; what it
says is in FOLDER/RANK.said, and when it has ended FOLDER/RANK.ended has its code.
"""

import ctypes
import importlib
import os
import pathlib
import signal
import sys

PR_SET_PDEATHSIG = 1


def main():
    ranks, folder, worker, *words = sys.argv[1:]
    folder, worker = pathlib.Path(folder), pathlib.Path(worker)
    sys.argv = [str(worker), *words]
    sys.path.insert(0, str(worker.parent))
    module = importlib.import_module(worker.stem)
    pids = {}
    for rank in range(int(ranks)):
        pid = os.fork()
        if pid == 0:
            return be(rank, folder, module)
        pids[pid] = rank
    while pids:
        pid, status = os.wait()
        rank = pids.pop(pid)
        (folder / f"{rank}.ended").write_text(str(os.waitstatus_to_exitcode(status)))


def be(rank, folder, module):
    """This process is a rank from here on, and ends with the one that forked it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    said = os.open(folder / f"{rank}.said", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    return module.main()


if __name__ == "__main__":
    sys.exit(main())
