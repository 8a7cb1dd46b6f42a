/* SPDX-License-Identifier: Apache-2.0
 *
 * Traffic of the MPI to a rank that waits in a collective: at what rate does it get on if that rank
 * has waited for seconds, beside one that has just begun to wait?
 *
 * Rank 0 waits for the last rank in MPI_Allreduce, which meanwhile sends to rank 0, or writes into
 * its memory. All other ranks wait, too.
 *
 * usage: late_traffic [traffic = send | put | many] [seconds = 3] [rounds = 3] [bytes = 64 MiB]
 *
 * `send` is messages so long that the receiver has to take part, `many` is short messages, `put`
 * is one-sided. The last rank prints one JSON line: median rates at once and after the seconds, and
 * the greatest share of a CPU that waiting without traffic cost rank 1, should there be three.
 */
#include "check.h"

#include <string.h>
#include <time.h>

enum { MESSAGES = 4, PASSES = 4, SHORT = 2048, ROUNDS_MAX = 64 };

/* How long a rank has waited that has just begun. It is long enough for all ranks to have come. */
static const double JUST_BEGUN = 0.1;

struct traffic {
    const char *name;
    long bytes, piece, pieces;
    unsigned char *memory;
    MPI_Win window;
    MPI_Request *requests;
};

static double cpu_seconds(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, long count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void rest(double seconds)
{
    long whole = (long)seconds;

    nanosleep(&(struct timespec){.tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9)}, NULL);
}

static int is_put(const struct traffic *traffic)
{
    return strcmp(traffic->name, "put") == 0;
}

/* Rank 0 gets ready for what comes while it waits. */
static void expect(struct traffic *traffic, int sender)
{
    memset(traffic->memory, 0, (size_t)traffic->bytes);
    if (!is_put(traffic))
        for (long i = 0; i < PASSES * traffic->pieces; i++)
            MPI_Irecv(traffic->memory + i % traffic->pieces * traffic->piece, (int)traffic->piece, MPI_BYTE, sender, 7,
                      MPI_COMM_WORLD, &traffic->requests[i]);
}

/* The last rank: returns the bytes per second. */
static double supply(struct traffic *traffic, unsigned char value)
{
    memset(traffic->memory, value, (size_t)traffic->bytes);
    double start = MPI_Wtime();
    for (long i = 0; i < PASSES * traffic->pieces; i++) {
        long at = i % traffic->pieces * traffic->piece;
        if (is_put(traffic)) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, traffic->window);
            MPI_Put(traffic->memory + at, (int)traffic->piece, MPI_BYTE, 0, at, (int)traffic->piece, MPI_BYTE,
                    traffic->window);
            MPI_Win_unlock(0, traffic->window);
        } else {
            MPI_Send(traffic->memory + at, (int)traffic->piece, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
        }
    }
    /* A short message counts as sent when the MPI has copied it, a synchronous one when the
     * receiver has come to it. */
    if (!is_put(traffic))
        MPI_Ssend(traffic->memory, 1, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
    return (double)(PASSES * traffic->bytes) / (MPI_Wtime() - start);
}

/* One wait with traffic after so many seconds. Returns the rate at the last rank; writes what the
 * others' waiting costs. */
static double late(struct traffic *traffic, double seconds, unsigned char value, int rank, int size, double *share)
{
    int sum = 0, one = 1;
    double rate = 0;
    unsigned char last;
    MPI_Request end = MPI_REQUEST_NULL;

    if (rank == 0)
        expect(traffic, size - 1);
    if (rank == 0 && !is_put(traffic))
        MPI_Irecv(&last, 1, MPI_BYTE, size - 1, 8, MPI_COMM_WORLD, &end);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), cpu_start = cpu_seconds();
    if (rank == size - 1) {
        rest(seconds);
        rate = supply(traffic, value);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    *share = (cpu_seconds() - cpu_start) / (MPI_Wtime() - start);
    CHECK(sum == size, "the sum of ones is %d, not %d", sum, size);
    if (rank == 0) {
        if (!is_put(traffic))
            MPI_Waitall((int)(PASSES * traffic->pieces), traffic->requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&end, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, traffic->window);
        for (long i = 0; i < traffic->bytes; i++)
            CHECK(traffic->memory[i] == value, "byte %ld is %d, not %d", i, traffic->memory[i], value);
        MPI_Win_unlock(0, traffic->window);
    }
    return rate;
}

int main(int argc, char **argv)
{
    int rank, size;
    double at_once[ROUNDS_MAX], afterwards[ROUNDS_MAX], share, highest = 0;
    struct traffic traffic = {.name = argc > 1 ? argv[1] : "send"};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long seconds = argument(argc, argv, 2, 3), rounds = argument(argc, argv, 3, 3);
    traffic.bytes = argument(argc, argv, 4, 64 << 20);
    traffic.piece = strcmp(traffic.name, "many") == 0 ? SHORT : traffic.bytes / MESSAGES;
    CHECK(size > 1 && rounds > 0 && rounds <= ROUNDS_MAX && traffic.bytes > 0 && traffic.bytes % (MESSAGES * SHORT) == 0,
          "needs 2 ranks, 1 .. %d rounds, and a multiple of %d bytes", ROUNDS_MAX, MESSAGES * SHORT);
    traffic.pieces = traffic.bytes / traffic.piece;
    traffic.requests = calloc((size_t)(PASSES * traffic.pieces), sizeof *traffic.requests);
    CHECK(traffic.requests != NULL, "out of memory");
    MPI_Win_allocate(traffic.bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &traffic.memory, &traffic.window);
    /* Connections and other first-use work are not to be measured. */
    late(&traffic, 0, 1, rank, size, &share);
    for (long round = 0; round < rounds; round++) {
        at_once[round] = late(&traffic, JUST_BEGUN, (unsigned char)(2 + 2 * round), rank, size, &share);
        afterwards[round] = late(&traffic, (double)seconds, (unsigned char)(3 + 2 * round), rank, size, &share);
        highest = share > highest ? share : highest;
    }
    double shares[2] = {highest, 0};
    if (rank == 1 && size > 2)
        MPI_Send(&highest, 1, MPI_DOUBLE, size - 1, 9, MPI_COMM_WORLD);
    if (rank == size - 1 && size > 2)
        MPI_Recv(&shares[1], 1, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == size - 1) {
        double first = median(at_once, rounds) / 1e6, then = median(afterwards, rounds) / 1e6;
        printf("{\"test\": \"late_traffic\", \"traffic\": \"%s\", \"bytes\": %ld, \"at_once_mb_s\": %.0f, \"after_s\": %ld, "
               "\"afterwards_mb_s\": %.0f, \"ratio\": %.3f, \"idle_cpu_share\": %.5f}\n",
               traffic.name, traffic.bytes, first, seconds, then, then / first, shares[1]);
    }
    MPI_Win_free(&traffic.window);
    free(traffic.requests);
    MPI_Finalize();
    return 0;
}
