/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "job.h"
#include "notice.h"
#include "runtime.h"
#include "tributary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Atomic uint64_t calls[COLLECTIVES][REASONS], bytes_by[COLLECTIVES][DOERS], groups[GROUP_EVENTS];
static _Atomic uint64_t nanoseconds[COLLECTIVES][DOERS], waiting[COLLECTIVES][DOERS], rest[COLLECTIVES][DOERS], tree_nanoseconds;

/* The library's counters under the names of the report. */
static const struct {
    const char *name;
    size_t offset;
} COUNTERS[] = {
    {"operations_llt", offsetof(trib_counters, operations_llt)},
    {"operations_sat", offsetof(trib_counters, operations_sat)},
    {"operations_board", offsetof(trib_counters, operations_board)},
    {"datagrams_sent", offsetof(trib_counters, datagrams_sent)},
    {"datagrams_received", offsetof(trib_counters, datagrams_received)},
    {"datagrams_rejected", offsetof(trib_counters, datagrams_rejected)},
    {"datagrams_repeated", offsetof(trib_counters, datagrams_repeated)},
    {"stream_bytes_sent", offsetof(trib_counters, stream_bytes_sent)},
    {"stream_bytes_received", offsetof(trib_counters, stream_bytes_received)},
    {"retransmissions", offsetof(trib_counters, retransmissions)},
    {"probes", offsetof(trib_counters, probes)},
    {"groups_created", offsetof(trib_counters, groups_created)},
    {"groups_freed", offsetof(trib_counters, groups_freed)},
    {"epochs", offsetof(trib_counters, epochs)},
    {"replayed", offsetof(trib_counters, replayed)},
};
#define COUNTER_KINDS (sizeof COUNTERS / sizeof COUNTERS[0])

static const char *const GROUP_WORDS[GROUP_EVENTS] = {"made", "refused", "freed"};

/* The struct holds nothing but numbers of one type, so that one reduction sums it over the
 * ranks. */
struct figures {
    uint64_t calls[COLLECTIVES][REASONS];
    uint64_t bytes[COLLECTIVES][DOERS];
    uint64_t nanoseconds[COLLECTIVES][DOERS], waiting[COLLECTIVES][DOERS], rest[COLLECTIVES][DOERS];
    uint64_t tree_nanoseconds;
    uint64_t groups[GROUP_EVENTS];
    uint64_t counters[COUNTER_KINDS];
};

void report_operation(enum collective collective, enum reason reason, uint64_t bytes)
{
    atomic_fetch_add_explicit(&calls[collective][reason], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes_by[collective][reason == REASON_TREE ? DOER_TREE : DOER_MPI], bytes, memory_order_relaxed);
}

void report_group(enum group_event event)
{
    atomic_fetch_add_explicit(&groups[event], 1, memory_order_relaxed);
}

uint64_t report_clock(void)
{
    struct timespec now;

    if (!job.config.report)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t report_time(enum collective collective, enum doer doer, uint64_t since)
{
    uint64_t until = report_clock();

    if (since != 0)
        atomic_fetch_add_explicit(&nanoseconds[collective][doer], until - since, memory_order_relaxed);
    return until;
}

void report_split(enum collective collective, enum doer doer, uint64_t waited, uint64_t other)
{
    atomic_fetch_add_explicit(&waiting[collective][doer], waited, memory_order_relaxed);
    atomic_fetch_add_explicit(&rest[collective][doer], other, memory_order_relaxed);
}

void report_tree_time(uint64_t since)
{
    if (since != 0)
        atomic_fetch_add_explicit(&tree_nanoseconds, report_clock() - since, memory_order_relaxed);
}

static struct figures own_figures(void)
{
    struct figures own = {0};
    trib_counters counters = {.struct_size = sizeof counters};

    for (int collective = 0; collective < COLLECTIVES; collective++) {
        for (int reason = 0; reason < REASONS; reason++)
            own.calls[collective][reason] = calls[collective][reason];
        for (int doer = 0; doer < DOERS; doer++) {
            own.bytes[collective][doer] = bytes_by[collective][doer];
            own.nanoseconds[collective][doer] = nanoseconds[collective][doer];
            own.waiting[collective][doer] = waiting[collective][doer];
            own.rest[collective][doer] = rest[collective][doer];
        }
    }
    own.tree_nanoseconds = tree_nanoseconds;
    for (int event = 0; event < GROUP_EVENTS; event++)
        own.groups[event] = groups[event];
    if (job.context != NULL && trib_get_counters(job.context, &counters) == TRIB_OK)
        for (size_t kind = 0; kind < COUNTER_KINDS; kind++)
            memcpy(&own.counters[kind], (const char *)&counters + COUNTERS[kind].offset, sizeof own.counters[kind]);
    return own;
}

static uint64_t left_to_mpi(const struct figures *figures, int collective)
{
    uint64_t sum = 0;

    for (int reason = REASON_TREE + 1; reason < REASONS; reason++)
        sum += figures->calls[collective][reason];
    return sum;
}

static double seconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}

