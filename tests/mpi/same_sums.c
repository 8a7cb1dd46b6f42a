/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of what files hold, by every call of MPI that can take one. A rank gives the doubles of the
 * file given.K, where K is its entry in a list. Fails unless all calls give the same bits; rank 0
 * writes these to the file `sums`.
 *
 * usage: same_sums FOLDER COUNT K,K,... [WORDS]
 *   nonblocking   by calls that return at once, too
 *   info          on a communicator whose info asks for exact sums
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static MPI_Comm comm = MPI_COMM_WORLD;
static int rank, ranks, count;
static double *given, *sums, *others;

static void compare(const double *found, int from, int many, const char *call)
{
    if (memcmp(found, sums + from, (size_t)many * sizeof *found) != 0) {
        fprintf(stderr, "rank %d: %s has other bits than MPI_Allreduce\n", rank, call);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void read_given(const char *folder, const char *list)
{
    char path[4096];
    int which = 0;

    for (int at = 0; at <= rank; at++)
        which = (int)strtol(list + (at > 0), (char **)&list, 10);
    snprintf(path, sizeof path, "%s/given.%d", folder, which);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(given, sizeof *given, (size_t)count, file) != (size_t)count)
        MPI_Abort(MPI_COMM_WORLD, 2);
    fclose(file);
}

static void write_sums(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/sums", folder);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(sums, sizeof *sums, (size_t)count, file) != (size_t)count || fclose(file) != 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Blocks that have one length, and blocks that do not. */
static void scatter(void)
{
    int each = count / ranks, first = rank == 0 ? count - each * (ranks - 1) : each;
    int *counts = calloc((size_t)ranks, sizeof *counts);

    for (int at = 0; at < ranks; at++)
        counts[at] = at == 0 ? count - each * (ranks - 1) : each;
    MPI_Reduce_scatter(given, others, counts, MPI_DOUBLE, MPI_SUM, comm);
    compare(others, rank == 0 ? 0 : counts[0] + (rank - 1) * each, first, "MPI_Reduce_scatter");
    MPI_Reduce_scatter_block(given, others, each, MPI_DOUBLE, MPI_SUM, comm);
    compare(others, rank * each, each, "MPI_Reduce_scatter_block");
    free(counts);
}

/* Of blocks of two lengths, which the ranks exchange. */
static void scatter_products(void)
{
    int *counts = calloc((size_t)ranks, sizeof *counts);
    double *factors = calloc((size_t)ranks + 1, sizeof *factors), products[2];

    for (int at = 0; at < ranks; at++)
        counts[at] = at == 0 ? 2 : 1;
    MPI_Reduce_scatter(factors, products, counts, MPI_DOUBLE, MPI_PROD, comm);
    free(factors);
    free(counts);
}

static int has_word(int argc, char **argv, const char *word)
{
    for (int at = 4; at < argc; at++)
        if (strcmp(argv[at], word) == 0)
            return 1;
    return 0;
}

static void ask_by_info(void)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "tributary_sums", "exact");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    count = (int)strtol(argv[2], NULL, 10);
    given = malloc((size_t)count * sizeof *given);
    sums = malloc((size_t)count * sizeof *sums);
    others = malloc((size_t)count * sizeof *others);
    if (given == NULL || sums == NULL || others == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    read_given(argv[1], argv[3]);
    if (has_word(argc, argv, "info"))
        ask_by_info();
    MPI_Allreduce(given, sums, count, MPI_DOUBLE, MPI_SUM, comm);
    memcpy(others, given, (size_t)count * sizeof *others);
    MPI_Allreduce(MPI_IN_PLACE, others, count, MPI_DOUBLE, MPI_SUM, comm);
    compare(others, 0, count, "MPI_Allreduce in place");
    if (has_word(argc, argv, "nonblocking")) {
        MPI_Iallreduce(given, others, count, MPI_DOUBLE, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare(others, 0, count, "MPI_Iallreduce");
    }
    MPI_Reduce(given, others, count, MPI_DOUBLE, MPI_SUM, ranks - 1, comm);
    if (rank == ranks - 1)
        compare(others, 0, count, "MPI_Reduce");
    scatter();
    /* What stays with the MPI goes on beside them. */
    MPI_Allreduce(given, others, 1, MPI_DOUBLE, MPI_PROD, comm);
    scatter_products();
    if (rank == 0)
        write_sums(argv[1]);
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
