/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of a non-blocking collective hides behind computing, as the OSU benchmarks define it:
 *
 *   overlap = 100 * (1 - (whole - computing) / alone)
 *
 * where `alone` is the time of the collective with nothing else to do, `computing` a loop of about
 * the same length without any call of the MPI, and `whole` both together. Sums are checked.
 *
 * usage: overlap [bytes = 1048576] [repetitions = 20]
 *
 * Rank 0 prints one JSON line per collective, with medians in milliseconds.
 */
#include "check.h"

#include <string.h>

enum { KINDS = 3, REPETITIONS_MAX = 1000 };
static const char *const NAMES[KINDS] = {"MPI_Iallreduce", "MPI_Ireduce", "MPI_Ibcast"};

static float *given, *taken;
static int rank, ranks;

static void begin(int kind, int count, MPI_Request *request)
{
    if (kind == 0)
        MPI_Iallreduce(given, taken, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
    else if (kind == 1)
        MPI_Ireduce(given, taken, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD, request);
    else
        MPI_Ibcast(taken, count, MPI_FLOAT, 0, MPI_COMM_WORLD, request);
}

static void check(int kind, int count)
{
    float expected = kind == 2 ? 7.0f : (float)(ranks * (ranks + 1) / 2);

    if (kind == 1 && rank != 0)
        return;
    CHECK(taken[0] == expected && taken[count - 1] == expected, "%s gave %g", NAMES[kind], (double)taken[0]);
}

/* Computes without a call of the MPI. The loop counts its own work and not the clock's time, so
 * that time that others take from this rank is not hidden in it. */
static void compute(double loops)
{
    volatile double x = 1.0;

    for (double i = 0; i < loops; i++)
        x = x * 1.0000001 + 1e-9;
}

static int by_time(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, by_time);
    return times[count / 2];
}

/* The time of computing and a collective, either of which may be left out. */
static double once(int kind, int count, double loops)
{
    MPI_Request request = MPI_REQUEST_NULL;

    memset(taken, 0, (size_t)count * sizeof *taken);
    taken[0] = taken[count - 1] = rank == 0 ? 7.0f : 0.0f;
    MPI_Barrier(MPI_COMM_WORLD);
    double from = MPI_Wtime();
    if (kind >= 0)
        begin(kind, count, &request);
    compute(loops);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    double took = MPI_Wtime() - from;
    if (kind >= 0)
        check(kind, count);
    return took;
}

/* The average over all ranks of their medians. */
static double middle(double *times, int count)
{
    double mine = median(times, count), all;

    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all / ranks;
}

/* The three times are taken in turn, so that a machine that becomes slower for a while makes all of
 * them longer. */
static void measure(int kind, int count, int repetitions)
{
    static double alone[REPETITIONS_MAX], computing[REPETITIONS_MAX], whole[REPETITIONS_MAX];

    once(kind, count, 0);
    for (int i = 0; i < 3; i++) {
        alone[i] = once(kind, count, 0);
        computing[i] = once(-1, count, 1e6);
    }
    double loops = 1e6 * middle(alone, 3) / middle(computing, 3);
    for (int i = 0; i < repetitions; i++) {
        alone[i] = once(kind, count, 0);
        computing[i] = once(-1, count, loops);
        whole[i] = once(kind, count, loops);
    }
    double a = middle(alone, repetitions), c = middle(computing, repetitions), w = middle(whole, repetitions);
    if (rank == 0) {
        printf("{\"test\": \"overlap\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"alone_ms\": %.2f, "
               "\"computing_ms\": %.2f, \"whole_ms\": %.2f, \"overlap_percent\": %.0f}\n",
               NAMES[kind], ranks, (size_t)count * sizeof *given, a * 1e3, c * 1e3, w * 1e3, w < c ? 100 : w > a + c ? 0 : 100 * (1 - (w - c) / a));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int count = (int)(argument(argc, argv, 1, 1 << 20) / (long)sizeof *given);
    int repetitions = (int)argument(argc, argv, 2, 20);
    CHECK(count > 1 && repetitions > 0 && repetitions <= REPETITIONS_MAX, "usage: overlap [bytes] [repetitions, at most 1000]");
    given = malloc((size_t)count * sizeof *given);
    taken = malloc((size_t)count * sizeof *taken);
    CHECK(given != NULL && taken != NULL, "no memory for %d floats", count);
    for (int i = 0; i < count; i++)
        given[i] = (float)(rank + 1);
    for (int kind = 0; kind < KINDS; kind++)
        measure(kind, count, repetitions);
    free(given);
    free(taken);
    MPI_Finalize();
    return 0;
}