static uint64_t counter(const struct figures *figures, const char *name)
{
    size_t kind = 0;

    while (strcmp(COUNTERS[kind].name, name) != 0)
        kind++;
    return figures->counters[kind];
}

/* Prints the figures that say something to a person; the JSON file has all. */
static void print_traffic(const struct figures *figures)
{
    notice("  in the tree: %" PRIu64 " short operations by datagrams, %" PRIu64 " long ones by streams, %" PRIu64
           " in the memory of one host",
           counter(figures, "operations_llt"), counter(figures, "operations_sat"), counter(figures, "operations_board"));
    notice("  datagrams: %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " of them sent again; streams: %" PRIu64
           " bytes sent, %" PRIu64 " received",
           counter(figures, "datagrams_sent"), counter(figures, "datagrams_received"), counter(figures, "retransmissions"),
           counter(figures, "stream_bytes_sent"), counter(figures, "stream_bytes_received"));
}

static bool was_called(const struct figures *figures, int collective)
{
    return figures->calls[collective][REASON_TREE] + left_to_mpi(figures, collective) > 0;
}

/* Says what of the time was waiting for the last rank, and what was not. */
static void print_split(const char *what, const uint64_t waited[DOERS], const uint64_t other[DOERS])
{
    notice("    %s: waiting for the last rank %.3f in the tree, %.3f by the MPI; the rest %.3f and %.3f", what, seconds(waited[DOER_TREE]),
           seconds(waited[DOER_MPI]), seconds(other[DOER_TREE]), seconds(other[DOER_MPI]));
}

static void print_split_of_all(const struct figures *figures)
{
    uint64_t waited[DOERS] = {0}, other[DOERS] = {0};

    for (int collective = 0; collective < COLLECTIVES; collective++)
        for (int doer = 0; doer < DOERS; doer++) {
            waited[doer] += figures->waiting[collective][doer];
            other[doer] += figures->rest[collective][doer];
        }
    print_split("of all seconds", waited, other);
}

static void print_collective(const struct figures *figures, int collective)
{
    if (figures->calls[collective][REASON_NOT_TAKEN] == left_to_mpi(figures, collective) && figures->calls[collective][REASON_TREE] == 0) {
        notice("  %-30s %12s %16s %10s %12" PRIu64 " %10.3f  (%s)", collective_name((enum collective)collective), "-", "-", "-",
               left_to_mpi(figures, collective), seconds(figures->nanoseconds[collective][DOER_MPI]), reason_text(REASON_NOT_TAKEN));
        return;
    }
    notice("  %-30s %12" PRIu64 " %16" PRIu64 " %10.3f %12" PRIu64 " %10.3f", collective_name((enum collective)collective),
           figures->calls[collective][REASON_TREE], figures->bytes[collective][DOER_TREE],
           seconds(figures->nanoseconds[collective][DOER_TREE]), left_to_mpi(figures, collective),
           seconds(figures->nanoseconds[collective][DOER_MPI]));
    for (int reason = REASON_TREE + 1; reason < REASONS; reason++)
        if (figures->calls[collective][reason] > 0)
            notice("    %" PRIu64 " by the MPI because %s", figures->calls[collective][reason],
                   reason_text((enum reason)reason));
}

static void print(const struct figures *figures, const char *whose)
{
    notice("report: %s", whose);
    if (job.context == NULL)
        notice("  no job: %s", job.refusal);
    notice("  %-30s %12s %16s %10s %12s %10s", "collective", "in the tree", "bytes", "seconds", "by the MPI", "seconds");
    for (int collective = 0; collective < COLLECTIVES; collective++)
        if (was_called(figures, collective)) {
            print_collective(figures, collective);
            if (job.config.profile && figures->nanoseconds[collective][DOER_TREE] + figures->nanoseconds[collective][DOER_MPI] > 0)
                print_split("of these seconds", figures->waiting[collective], figures->rest[collective]);
        }
    if (job.config.profile)
        print_split_of_all(figures);
    notice("  trees of communicators: %" PRIu64 " made, %" PRIu64 " refused, %" PRIu64 " freed, %.3f seconds of waiting for them",
           figures->groups[GROUP_MADE], figures->groups[GROUP_REFUSED], figures->groups[GROUP_FREED],
           seconds(figures->tree_nanoseconds));
    if (job.context != NULL)
        print_traffic(figures);
}

