/* SPDX-License-Identifier: Apache-2.0 */
#include "fail.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>

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
    int rank;
    va_list arguments;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0)
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
