/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and barriers of OpenSHMEM, checked: `shmem_sums TIMES`.
 */
#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>

#define LONGS 64

static long psync[SHMEM_REDUCE_SYNC_SIZE], work[LONGS + SHMEM_REDUCE_MIN_WRKDATA_SIZE], from[LONGS], to[LONGS];

static int check(int times, int size)
{
    int wrong = 0;

    for (int i = 0; i < LONGS; i++)
        wrong += to[i] != (long)size * (size - 1) / 2 + (long)size * (i + times);
    return wrong;
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1, wrong = 0;

    shmem_init();
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        psync[i] = SHMEM_SYNC_VALUE;
    for (int done = 0; done < times; done++) {
        for (int i = 0; i < LONGS; i++)
            from[i] = shmem_my_pe() + i + done;
        shmem_barrier_all();
        shmem_long_sum_to_all(to, from, LONGS, 0, 0, shmem_n_pes(), work, psync);
        wrong += check(done, shmem_n_pes());
    }
    printf("%d sums: %d wrong, the last %ld\n", times, wrong, to[LONGS - 1]);
    fflush(stdout);
    shmem_barrier_all();
    shmem_finalize();
    return wrong != 0;
}
