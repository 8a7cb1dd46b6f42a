/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line, and the variables of the environment that belong to it.
 */
#ifndef COLL_TEST_OPTIONS_H
#define COLL_TEST_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "element.h"
#include "memory.h"

/* The largest number of requests under way at once. */
enum { NBC_COUNT_MAX = 512 };

enum mode {
    MODE_BASIC = 1,
    MODE_COMPLEX = 2,
    MODE_PERF = 4,
};

enum group_type {
    GROUP_WORLD,
    GROUP_SPLIT,
    GROUP_SPLIT_REVERSED,
    GROUP_HALF,
    GROUP_PPN_COMM,
    GROUP_PPN_JOBS,
};

struct group_choice {
    enum group_type type;
    int splits;
};

struct options {
    const char *devices;
    unsigned collectives; /* bit n: row n of the table of collectives */
    unsigned modes;
    enum sharp_data_memory_type send_mem_type, receive_mem_type;
    size_t size_min, size_max;
    bool has_size;
    const struct element *element;
    bool has_element;
    struct group_choice group;
    bool has_group;
    bool is_list;
    unsigned list_count;
    long iterations, skips;
    int nbc_count;
    int root; /* -1: the last rank, or each rank in turn */
    bool flat_ppn;
    bool perf_with_barrier;
    enum host_kind host_kind;
    uint64_t job_id;
    bool has_job_id;
    bool json;
    bool help;
    /* These come from the environment. */
    bool through_mpi;       /* ENABLE_SHARP_COLL=0 */
    bool ppn_comm_parallel; /* SHARP_RUN_PPN_COMM_PARALLEL */
    unsigned reduce_scatter_chunks, allgather_chunks; /* 0: not set */
    unsigned sleep_s;
};

/* Returns false, after a message on stderr, if the command line makes no sense. */
bool options_parse(int argc, char **argv, struct options *options);
extern const char options_usage[];

#endif
