/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "fail.h"

static const struct option long_options[] = {
    {"ib-dev", required_argument, NULL, 'd'},
    {"collectives", required_argument, NULL, 'c'},
    {"mode", required_argument, NULL, 'm'},
    {"mem_type", required_argument, NULL, 'M'},
    {"size", required_argument, NULL, 's'},
    {"datatype", required_argument, NULL, 'T'},
    {"group_type", required_argument, NULL, 't'},
    {"data_layout", required_argument, NULL, 'D'},
    {"iov_count", required_argument, NULL, 'C'},
    {"iters", required_argument, NULL, 'i'},
    {"skips", required_argument, NULL, 'x'},
    {"nbc_count", required_argument, NULL, 'N'},
    {"root", required_argument, NULL, 'r'},
    {"flat_ppn", no_argument, NULL, 'p'},
    {"perf_with_barrier", no_argument, NULL, 'B'},
    {"host_alloc_type", required_argument, NULL, 'H'},
    {"jobid", required_argument, NULL, 'j'},
    /* This option is not in the original table, and has no short letter. What was short for
     * --jobid stays so. */
    {"json", no_argument, NULL, 'J'},
    {"j", required_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};
static const char short_options[] = ":d:c:m:M:s:T:t:D:C:i:x:N:r:pBH:j:h";

/* A word with a value. */
struct choice {
    const char *word;
    int value;
};

/* Looks up len bytes of text; -1 if they are none of the words. */
static int chosen(const struct choice *choices, const char *text, size_t len)
{
    for (; choices->word != NULL; choices++)
        if (strlen(choices->word) == len && strncmp(choices->word, text, len) == 0)
            return choices->value;
    return -1;
}

static bool whole_number(const char *text, long least, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most;
}

static bool refuse(char option, const char *text, const char *wanted)
{
    complain_once("-%c %s: %s; -h lists the options", option, text, wanted);
    return false;
}

static bool number_within(char option, const char *text, long least, long most, long *number)
{
    if (whole_number(text, least, most, number))
        return true;
    complain_once("-%c %s: a number from %ld to %ld is wanted", option, text, least, most);
    return false;
}

static bool collectives_of(const char *text, unsigned *mask)
{
    *mask = 0;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        int row = collective_named(at, len);
        if (len == 3 && strncmp(at, "all", len) == 0)
            *mask = collectives_all();
        else if (row >= 0)
            *mask |= 1u << row;
        else if (len != 4 || strncmp(at, "none", len) != 0)
            return refuse('c', text, "there is no such collective");
        at += len;
        if (*at == '\0')
            return true;
    }
}

static bool mode_of(const char *text, unsigned *modes)
{
    static const struct choice choices[] = {
        {"basic", MODE_BASIC},
        {"complex", MODE_COMPLEX},
        {"perf", MODE_PERF},
        {"all", MODE_BASIC | MODE_COMPLEX | MODE_PERF},
        {NULL, 0},
    };
    int mode = chosen(choices, text, strlen(text));
    if (mode < 0)
        return refuse('m', text, "basic, complex, perf or all is wanted");
    *modes = (unsigned)mode;
    return true;
}

static bool mem_types_of(const char *text, struct options *options)
{
    static const struct choice choices[] = {{"host", SHARP_MEM_TYPE_HOST}, {"cuda", SHARP_MEM_TYPE_CUDA}, {NULL, 0}};
    size_t len = strcspn(text, ":");
    int send = chosen(choices, text, len), receive = send;

    if (text[len] == ':')
        receive = chosen(choices, text + len + 1, strlen(text + len + 1));
    if (send < 0 || receive < 0)
        return refuse('M', text, "host or cuda is wanted, or both with a colon between");
    options->send_mem_type = (enum sharp_data_memory_type)send;
    options->receive_mem_type = (enum sharp_data_memory_type)receive;
    return true;
}

