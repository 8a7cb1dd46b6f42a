/* SPDX-License-Identifier: Apache-2.0
 *
 * Says how long each rank was in MPI_Init, and how much processor time it took there.
 */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    double begun = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);

    MPI_Init(&argc, &argv);
    printf("{\"seconds\": %.3f, \"processor\": %.3f}\n", seconds(CLOCK_MONOTONIC) - begun, seconds(CLOCK_PROCESS_CPUTIME_ID) - used);
    MPI_Finalize();
    return 0;
}
