"""A rank of the comparison: worker.py WHAT FOLDER EPOCHS, started by an MPI's launcher on every host.

WHAT is `collectives`, `training` or `quantised`. One process has Gloo, mpi4py and Tributary side by side, so that
each figure of one stands beside the others' of the same minute. Rank 0 leaves what was measured in
FOLDER/WHAT.json. `training` trains each model for EPOCHS.
"""

import functools
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist

import backends
import collectives
import quantised
import training


def main():
    what, folder, epochs = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=size)
    parts = {"collectives": collectives.measured, "training": functools.partial(training.measured, epochs=epochs), "quantised": quantised.measured}
    measured = parts[what](backends.all_of_them())
    if rank == 0:
        (folder / f"{what}.json").write_text(json.dumps({"ranks": size, "torch": torch.__version__, what: measured}))
    dist.barrier()
    backends.MPI.Finalize()
    # Groups of several backends end with their process.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
