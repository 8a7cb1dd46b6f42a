/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdio.h>

static bool speaks(const struct turn *turn)
{
    int rank;
    MPI_Comm_rank(turn->active, &rank);
    return rank == 0;
}

static const char *type_of(const struct options *options, const struct collective *collective)
{
    return collective->kind == KIND_BARRIER ? "" : options->element->name;
}

static const char *op_of(const struct collective *collective)
{
    return kind_reduces(collective->kind) ? operator_names[SHARP_OP_SUM] : "";
}

void report_title(const struct layer *layer, const struct options *options, const struct turn *turn,
                  const struct collective *collective)
{
    int ranks;

    MPI_Comm_size(turn->active, &ranks);
    if (!speaks(turn) || options->json)
        return;
    printf("# %s", collective->name);
    if (collective->kind != KIND_BARRIER)
        printf(" of %s%s%s", type_of(options, collective), kind_reduces(collective->kind) ? ", " : "", op_of(collective));
    printf("; %s, %d rank%s; through %s; %ld iterations after %ld\n", turn->name, ranks, ranks == 1 ? "" : "s", layer->name,
           options->iterations, options->skips);
    printf("%12s %12s %12s %12s %12s %8s\n", "bytes", "min us", "avg us", "max us", "MB/s", "at once");
    fflush(stdout);
}

void report_row(const struct layer *layer, const struct options *options, const struct turn *turn,
                const struct collective *collective, const struct figures *figures)
{
    int ranks;
    /* A byte per microsecond is a megabyte per second. */
    double rate = figures->mean_us > 0 ? (double)figures->bytes / figures->mean_us : 0;

    MPI_Comm_size(turn->active, &ranks);
    if (!speaks(turn))
        return;
    if (options->json)
        printf("{\"mode\":\"perf\",\"collective\":\"%s\",\"datatype\":\"%s\",\"operator\":\"%s\",\"group\":\"%s\",\"ranks\":%d,"
               "\"through\":\"%s\",\"bytes\":%zu,\"iterations\":%ld,\"at_once\":%d,\"min_us\":%.3f,\"avg_us\":%.3f,"
               "\"max_us\":%.3f,\"mb_per_s\":%.3f}\n",
               collective->name, type_of(options, collective), op_of(collective), turn->name, ranks, layer->name, figures->bytes,
               options->iterations, figures->at_once, figures->least_us, figures->mean_us, figures->most_us, rate);
    else
        printf("%12zu %12.2f %12.2f %12.2f %12.2f %8d\n", figures->bytes, figures->least_us, figures->mean_us, figures->most_us,
               rate, figures->at_once);
    fflush(stdout);
}

bool report_verdict(const struct layer *layer, const struct options *options, const char *mode, const struct tally *own)
{
    struct tally all;
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&own->trials, &all.trials, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&own->wrong, &all.wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && options->json)
        printf("{\"mode\":\"%s\",\"ranks\":%d,\"through\":\"%s\",\"results\":%ld,\"wrong\":%ld}\n", mode, ranks, layer->name,
               all.trials, all.wrong);
    else if (rank == 0)
        printf("%s: %ld results on %d ranks through %s, %ld wrong\n", mode, all.trials, ranks, layer->name, all.wrong);
    fflush(stdout);
    return all.wrong == 0;
}
