/* SPDX-License-Identifier: Apache-2.0 */
#include "cell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const COLLECTIVE_NAMES[COLLECTIVES] = {"barrier", "allreduce", "reduce", "bcast", "reduce_scatter", "allgather"};
const char *const MODE_NAMES[MODES] = {"sustained", "single", "flight"};

static int position(const char *name, size_t length, const char *const *names, int count)
{
    for (int at = 0; at < count; at++)
        if (strlen(names[at]) == length && memcmp(names[at], name, length) == 0)
            return at;
    return -1;
}

static bool whole(const char *text, size_t length, long *value)
{
    char digits[24], *end;

    if (length == 0 || length >= sizeof digits || text[0] < '0' || text[0] > '9')
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    errno = 0;
    *value = strtol(digits, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Reads one word of the list, without its comma. */
static bool cell_read(struct cell *cell, const char *text, size_t length)
{
    const char *field[4];
    size_t size[4];
    int fields = 0;
    long bytes;

    for (const char *at = text; fields < 4; fields++) {
        const char *colon = memchr(at, ':', length - (size_t)(at - text));
        field[fields] = at;
        size[fields] = colon != NULL ? (size_t)(colon - at) : length - (size_t)(at - text);
        if (colon == NULL) {
            fields++;
            break;
        }
        at = colon + 1;
    }
    if (fields < 3)
        return false;
    int collective = position(field[0], size[0], COLLECTIVE_NAMES, COLLECTIVES);
    int mode = position(field[2], size[2], MODE_NAMES, MODES);
    cell->iterations = 0;
    if (collective < 0 || mode < 0 || !whole(field[1], size[1], &bytes))
        return false;
    if (fields == 4 && !whole(field[3], size[3], &cell->iterations))
        return false;
    cell->collective = (enum collective)collective;
    cell->mode = (enum mode)mode;
    cell->bytes = (size_t)bytes;
    return true;
}

static bool cells_read(struct options *options, const char *list)
{
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        struct cell *grown = realloc(options->cells, (options->cell_count + 1) * sizeof *grown);
        if (grown == NULL) {
            perror("collectives");
            return false;
        }
        options->cells = grown;
        if (!cell_read(&options->cells[options->cell_count], at, length)) {
            fprintf(stderr, "collectives: '%.*s' is not COLLECTIVE:BYTES:MODE[:ITERATIONS]\n", (int)length, at);
            return false;
        }
        options->cell_count++;
        at += length;
        if (*at == '\0')
            return true;
    }
}

bool options_read(struct options *options, int argc, char **argv)
{
    *options = (struct options){.budget = 0.25, .min_iterations = 4};
    for (int at = 1; at < argc; at++) {
        bool more = at + 1 < argc;
        if (strcmp(argv[at], "--gate") == 0) {
            options->gate = true;
        } else if (more && strcmp(argv[at], "--cells") == 0) {
            if (!cells_read(options, argv[++at]))
                return false;
        } else if (more && strcmp(argv[at], "--budget") == 0) {
            options->budget = atof(argv[++at]);
        } else if (more && strcmp(argv[at], "--min-iterations") == 0) {
            options->min_iterations = atol(argv[++at]);
        } else {
            fprintf(stderr, "collectives: '%s' is not understood\n", argv[at]);
            break;
        }
        if (at == argc - 1 && options->cell_count > 0 && options->min_iterations > 0)
            return true;
    }
    fprintf(stderr, "usage: collectives --cells COLLECTIVE:BYTES:MODE[:ITERATIONS],... [--budget SECONDS] "
                    "[--min-iterations N] [--gate]\n");
    return false;
}
