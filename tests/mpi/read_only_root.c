/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 broadcasts every second number out of memory that it may only read.
 *
 *   read_only_root
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <sys/mman.h>

#define NUMBERS 1000

int main(int argc, char **argv)
{
    int rank;
    MPI_Datatype every_second;
    size_t length = 2 * NUMBERS * sizeof(int);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int *numbers = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(numbers != MAP_FAILED, "no memory");
    for (int i = 0; i < 2 * NUMBERS; i++)
        numbers[i] = rank == 0 ? i : -1;
    if (rank == 0)
        CHECK(mprotect(numbers, length, PROT_READ) == 0, "the memory cannot be protected");
    MPI_Type_vector(NUMBERS, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Bcast(numbers, 1, every_second, 0, MPI_COMM_WORLD);
    MPI_Type_free(&every_second);
    for (int i = 0; i < 2 * NUMBERS; i++)
        CHECK(numbers[i] == (rank == 0 || i % 2 == 0 ? i : -1), "number %d is %d", i, numbers[i]);
    munmap(numbers, length);
    MPI_Finalize();
    return 0;
}
