/* SPDX-License-Identifier: Apache-2.0
 *
 * Children that preload nothing, merged with their parents: the communicator's collectives are the
 * MPI's on both sides, and nothing of ours may travel on it.
 *
 *   spawn_merge CHILDREN ROUNDS
 */
#include "check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What every member of all does, parent or child. A message too many on either side shows as a
 * wrong value or a hang. */
static void use(MPI_Comm all, int rounds)
{
    int rank, size;

    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    for (int round = 0; round < rounds; round++) {
        int64_t mine = 1000 * round + rank, sum = -1, word = rank == 0 ? 77 + round : -1;
        MPI_Bcast(&word, 1, MPI_INT64_T, 0, all);
        CHECK(word == 77 + round, "broadcast %d gave %lld", round, (long long)word);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, all);
        CHECK(sum == (int64_t)1000 * round * size + size * (size - 1) / 2, "sum %d is %lld", round, (long long)sum);
        MPI_Barrier(all);
    }
}

static void check_all(MPI_Comm intercomm, int high, int rounds)
{
    MPI_Comm all, twin;

    MPI_Intercomm_merge(intercomm, high, &all);
    use(all, rounds);
    MPI_Comm_dup(all, &twin);
    use(twin, rounds);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&intercomm);
}

int main(int argc, char **argv)
{
    MPI_Comm intercomm;

    MPI_Init(&argc, &argv);
    CHECK(argc == 3, "usage: spawn_merge CHILDREN ROUNDS");
    int rounds = atoi(argv[2]);
    MPI_Comm_get_parent(&intercomm);
    if (intercomm != MPI_COMM_NULL) {
        CHECK(getenv("LD_PRELOAD") == NULL, "a child was started with LD_PRELOAD");
        check_all(intercomm, 1, rounds);
    } else {
        char *words[] = {"-u", "LD_PRELOAD", argv[0], argv[1], argv[2], NULL};
        MPI_Comm_spawn("env", words, atoi(argv[1]), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &intercomm, MPI_ERRCODES_IGNORE);
        check_all(intercomm, 0, rounds);
        use(MPI_COMM_WORLD, rounds);
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            puts("parents and children agree");
    }
    MPI_Finalize();
    return 0;
}