static void write_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    }
    fputc('"', file);
}

static void write_times(FILE *file, const char *name, const uint64_t times[DOERS])
{
    fprintf(file, ", \"%s\": {\"tree\": %.9f, \"mpi\": %.9f}", name, seconds(times[DOER_TREE]), seconds(times[DOER_MPI]));
}

static void write_collective(FILE *file, const struct figures *figures, int collective)
{
    const char *separator = "";

    write_string(file, collective_name((enum collective)collective));
    fprintf(file, ": {\"tree\": %" PRIu64 ", \"tree_bytes\": %" PRIu64 ", \"mpi_bytes\": %" PRIu64, figures->calls[collective][REASON_TREE],
            figures->bytes[collective][DOER_TREE], figures->bytes[collective][DOER_MPI]);
    write_times(file, "seconds", figures->nanoseconds[collective]);
    if (job.config.profile) {
        write_times(file, "waiting", figures->waiting[collective]);
        write_times(file, "rest", figures->rest[collective]);
    }
    fputs(", \"mpi\": {", file);
    for (int reason = REASON_TREE + 1; reason < REASONS; reason++) {
        if (figures->calls[collective][reason] == 0)
            continue;
        fprintf(file, "%s\"%s\": %" PRIu64, separator, reason_key((enum reason)reason), figures->calls[collective][reason]);
        separator = ", ";
    }
    fputs("}}", file);
}

static void write_json(FILE *file, const struct figures *figures)
{
    const char *separator = "\n  ";

    fprintf(file, "{\"format\": 1, \"ranks\": %d, \"job\": %s, \"reason\": ", job.size, job.context != NULL ? "true" : "false");
    write_string(file, job.refusal);
    fputs(",\n \"collectives\": {", file);
    for (int collective = 0; collective < COLLECTIVES; collective++) {
        if (collective < (int)COUNTED_CALLS && !was_called(figures, collective))
            continue;
        fputs(separator, file);
        separator = ",\n  ";
        write_collective(file, figures, collective);
    }
    fputs("},\n \"groups\": {", file);
    for (int event = 0; event < GROUP_EVENTS; event++)
        fprintf(file, "%s\"%s\": %" PRIu64, event > 0 ? ", " : "", GROUP_WORDS[event], figures->groups[event]);
    fprintf(file, ", \"seconds\": %.9f", seconds(figures->tree_nanoseconds));
    fputs("},\n \"counters\": {", file);
    for (size_t kind = 0; kind < COUNTER_KINDS; kind++)
        fprintf(file, "%s\"%s\": %" PRIu64, kind > 0 ? ", " : "", COUNTERS[kind].name, figures->counters[kind]);
    fputs("}}\n", file);
}

static void write_file(const char *path, const struct figures *figures)
{
    FILE *file = fopen(path, "w");

    if (file != NULL)
        write_json(file, figures);
    if (file == NULL || fclose(file) != 0)
        notice("the report could not be written to TRIB_MPI_REPORT_FILE='%s': %s", path, strerror(errno));
}

static const char *setting(const char *name)
{
    const char *value = runtime_setting(name);

    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0 ? value : NULL;
}

void report_write(void)
{
    static struct figures own, all;
    char whose[96];

    own = own_figures();
    runtime_sum(job.world, (const uint64_t *)&own, (uint64_t *)&all, sizeof own / sizeof(uint64_t));
    if (job.rank != 0)
        return;
    snprintf(whose, sizeof whose, "MPI_COMM_WORLD of %d ranks; the figures are sums over them", job.size);
    if (setting("TRIB_MPI_REPORT") != NULL)
        print(&all, whose);
    if (setting("TRIB_MPI_REPORT_FILE") != NULL)
        write_file(setting("TRIB_MPI_REPORT_FILE"), &all);
}

void report_write_own(void)
{
    struct figures own = own_figures();
    char whose[128];

    if (setting("TRIB_MPI_REPORT") == NULL)
        return;
    snprintf(whose, sizeof whose, "MPI_Abort on rank %d of %d, here and maybe elsewhere; the figures are this rank's own", job.rank, job.size);
    print(&own, whose);
}
