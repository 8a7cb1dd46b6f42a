"""The collectives of mpi4py on buffers, whose results are checked. Where it finds MPI's forms for large counts, mpi4py calls these."""

from array import array

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
SUM = RANKS * (RANKS + 1) / 2


def doubles(*values):
    return array("d", values)


def expect(buffer, *values):
    assert list(buffer) == list(values), f"rank {RANK}: {list(buffer)}, not {list(values)}"


def taken_by_the_tree():
    result = doubles(0, 0)
    WORLD.Allreduce(doubles(RANK + 1, 1), result)
    expect(result, SUM, RANKS)
    result = doubles(RANK)
    WORLD.Allreduce(MPI.IN_PLACE, result, MPI.MAX)
    expect(result, RANKS - 1)
    result = doubles(-1)
    WORLD.Reduce(doubles(RANK), result, MPI.MIN, 1)
    expect(result, 0 if RANK == 1 else -1)
    result = doubles(RANK, RANK)
    WORLD.Bcast(result, 1)
    expect(result, 1, 1)
    result = doubles(*[0] * RANKS)
    WORLD.Allgather(doubles(RANK), result)
    expect(result, *range(RANKS))
    result = doubles(0)
    WORLD.Reduce_scatter_block(doubles(*range(RANKS)), result)
    expect(result, RANK * RANKS)
    WORLD.Barrier()


def left_to_the_mpi():
    counts = [1 + rank for rank in range(RANKS)]
    begins = [sum(counts[:rank]) for rank in range(RANKS)]
    everyones = [rank for rank in range(RANKS) for _ in range(1 + rank)]
    mine = doubles(*[RANK] * counts[RANK])
    for call in (WORLD.Gatherv, lambda *arguments: WORLD.Igatherv(*arguments).Wait()):
        result = doubles(*[0] * sum(counts))
        call(mine, [result, counts, begins, MPI.DOUBLE] if RANK == 1 else None, 1)
        if RANK == 1:
            expect(result, *everyones)
    result = doubles(*[0] * sum(counts))
    WORLD.Allgatherv(mine, [result, counts, begins, MPI.DOUBLE])
    expect(result, *everyones)
    result = doubles(*[-1] * counts[RANK])
    WORLD.Scatterv([doubles(*everyones), counts, begins, MPI.DOUBLE] if RANK == 0 else None, result, 0)
    expect(result, *mine)
    ones, at = [1] * RANKS, list(range(RANKS))
    given = doubles(*(10 * RANK + rank for rank in range(RANKS)))
    for call in (WORLD.Alltoallv, lambda *arguments: WORLD.Ialltoallv(*arguments).Wait()):
        result = doubles(*[0] * RANKS)
        call([given, ones, at, MPI.DOUBLE], [result, ones, at, MPI.DOUBLE])
        expect(result, *(10 * rank + RANK for rank in range(RANKS)))
    result = doubles(0)
    WORLD.Reduce_scatter(doubles(*range(RANKS)), result, ones)
    expect(result, RANK * RANKS)
    WORLD.Scan(doubles(1), result)
    expect(result, RANK + 1)
    given = doubles(1)
    WORLD.Iallreduce(given, result).Wait()
    expect(result, RANKS)


def neighbours():
    """A ring as a grid, as a graph, and with two ways to the next rank and one to that after it."""
    after, before = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    degrees = [2 * (rank + 1) for rank in range(RANKS)]
    edges = [(rank + way) % RANKS for rank in range(RANKS) for way in (-1, 1)]
    for ring in (WORLD.Create_cart([RANKS], [True]), WORLD.Create_graph(degrees, edges)):
        result, given = doubles(0, 0), doubles(RANK, RANK)
        ring.Neighbor_alltoallv([given, [1, 1], [0, 1], MPI.DOUBLE], [result, [1, 1], [1, 0], MPI.DOUBLE])
        expect(result, after, before)
        ring.Neighbor_allgatherv(doubles(RANK), [result, [1, 1], [0, 1], MPI.DOUBLE])
        expect(result, before, after)
        one = MPI.DOUBLE
        ring.Ineighbor_alltoallw([given, [1, 1], [0, 8], [one, one]], [result, [1, 1], [0, 8], [one, one]]).Wait()
        expect(result, before, after)
        ring.Free()
    ways = WORLD.Create_dist_graph_adjacent([before, before, (RANK - 2) % RANKS], [after, after, (RANK + 2) % RANKS])
    result = doubles(0, 0, 0)
    ways.Neighbor_alltoallv([doubles(RANK, RANK, RANK), [1] * 3, [0, 1, 2], MPI.DOUBLE], [result, [1] * 3, [0, 1, 2], MPI.DOUBLE])
    expect(result, before, before, (RANK - 2) % RANKS)
    ways.Free()


neighbours()
taken_by_the_tree()
left_to_the_mpi()
