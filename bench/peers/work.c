/* SPDX-License-Identifier: Apache-2.0 */
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* Small whole numbers, whose sums are exact in any order. */
static float given(int rank, long round, size_t at)
{
    return (float)((at * 7 + (size_t)rank * 3 + (size_t)round * 5) % 1021);
}

static float summed(int ranks, long round, size_t at)
{
    float sum = 0;

    for (int rank = 0; rank < ranks; rank++)
        sum += given(rank, round, at);
    return sum;
}

static bool in_blocks(enum collective collective)
{
    return collective == REDUCE_SCATTER || collective == ALLGATHER;
}

bool work_make(struct work *work, const struct cell *cell, int rank, int ranks)
{
    size_t elements = (cell->bytes + sizeof(float) - 1) / sizeof(float);
    size_t block = (elements + (size_t)ranks - 1) / (size_t)ranks;

    *work = (struct work){.collective = cell->collective, .mode = cell->mode, .rank = rank, .ranks = ranks};
    if (in_blocks(cell->collective))
        elements = block * (size_t)ranks;
    work->bytes = elements * sizeof(float);
    work->count = (int)(in_blocks(cell->collective) ? block : elements);
    work->elements = cell->collective == ALLGATHER ? block : elements;
    for (int round = 0; round < 2; round++) {
        work->input[round] = malloc((work->elements + 1) * sizeof(float));
        if (work->input[round] == NULL)
            return false;
        for (size_t at = 0; at < work->elements; at++)
            work->input[round][at] = given(rank, round, at);
    }
    for (int at = 0; at < (cell->mode == FLIGHT ? IN_FLIGHT : 1); at++) {
        work->output[at] = calloc(elements + 1, sizeof(float));
        if (work->output[at] == NULL)
            return false;
    }
    return true;
}

void work_free(struct work *work)
{
    for (int round = 0; round < 2; round++)
        free(work->input[round]);
    for (int at = 0; at < IN_FLIGHT; at++)
        free(work->output[at]);
}

/* A broadcast has one buffer: for the root it is the input of the round; the other ranks receive
   into their output. */
static float *broadcast_buffer(const struct work *work, long iteration, int at)
{
    return work->rank == 0 ? work->input[iteration % 2] : work->output[at];
}

static void run_flight(struct work *work, long iteration)
{
    MPI_Request requests[IN_FLIGHT];
    MPI_Status statuses[IN_FLIGHT];
    const float *input = work->input[iteration % 2];
    MPI_Comm world = MPI_COMM_WORLD;

    for (int at = 0; at < IN_FLIGHT; at++) {
        float *output = work->output[at];
        switch (work->collective) {
        case ALLREDUCE:
            MPI_Iallreduce(input, output, work->count, MPI_FLOAT, MPI_SUM, world, &requests[at]);
            break;
        case REDUCE:
            MPI_Ireduce(input, output, work->count, MPI_FLOAT, MPI_SUM, 0, world, &requests[at]);
            break;
        case BCAST:
            MPI_Ibcast(broadcast_buffer(work, iteration, at), work->count, MPI_FLOAT, 0, world, &requests[at]);
            break;
        case REDUCE_SCATTER:
            MPI_Ireduce_scatter_block(input, output, work->count, MPI_FLOAT, MPI_SUM, world, &requests[at]);
            break;
        case ALLGATHER:
            MPI_Iallgather(input, work->count, MPI_FLOAT, output, work->count, MPI_FLOAT, world, &requests[at]);
            break;
        default:
            MPI_Ibarrier(world, &requests[at]);
        }
    }
    MPI_Waitall(IN_FLIGHT, requests, statuses);
}

void work_run(struct work *work, long iteration)
{
    const float *input = work->input[iteration % 2];
    float *output = work->output[0];

    if (work->mode == FLIGHT) {
        run_flight(work, iteration);
        return;
    }
    switch (work->collective) {
    case ALLREDUCE:
        MPI_Allreduce(input, output, work->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case REDUCE:
        MPI_Reduce(input, output, work->count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case BCAST:
        MPI_Bcast(broadcast_buffer(work, iteration, 0), work->count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(input, output, work->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(input, work->count, MPI_FLOAT, output, work->count, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    default:
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static float expected(const struct work *work, long round, size_t at)
{
    size_t block = (size_t)work->count;

    switch (work->collective) {
    case REDUCE_SCATTER:
        return summed(work->ranks, round, (size_t)work->rank * block + at);
    case ALLGATHER:
        return given((int)(at / block), round, at % block);
    case BCAST:
        return given(0, round, at);
    default:
        return summed(work->ranks, round, at);
    }
}

static size_t result_elements(const struct work *work)
{
    switch (work->collective) {
    case ALLREDUCE:
    case REDUCE_SCATTER:
        return (size_t)work->count;
    case ALLGATHER:
        return (size_t)work->count * (size_t)work->ranks;
    case REDUCE:
        return work->rank == 0 ? (size_t)work->count : 0;
    case BCAST:
        return work->rank == 0 ? 0 : (size_t)work->count;
    default:
        return 0;
    }
}

size_t work_check(const struct work *work, long iteration)
{
    size_t elements = result_elements(work), wrong = 0;

    for (size_t at = 0; at < elements; at++) {
        float right = expected(work, iteration % 2, at);
        for (int result = 0; result < (work->mode == FLIGHT ? IN_FLIGHT : 1); result++)
            wrong += work->output[result][at] != right;
    }
    return wrong;
}
