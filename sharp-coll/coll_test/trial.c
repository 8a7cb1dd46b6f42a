/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fail.h"

/* The largest number of complaints that one rank prints. */
enum { COMPLAINTS_MAX = 10 };

/* An operation under way, with its messages. */
struct exchange {
    struct work work;
    unsigned seed;
    struct message send, receive;
    void **requests; /* one for each chunk */
    unsigned requested;
};

static void *memory_for(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (memory == NULL) {
        complain("no memory for %zu times %zu bytes", count, size);
        end_all(EXIT_ENVIRONMENT);
    }
    return memory;
}

/* Describes the whole vector of a reduction. */
static struct vector vector_of(const struct exchange *exchange)
{
    const struct work *work = &exchange->work;
    size_t blocks = work->kind == KIND_REDUCE_SCATTER ? (size_t)work->size : 1;
    return (struct vector){
        .element = work->element,
        .tag = work->tag,
        .op = work->op,
        .count = work->count * blocks,
        .seed = exchange->seed,
        .ranks = work->size,
    };
}

static void own_input(const struct exchange *exchange, unsigned char *bytes)
{
    struct vector vector = vector_of(exchange);
    if (kind_reduces(exchange->work.kind))
        vector_input(&vector, exchange->work.rank, bytes);
    else
        plain_input(exchange->seed, exchange->work.rank, work_send_len(&exchange->work), bytes);
}

static struct exchange *exchange_make(const struct layer *layer, const struct trial *trial, const struct group *group,
                                      unsigned seed)
{
    struct exchange *exchange = memory_for(1, sizeof *exchange);
    struct work *work = &exchange->work;

    *work = trial->work;
    work->rank = group->rank;
    work->size = group->size;
    exchange->seed = seed;
    exchange->requests = memory_for(work->chunks, sizeof *exchange->requests);
    message_make(&exchange->receive, work_receive_len(work), &trial->receive, layer);
    if (work_has_send(work))
        message_make(&exchange->send, work_send_len(work), &trial->send, layer);
    size_t len = work_send_len(work);
    unsigned char *bytes = memory_for(len, 1);
    own_input(exchange, bytes);
    if (work_has_send(work))
        message_write(&exchange->send, 0, bytes, len);
    else if (work->kind != KIND_BCAST || work->rank == work->root)
        message_write(&exchange->receive, work_send_at(work), bytes, len);
    free(bytes);
    return exchange;
}

static void exchange_free(struct exchange *exchange)
{
    if (work_has_send(&exchange->work))
        message_free(&exchange->send);
    message_free(&exchange->receive);
    free(exchange->requests);
    free(exchange);
}

static void exchange_start(const struct layer *layer, const struct group *group, struct exchange *exchange, bool posts)
{
    struct operation operation;
    struct work *work = &exchange->work;

    for (unsigned chunk = 0; work_operation(work, chunk, &exchange->send, &exchange->receive, &operation); chunk++) {
        if (posts)
            exchange->requests[exchange->requested++] = layer->post(group->handle, &operation);
        else
            layer->run(group->handle, &operation);
    }
}

static void exchange_finish(const struct layer *layer, struct exchange *exchange, bool polls)
{
    for (unsigned chunk = 0; chunk < exchange->requested; chunk++)
        layer->finish(exchange->requests[chunk], polls);
}

/* What the receiving message must hold; false if it must be as it was. */
static bool expected(const struct exchange *exchange, unsigned char *bytes)
{
    const struct work *work = &exchange->work;
    struct vector vector = vector_of(exchange);
    size_t block = work_receive_len(work);

    switch (work->kind) {
    case KIND_BCAST:
        plain_input(exchange->seed, work->root, block, bytes);
        return true;
    case KIND_ALLGATHER:
        block = work_send_len(work);
        for (int rank = 0; rank < work->size; rank++)
            plain_input(exchange->seed, rank, block, bytes + block * (size_t)rank);
        return true;
    case KIND_REDUCE_SCATTER:
        vector.first = work->count * (size_t)work->rank;
        vector.count = work->count;
        break;
    case KIND_REDUCE:
        if (work->rank != work->root) {
            if (work->is_in_place)
                own_input(exchange, bytes);
            return work->is_in_place;
        }
        break;
    default: break;
    }
    vector_result(&vector, bytes);
    return true;
}

static void describe(const struct exchange *exchange, const struct trial *trial, char *text, size_t room)
{
    static const char *const names[] = {"allreduce", "reduce", "barrier", "bcast", "reduce_scatter", "allgather"};
    const struct work *work = &exchange->work;
    int len = snprintf(text, room, "rank %d of %d: %s%s", work->rank, work->size, trial->posts ? "posted " : "", names[work->kind]);

    if (kind_reduces(work->kind))
        len += snprintf(text + len, room - (size_t)len, " %s of %s%s%s", operator_names[work->op], work->element->name,
                        work->tag ? "+" : "", work->tag ? work->tag->name : "");
    snprintf(text + len, room - (size_t)len, ", %zu bytes%s, root %d, pieces %u to %u, chunks %u", work_receive_len(work),
             work->is_in_place ? " in place" : "", work->root, trial->send.count, trial->receive.count, work->chunks);
}