/* The next power of two; K, M and G may follow the number. */
static bool size_of(const char *text, size_t len, size_t *size)
{
    static const size_t MOST = (size_t)1 << 40;
    char *end;
    unsigned long long number;

    if (len == 0 || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    number = strtoull(text, &end, 0);
    size_t unit = *end == 'K' || *end == 'k' ? 1u << 10 : *end == 'M' ? 1u << 20 : *end == 'G' ? 1u << 30 : 1;
    end += unit > 1;
    if (errno != 0 || end != text + len || number == 0 || number > MOST / unit)
        return false;
    for (*size = 1; *size < number * unit;)
        *size <<= 1;
    return true;
}

static bool sizes_of(const char *text, struct options *options)
{
    size_t len = strcspn(text, ":");
    bool has_min = text[len] == ':';
    const char *most = has_min ? text + len + 1 : text;

    if ((has_min && !size_of(text, len, &options->size_min)) || !size_of(most, strlen(most), &options->size_max))
        return refuse('s', text, "[MIN:]MAX is wanted, numbers of bytes");
    if (has_min && options->size_max < options->size_min)
        return refuse('s', text, "the largest size is below the smallest");
    if (options->size_max < options->size_min)
        options->size_min = options->size_max;
    options->has_size = true;
    return true;
}

static bool group_of(const char *text, struct group_choice *group)
{
    static const struct choice choices[] = {
        {"world", GROUP_WORLD},
        {"half", GROUP_HALF},
        {"split:ppn-comm", GROUP_PPN_COMM},
        {"split:ppn-jobs", GROUP_PPN_JOBS},
        {NULL, 0},
    };
    int type = chosen(choices, text, strlen(text));
    long splits = 0;

    if (type >= 0)
        group->type = (enum group_type)type;
    else if (strncmp(text, "split:", 6) == 0 && whole_number(text + 6, 1, 1 << 20, &splits))
        group->type = GROUP_SPLIT;
    else if (strncmp(text, "split-rev:", 10) == 0 && whole_number(text + 10, 1, 1 << 20, &splits))
        group->type = GROUP_SPLIT_REVERSED;
    else
        return refuse('t', text, "world, half, split:N, split-rev:N, split:ppn-comm or split:ppn-jobs is wanted");
    group->splits = (int)splits;
    return true;
}

static bool layout_of(const char *text, bool *is_list)
{
    static const struct choice choices[] = {{"contig", false}, {"iov", true}, {NULL, 0}};
    int layout = chosen(choices, text, strlen(text));
    if (layout < 0)
        return refuse('D', text, "contig or iov is wanted");
    *is_list = layout;
    return true;
}

static bool host_kind_of(const char *text, enum host_kind *kind)
{
    static const struct choice choices[] = {
        {"malloc", HOST_MALLOC}, {"hugetlb", HOST_HUGETLB}, {"hugethp", HOST_HUGETHP}, {NULL, 0}};
    int found = chosen(choices, text, strlen(text));
    if (found < 0)
        return refuse('H', text, "malloc, hugetlb or hugethp is wanted");
    *kind = (enum host_kind)found;
    return true;
}

static bool job_of(const char *text, struct options *options)
{
    char *end;
    errno = 0;
    options->job_id = strtoull(text, &end, 0);
    options->has_job_id = true;
    return (errno == 0 && end != text && *end == '\0') || refuse('j', text, "a number is wanted");
}

static bool take(int option, const char *text, struct options *options)
{
    long number = 0;
    bool good = true;

    switch (option) {
    case 'd': options->devices = text; break;
    case 'c': return collectives_of(text, &options->collectives);
    case 'm': return mode_of(text, &options->modes);
    case 'M': return mem_types_of(text, options);
    case 's': return sizes_of(text, options);
    case 'T':
        options->element = element_named(text);
        options->has_element = true;
        return options->element != NULL || refuse('T', text, "there is no such datatype");
    case 't':
        options->has_group = true;
        return group_of(text, &options->group);
    case 'D': return layout_of(text, &options->is_list);
    case 'C':
        good = number_within('C', text, 0, SHARP_COLL_DATA_MAX_IOV, &number);
        options->list_count = (unsigned)number;
        break;
    case 'i': return number_within('i', text, 1, 1L << 40, &options->iterations);
    case 'x': return number_within('x', text, 0, 1L << 40, &options->skips);
    case 'N':
        good = number_within('N', text, 1, NBC_COUNT_MAX, &number);
        options->nbc_count = (int)number;
        break;
    case 'r':
        good = number_within('r', text, -1, 1 << 20, &number);
        options->root = (int)number;
        break;
    case 'p': options->flat_ppn = true; break;
    case 'B': options->perf_with_barrier = true; break;
    case 'H': return host_kind_of(text, &options->host_kind);
    case 'j': return job_of(text, options);
    case 'J': options->json = true; break;
    case 'h': options->help = true; break;
    }
    return good;
}

static bool variable(const char *name, long most, long otherwise, long *number)
{
    const char *text = getenv(name);
    *number = otherwise;
    if (text == NULL || *text == '\0' || whole_number(text, 0, most, number))
        return true;
    complain_once("%s=%s: a number from 0 to %ld is wanted", name, text, most);
    return false;
}

static bool read_environment(struct options *options)
{
    long enabled, parallel, reduce_scatter, allgather, seconds;

    bool good = variable("ENABLE_SHARP_COLL", 1, 1, &enabled) && variable("SHARP_RUN_PPN_COMM_PARALLEL", 1, 0, &parallel)
        && variable("NUM_REDUCE_SCATTER_CHUNKS", NBC_COUNT_MAX, 0, &reduce_scatter)
        && variable("NUM_ALLGATHER_CHUNKS", NBC_COUNT_MAX, 0, &allgather) && variable("SLEEP", 1 << 20, 0, &seconds);
    if (!good)
        return false;
    options->through_mpi = enabled == 0;
    options->ppn_comm_parallel = parallel != 0;
    options->reduce_scatter_chunks = (unsigned)reduce_scatter;
    options->allgather_chunks = (unsigned)allgather;
    options->sleep_s = (unsigned)seconds;
    return true;
}

/* Checks that no two options are given that exclude each other. */
static bool fits(const struct options *options)
{
    bool has_cuda = options->send_mem_type == SHARP_MEM_TYPE_CUDA || options->receive_mem_type == SHARP_MEM_TYPE_CUDA;

    if (options->through_mpi && (options->is_list || has_cuda)) {
        complain_once("ENABLE_SHARP_COLL=0 has neither -D iov nor -M cuda");
        return false;
    }
    return true;
}

bool options_parse(int argc, char **argv, struct options *options)
{
    *options = (struct options){
        .devices = "",
        .modes = MODE_PERF,
        .size_min = 4,
        .size_max = 256,
        .element = element_named("int"),
        .list_count = 2,
        .iterations = 1000,
        .skips = 100,
        .nbc_count = NBC_COUNT_MAX,
        .root = -1,
    };
    options->collectives = 1u << collective_named("allreduce", 9) | 1u << collective_named("barrier", 7);
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1;) {
        if (option == '?' || option == ':') {
            complain_once("%s: %s; -h lists the options", argv[optind - 1],
                          option == ':' ? "a value is missing" : "there is no such option, or it takes no value");
            return false;
        }
        if (!take(option, optarg, options))
            return false;
    }
    if (optind < argc) {
        complain_once("%s: no argument is taken without an option; -h lists them", argv[optind]);
        return false;
    }
    return read_environment(options) && fits(options);
}
