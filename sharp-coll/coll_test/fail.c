/* SPDX-License-Identifier: Apache-2.0 */
#include "fail.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool is_first_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    int is_running, rank;

    MPI_Initialized(&is_running);
    if (is_running) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return rank == 0;
    }
    for (size_t at = 0; at < sizeof variables / sizeof variables[0]; at++)
        if (getenv(variables[at]) != NULL)
            return strcmp(getenv(variables[at]), "0") == 0;
    return true;
}

static void line(const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "sharp_coll_test: %s\n", text);
}

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    line(format, arguments);
    va_end(arguments);
}

void complain_once(const char *format, ...)
{
    va_list arguments;

    if (!is_first_rank())
        return;
    va_start(arguments, format);
    line(format, arguments);
    va_end(arguments);
}

void end_all(int code)
{
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
    __builtin_unreachable();
}
