/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank comes late to a collective; the others wait for it without failing and almost without
 * work.
 *
 * usage: late_rank [rank = last] [seconds = 5] [collective = allreduce | barrier | reduce]
 *
 * Rank 0 prints one JSON line with what the waiting cost it; rank 1 does if rank 0 is the late one.
 */
#include "check.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double cpu_seconds(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* How often a thread of this process has slept. */
static long sleeps(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

static void meet(const char *collective, int rank, int size, int late)
{
    int sum = 0, one = 1;

    if (strcmp(collective, "barrier") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(collective, "reduce") == 0) {
        MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, late, MPI_COMM_WORLD);
        CHECK(rank != late || sum == size, "the sum of ones is %d, not %d", sum, size);
    } else {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size, "the sum of ones is %d, not %d", sum, size);
    }
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int late = (int)argument(argc, argv, 1, size - 1);
    long seconds = argument(argc, argv, 2, 5);
    const char *collective = argc > 3 ? argv[3] : "allreduce";
    CHECK(late >= 0 && late < size && seconds >= 0, "the late rank is one of 0 .. %d, the seconds are not negative", size - 1);
    CHECK(strcmp(collective, "allreduce") == 0 || strcmp(collective, "barrier") == 0 || strcmp(collective, "reduce") == 0,
          "unknown collective '%s'", collective);
    /* Connections and other first-use work are not to be measured. */
    meet(collective, rank, size, late);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), cpu_start = cpu_seconds();
    long slept_before = sleeps();
    if (rank == late)
        nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
    meet(collective, rank, size, late);
    double waited = MPI_Wtime() - start, cpu = cpu_seconds() - cpu_start;
    long slept = sleeps() - slept_before;
    if (strcmp(collective, "reduce") != 0)
        CHECK(waited > (double)seconds * 0.9, "left the collective %.3f s after the start, before rank %d came", waited, late);
    if (rank == (late == 0 && size > 1 ? 1 : 0))
        printf("{\"test\": \"late_rank\", \"ranks\": %d, \"collective\": \"%s\", \"late_rank\": %d, \"waited_s\": %.3f, "
               "\"cpu_s\": %.4f, \"cpu_share\": %.5f, \"sleeps\": %ld}\n",
               size, collective, late, waited, cpu, waited > 0 ? cpu / waited : 0.0, slept);
    MPI_Finalize();
    return 0;
}
