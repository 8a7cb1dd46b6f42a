/* SPDX-License-Identifier: Apache-2.0
 *
 * The MPI side of the comparison. It measures one list of cells in the same way as the native
 * worker (`trib bench worker`) and gloo.py, and prints one line of JSON per cell. It can be
 * linked with any MPI; Tributary's interposer is preloaded under it.
 *
 *   sustained  operations run back to back with no barrier between; the slowest rank's time counts
 *   single     one operation follows a barrier and a pause that refills every idle token bucket;
 *              the slowest rank counts, every time
 *   flight     eight non-blocking operations run at once, back to back
 */
#define _GNU_SOURCE
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const double PAUSE_S = 0.005;
enum { MOST_ITERATIONS = 20000, WARM_UP_BATCH = 20 };

struct usage {
    double cpu_ns, switches;
};

struct outcome {
    long iterations;
    double seconds;
    double median, p99, least, most; /* microseconds of a call */
    struct usage usage;              /* of all ranks together, over the timed operations */
    double wrong;
};

static double seconds_of(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

static struct usage usage_now(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (struct usage){seconds_of(CLOCK_PROCESS_CPUTIME_ID) * 1e9, (double)(usage.ru_nvcsw + usage.ru_nivcsw)};
}

static double over_ranks(double own, MPI_Op op)
{
    double all;

    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    return all;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The gate: rank 0 says where it is, and goes on when its reader has looked at the counters of
   the fabric. */
static void gate(const struct options *options, int rank, const char *event)
{
    char line[16];

    if (!options->gate)
        return;
    if (rank == 0) {
        printf("{\"event\":\"%s\"}\n", event);
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static double slowest_of(struct work *work, long operations)
{
    double start = now();

    for (long at = 0; at < operations; at++)
        work_run(work, at + 1);
    return over_ranks((now() - start) / (double)operations, MPI_MAX);
}

/* Chooses how often to run: the budget divided by the time of a warm-up operation, or of a batch
   where one operation is too short to tell. */
static long choose(const struct options *options, const struct cell *cell, struct work *work)
{
    if (cell->iterations > 0)
        return cell->iterations < MOST_ITERATIONS ? cell->iterations : MOST_ITERATIONS;
    double slowest = slowest_of(work, 1);
    if (slowest * 10 * WARM_UP_BATCH < options->budget)
        slowest = slowest_of(work, WARM_UP_BATCH);
    double each = slowest + (cell->mode == SINGLE ? PAUSE_S : 0);
    double fit = options->budget / (each > 1e-7 ? each : 1e-7);
    if (fit < (double)options->min_iterations)
        fit = (double)options->min_iterations;
    return fit < MOST_ITERATIONS ? (long)fit : MOST_ITERATIONS;
}

/* The times of the calls. In mode sustained, a call's time is between two completions on one
 * rank; the median is taken over the ranks' own, and the tail is that of the worst rank. In mode
 * single, a call is as long as its slowest rank. */
static void summarize(struct outcome *outcome, double *times, long count, enum mode mode, int ranks)
{
    if (mode == SINGLE)
        MPI_Allreduce(MPI_IN_PLACE, times, (int)count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(times, (size_t)count, sizeof *times, compare);
    outcome->median = over_ranks(times[count / 2], MPI_SUM) / ranks * 1e6;
    outcome->p99 = over_ranks(times[(count * 99) / 100], MPI_MAX) * 1e6;
    outcome->least = over_ranks(times[0], MPI_MIN) * 1e6;
    outcome->most = over_ranks(times[count - 1], MPI_MAX) * 1e6;
}

static void measure(const struct options *options, const struct cell *cell, struct work *work, double *times,
                    struct outcome *outcome)
{
    work_run(work, 0);
    outcome->wrong = over_ranks((double)work_check(work, 0), MPI_SUM);
    outcome->iterations = choose(options, cell, work);
    gate(options, work->rank, "ready");
    /* On an idle link the first bytes would pass at once. */
    work_run(work, 1);
    MPI_Barrier(MPI_COMM_WORLD);

    struct usage before = usage_now();
    double timed = 0, start = now(), last = start;
    for (long at = 0; at < outcome->iterations; at++) {
        if (work->mode == SINGLE) {
            nanosleep(&(struct timespec){0, (long)(PAUSE_S * 1e9)}, NULL);
            MPI_Barrier(MPI_COMM_WORLD);
            last = now();
        }
        work_run(work, at);
        double end = now();
        times[at] = end - last;
        timed += times[at];
        last = end;
    }
    double elapsed = work->mode == SINGLE ? timed : last - start;
    struct usage after = usage_now();

    /* A rank that checks its result takes processor time from those that still wait for theirs. */
    MPI_Barrier(MPI_COMM_WORLD);
    gate(options, work->rank, "done");
    outcome->wrong += over_ranks((double)work_check(work, outcome->iterations - 1), MPI_SUM);
    outcome->seconds = over_ranks(elapsed, MPI_MAX);
    outcome->usage.cpu_ns = over_ranks(after.cpu_ns - before.cpu_ns, MPI_SUM);
    outcome->usage.switches = over_ranks(after.switches - before.switches, MPI_SUM);
    summarize(outcome, times, outcome->iterations, work->mode, work->ranks);
}

static void print(const struct cell *cell, const struct work *work, const struct outcome *outcome)
{
    printf("{\"collective\":\"%s\",\"bytes\":%zu,\"mode\":\"%s\",\"asked_bytes\":%zu,\"iterations\":%ld,"
           "\"operations\":%ld,\"seconds\":%.9f,"
           "\"latencies_us\":{\"median\":%.3f,\"p99\":%.3f,\"min\":%.3f,\"max\":%.3f},"
           "\"cpu_ns\":%.0f,\"context_switches\":%.0f,\"wrong\":%.0f}\n",
           COLLECTIVE_NAMES[cell->collective], cell->collective == BARRIER ? 0 : work->bytes, MODE_NAMES[cell->mode],
           cell->bytes, outcome->iterations, outcome->iterations + 1, outcome->seconds, outcome->median, outcome->p99,
           outcome->least, outcome->most, outcome->usage.cpu_ns, outcome->usage.switches, outcome->wrong);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options options;
    int rank, ranks;
    bool failed = false;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!options_read(&options, argc, argv))
        MPI_Abort(MPI_COMM_WORLD, 2);
    double *times = malloc(MOST_ITERATIONS * sizeof *times);
    for (size_t at = 0; at < options.cell_count; at++) {
        struct cell *cell = &options.cells[at];
        struct work work;
        struct outcome outcome = {0};
        if (times == NULL || !work_make(&work, cell, rank, ranks)) {
            fprintf(stderr, "collectives: no memory for vectors of %zu bytes\n", cell->bytes);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        measure(&options, cell, &work, times, &outcome);
        if (rank == 0)
            print(cell, &work, &outcome);
        failed = failed || outcome.wrong > 0;
        work_free(&work);
    }
    free(times);
    free(options.cells);
    MPI_Finalize();
    return failed;
}
