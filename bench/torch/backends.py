"""The three that are compared, each with the same few calls."""

import concurrent.futures
import sys

import torch
import torch.distributed as dist
import tributary.torch  # noqa: F401  registers the backend

# The system's mpi4py, compiled for the system's MPI and Python; an environment does not see it.
sys.path.append("/usr/lib/python3/dist-packages")
from mpi4py import MPI  # noqa: E402


class OfTorch:
    """A process group of torch."""

    def __init__(self, name, group):
        self.name, self.group = name, group

    def all_reduce(self, tensor, whole):
        dist.all_reduce(tensor, group=self.group)

    def reduce(self, tensor, whole):
        dist.reduce(tensor, 0, group=self.group)

    def broadcast(self, tensor, whole):
        dist.broadcast(tensor, 0, group=self.group)

    def all_gather(self, tensor, whole):
        dist.all_gather_into_tensor(whole, tensor, group=self.group)

    def reduce_scatter(self, tensor, whole):
        dist.reduce_scatter_tensor(tensor, whole, group=self.group)

    def barrier(self, tensor, whole):
        dist.barrier(group=self.group)

    def prepare(self, model):
        """Its gradients are reduced as DDP does it."""


class OfMpi:
    """The MPI of mpi4py. Torch from PyPI has no MPI of its own, so DDP gets a hook that does what
    torch's ProcessGroupMPI does: one thread makes the calls, in their order."""

    name = "mpi"

    def __init__(self):
        self.world = MPI.COMM_WORLD.Dup()
        self.thread = concurrent.futures.ThreadPoolExecutor(1)

    def all_reduce(self, tensor, whole):
        self.world.Allreduce(MPI.IN_PLACE, tensor.numpy())

    def reduce(self, tensor, whole):
        given = MPI.IN_PLACE if self.world.rank == 0 else tensor.numpy()
        self.world.Reduce(given, tensor.numpy() if self.world.rank == 0 else None)

    def broadcast(self, tensor, whole):
        self.world.Bcast(tensor.numpy())

    def all_gather(self, tensor, whole):
        self.world.Allgather(tensor.numpy(), whole.numpy())

    def reduce_scatter(self, tensor, whole):
        self.world.Reduce_scatter_block(whole.numpy(), tensor.numpy())

    def barrier(self, tensor, whole):
        self.world.Barrier()

    def prepare(self, model):
        model.register_comm_hook(None, self.hook)

    def hook(self, _, bucket):
        tensor, done = bucket.buffer().div_(self.world.size), torch.futures.Future()

        def reduced():
            try:
                self.world.Allreduce(MPI.IN_PLACE, tensor.numpy())
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(tensor)

        self.thread.submit(reduced)
        return done


def all_of_them():
    return [OfTorch("gloo", dist.group.WORLD), OfMpi(), OfTorch("tributary", dist.new_group(backend="tributary"))]
