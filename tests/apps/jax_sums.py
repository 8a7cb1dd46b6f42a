"""Sums over all ranks inside compiled functions of JAX, by mpi4jax: every element is checked.

jax_sums.py TIMES"""

import sys

import jax
import jax.numpy as jnp
import mpi4jax
import numpy as np
from mpi4py import MPI

ELEMENTS = 1000


@jax.jit
def total(x):
    return mpi4jax.allreduce(x, op=MPI.SUM, comm=MPI.COMM_WORLD)[0]


def main():
    rank, ranks, times = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, int(sys.argv[1])
    given = jnp.arange(ELEMENTS, dtype=jnp.float32) + rank
    wrong = 0
    for done in range(times):
        expected = ranks * (np.arange(ELEMENTS) + done) + ranks * (ranks - 1) // 2
        wrong += not np.array_equal(np.asarray(total(given + done)), expected)
    print(f"{times} sums: {wrong} wrong", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
