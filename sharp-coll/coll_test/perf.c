/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "fail.h"
#include "modes.h"
#include "report.h"

/* The most memory that the buffers of requests under way at once may take. */
static const size_t BUFFERS_BYTES_MAX = (size_t)256 << 20;

/* What is measured: an operation, with messages of its own for each call that may be under way. */
struct course {
    const struct layer *layer;
    const struct options *options;
    const struct turn *turn;
    struct work work;
    bool posts;
    int at_once;
    struct message *sends, *receives;
    void **requests;
    long done; /* how many operations; the rotating root depends on it */
};

static unsigned chunks_of(const struct options *options, enum collective_kind kind)
{
    unsigned given = kind == KIND_REDUCE_SCATTER ? options->reduce_scatter_chunks
        : kind == KIND_ALLGATHER                 ? options->allgather_chunks
                                                 : 1;
    return given > 0 ? given : 1;
}

static struct operation operation_of(struct course *course, int slot, unsigned chunk, bool *is_there)
{
    struct operation operation;

    *is_there = work_operation(&course->work, chunk, &course->sends[slot], &course->receives[slot], &operation);
    if (course->work.kind == KIND_BCAST && course->options->root < 0)
        operation.root = (int)(course->done % course->work.size);
    return operation;
}

static void barrier(const struct course *course)
{
    static const struct operation operation = {.kind = KIND_BARRIER};
    if (course->options->perf_with_barrier)
        course->layer->run(course->turn->group.handle, &operation);
}

/* Runs a collective under its own name: one call, or all chunks under way at once. */
static void blocking(struct course *course)
{
    void *group = course->turn->group.handle;
    unsigned chunks = course->work.chunks, posted = 0;
    bool is_there;

    for (unsigned chunk = 0; chunk < chunks; chunk++) {
        struct operation operation = operation_of(course, 0, chunk, &is_there);
        if (!is_there)
            break;
        if (chunks > 1)
            course->requests[posted++] = course->layer->post(group, &operation);
        else
            course->layer->run(group, &operation);
    }
    for (unsigned chunk = 0; chunk < posted; chunk++)
        course->layer->finish(course->requests[chunk], false);
    course->done++;
}

static void batch(struct course *course, long count)
{
    bool is_there;

    for (long slot = 0; slot < count; slot++) {
        struct operation operation = operation_of(course, (int)slot, 0, &is_there);
        course->requests[slot] = course->layer->post(course->turn->group.handle, &operation);
    }
    for (long slot = 0; slot < count; slot++)
        course->layer->finish(course->requests[slot], false);
    course->done += count;
}

/* The seconds that so many operations took this rank. */
static double timed(struct course *course, long iterations)
{
    double sum = 0;

    for (long left = iterations; left > 0;) {
        long count = !course->posts ? 1 : left < course->at_once ? left : course->at_once;
        barrier(course);
        double began = MPI_Wtime();
        if (course->posts)
            batch(course, count);
        else
            blocking(course);
        sum += MPI_Wtime() - began;
        left -= count;
    }
    return sum;
}

static void *memory_for(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        complain("no memory for %zu requests", count);
        end_all(EXIT_ENVIRONMENT);
    }
    return memory;
}

static void prepare(struct course *course)
{
    struct message_form send = send_form(course->options), receive = receive_form(course->options);
    size_t lens = work_send_len(&course->work) + work_receive_len(&course->work), fit = lens ? BUFFERS_BYTES_MAX / lens : NBC_COUNT_MAX;

    if (kind_has_blocks(course->work.kind))
        send.count = receive.count = 0;
    course->at_once = !course->posts ? 1 : fit < 1 ? 1 : fit < (size_t)course->options->nbc_count ? (int)fit : course->options->nbc_count;
    course->sends = memory_for((size_t)course->at_once, sizeof *course->sends);
    course->receives = memory_for((size_t)course->at_once, sizeof *course->receives);
    course->requests = memory_for(course->posts ? (size_t)course->at_once : course->work.chunks, sizeof *course->requests);
    for (int slot = 0; slot < course->at_once; slot++) {
        message_make(&course->sends[slot], work_send_len(&course->work), &send, course->layer);
        message_make(&course->receives[slot], work_receive_len(&course->work), &receive, course->layer);
    }
}

static void release(struct course *course)
{
    for (int slot = 0; slot < course->at_once; slot++) {
        message_free(&course->sends[slot]);
        message_free(&course->receives[slot]);
    }
    free(course->sends);
    free(course->receives);
    free(course->requests);
}

/* How many elements one message or block has. */
static size_t elements_of(const struct course *course, const struct collective *collective, size_t size)
{
    size_t blocks = kind_has_blocks(collective->kind) ? (size_t)course->turn->group.size : 1;
    return count_of(size, course->options->element->size * blocks);
}

static struct figures measure(struct course *course, const struct collective *collective, size_t size)
{
    const struct turn *turn = course->turn;
    const struct options *options = course->options;
    size_t stride = options->element->size, blocks = kind_has_blocks(collective->kind) ? (size_t)turn->group.size : 1;
    int ranks;

    course->posts = collective->posts;
    course->work = (struct work){
        .kind = collective->kind,
        .element = options->element,
        .op = SHARP_OP_SUM,
        .count = elements_of(course, collective, size),
        .root = root_of(options, &turn->group),
        .chunks = chunks_of(options, collective->kind),
        .rank = turn->group.rank,
        .size = turn->group.size,
    };
    prepare(course);
    timed(course, options->skips);
    double mean = timed(course, options->iterations) / (double)options->iterations * 1e6, least, most, sum;
    MPI_Allreduce(&mean, &least, 1, MPI_DOUBLE, MPI_MIN, turn->active);
    MPI_Allreduce(&mean, &most, 1, MPI_DOUBLE, MPI_MAX, turn->active);
    MPI_Allreduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, turn->active);
    MPI_Comm_size(turn->active, &ranks);
    struct figures figures = {
        .bytes = collective->kind == KIND_BARRIER ? 0 : course->work.count * stride * blocks,
        .at_once = course->at_once,
        .least_us = least,
        .mean_us = sum / ranks,
        .most_us = most,
    };
    release(course);
    return figures;
}

void perf_run(const struct layer *layer, const struct options *options, const struct turn *turn)
{
    for (int row = 0; row < COLLECTIVES; row++) {
        const struct collective *collective = &collectives[row];
        struct course course = {.layer = layer, .options = options, .turn = turn};
        if (!(options->collectives >> row & 1) || !layer_has(layer, collective->kind))
            continue;
        report_title(layer, options, turn, collective);
        for (size_t size = options->size_min; size <= options->size_max; size *= 2) {
            /* Several sizes may amount to one element. */
            bool is_again = size > options->size_min
                && elements_of(&course, collective, size) == elements_of(&course, collective, size / 2);
            if (is_again)
                continue;
            struct figures figures = measure(&course, collective, size);
            report_row(layer, options, turn, collective, &figures);
            if (collective->kind == KIND_BARRIER)
                break;
        }
    }
}