static bool wrong(const struct exchange *exchange, const struct trial *trial, const char *what)
{
    static int complaints;
    char text[256];

    if (complaints++ < COMPLAINTS_MAX) {
        describe(exchange, trial, text, sizeof text);
        complain("%s: %s", text, what);
    }
    return false;
}

static bool wrong_byte(const struct exchange *exchange, const struct trial *trial, size_t at, int is, int should)
{
    char what[128];
    snprintf(what, sizeof what, "byte %zu (element %zu) is 0x%02x, not 0x%02x", at, at / work_stride(&exchange->work), is, should);
    return wrong(exchange, trial, what);
}

static bool input_is_kept(struct exchange *exchange, unsigned char *is, unsigned char *should)
{
    if (!work_has_send(&exchange->work))
        return true;
    own_input(exchange, should);
    message_read(&exchange->send, is);
    return memcmp(is, should, work_send_len(&exchange->work)) == 0;
}

static bool compare(struct exchange *exchange, const struct trial *trial, unsigned char *is, unsigned char *should)
{
    size_t len = work_receive_len(&exchange->work);

    if (!expected(exchange, should))
        return message_is_untouched(&exchange->receive, true) || wrong(exchange, trial, "a rank that gets nothing has got something");
    message_read(&exchange->receive, is);
    for (size_t at = 0; at < len; at++)
        if (is[at] != should[at])
            return wrong_byte(exchange, trial, at, is[at], should[at]);
    if (!message_is_untouched(&exchange->receive, false))
        return wrong(exchange, trial, "bytes beside the result were written");
    return input_is_kept(exchange, is, should) || wrong(exchange, trial, "the input was changed");
}

static bool exchange_is_right(struct exchange *exchange, const struct trial *trial)
{
    size_t receive = work_receive_len(&exchange->work), send = work_send_len(&exchange->work);
    size_t room = receive > send ? receive : send;
    unsigned char *is = memory_for(room, 1), *should = memory_for(room, 1);
    bool right = compare(exchange, trial, is, should);

    free(is);
    free(should);
    return right;
}

static void settle(const struct layer *layer, struct exchange **exchanges, int count, const struct trial *trial,
                   struct tally *tally)
{
    for (int at = 0; at < count; at++)
        exchange_finish(layer, exchanges[at], trial->polls);
    for (int at = 0; at < count; at++) {
        tally->trials++;
        tally->wrong += !exchange_is_right(exchanges[at], trial);
        exchange_free(exchanges[at]);
    }
}

void trial_run(const struct layer *layer, const struct group *group, const struct trial *trial, struct tally *tally)
{
    struct exchange *exchanges[NBC_COUNT_MAX];

    for (int at = 0; at < trial->at_once; at++)
        exchanges[at] = exchange_make(layer, trial, group, tally->seed++);
    for (int at = 0; at < trial->at_once; at++)
        exchange_start(layer, group, exchanges[at], trial->posts);
    settle(layer, exchanges, trial->at_once, trial, tally);
}

void trial_groups(const struct layer *layer, const struct group *groups, int count, const struct trial *trial,
                  struct tally *tally)
{
    struct exchange *exchanges[NBC_COUNT_MAX];

    for (int at = 0; at < count; at++)
        exchanges[at] = exchange_make(layer, trial, &groups[at], tally->seed++);
    for (int at = 0; at < count; at++) {
        int own = (at + groups[0].rank) % count;
        exchange_start(layer, &groups[own], exchanges[own], true);
    }
    settle(layer, exchanges, count, trial, tally);
}

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

void trial_barrier(const struct layer *layer, const struct group *group, bool posts, int late_rank, struct tally *tally)
{
    enum { LATE_MS = 20 };
    static const struct operation barrier = {.kind = KIND_BARRIER};
    struct timespec nap = {0, LATE_MS * 1000000};

    /* The second barrier ends after every rank's clock was read, and the late rank's nap begins
     * after that. So no correct barrier is over sooner, whichever rank the scheduler delays. The
     * first barrier keeps the time between them short, so that a wrong barrier shows. */
    MPI_Barrier(group->comm);
    double began = now_ms();
    MPI_Barrier(group->comm);
    if (group->rank == late_rank)
        nanosleep(&nap, NULL);
    if (posts)
        layer->finish(layer->post(group->handle, &barrier), late_rank % 2);
    else
        layer->run(group->handle, &barrier);
    double took = now_ms() - began;
    tally->trials++;
    /* The clocks of two hosts do not run equally fast. */
    if (took < LATE_MS - 1) {
        tally->wrong++;
        complain("rank %d of %d: %sbarrier: left after %.1f ms, when rank %d had not come", group->rank, group->size,
                 posts ? "posted " : "", took, late_rank);
    }
}
