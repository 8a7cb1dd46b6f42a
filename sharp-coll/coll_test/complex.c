/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of all choices is too large. So for every type and operator the rest is drawn by a
 * number that all ranks count alike.
 */
#include "modes.h"

struct sweep {
    const struct layer *layer;
    const struct options *options;
    const struct group *group;
    const struct collective *collective;
    uint64_t drawn;
    struct tally *tally;
};

/* Draws a number below the bound; it is the same at all ranks. */
static unsigned draw(struct sweep *sweep, unsigned bound)
{
    sweep->drawn = sweep->drawn * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(sweep->drawn >> 33) % bound;
}

static unsigned draw_pieces(struct sweep *sweep)
{
    static const unsigned counts[] = {0, 1, 2, 3, SHARP_COLL_DATA_MAX_IOV};

    if (!sweep->layer->abilities().has_lists || kind_has_blocks(sweep->collective->kind))
        return 0;
    return sweep->options->is_list ? sweep->options->list_count : counts[draw(sweep, 5)];
}

static unsigned draw_chunks(struct sweep *sweep)
{
    enum collective_kind kind = sweep->collective->kind;
    unsigned size = (unsigned)sweep->group->size, counts[] = {1, 2, 3, size, 2 * size};
    unsigned given = kind == KIND_ALLGATHER ? sweep->options->allgather_chunks : sweep->options->reduce_scatter_chunks;

    if (!kind_has_blocks(kind))
        return 1;
    return given > 0 ? given : counts[draw(sweep, 5)];
}

/* The form without a name of its own is tested, too: requests under the names of blocking
 * collectives. */
static struct trial drawn_trial(struct sweep *sweep, const struct element *element, const struct element *tag,
                                enum sharp_reduce_op op)
{
    static const int at_once[] = {1, 2, 5};
    enum collective_kind kind = sweep->collective->kind;
    bool has_own_name = kind == KIND_ALLREDUCE || kind == KIND_REDUCE;
    struct trial trial = {
        .work = {.kind = kind, .element = element, .tag = tag, .op = op, .chunks = draw_chunks(sweep)},
        .send = send_form(sweep->options),
        .receive = receive_form(sweep->options),
    };

    trial.posts = has_own_name ? sweep->collective->posts : draw(sweep, 2);
    trial.at_once = trial.posts ? at_once[draw(sweep, 3)] : 1;
    trial.polls = draw(sweep, 2);
    trial.work.root = sweep->options->root >= 0 ? root_of(sweep->options, sweep->group)
                                                : (int)draw(sweep, (unsigned)sweep->group->size);
    /* In place there is one memory. A reduce-scatter has no such form. */
    trial.work.is_in_place = draw(sweep, 2) && kind != KIND_REDUCE_SCATTER && kind != KIND_BCAST
        && trial.send.mem_type == trial.receive.mem_type;
    trial.send.count = draw_pieces(sweep);
    trial.receive.count = draw_pieces(sweep);
    trial.send.is_registered = draw(sweep, 2) || trial.send.mem_type == SHARP_MEM_TYPE_CUDA;
    trial.receive.is_registered = draw(sweep, 2) || trial.receive.mem_type == SHARP_MEM_TYPE_CUDA;
    return trial;
}

static void run_with(struct sweep *sweep, struct trial *trial, size_t count)
{
    trial->work.count = count;
    trial_run(sweep->layer, sweep->group, trial, sweep->tally);
}

/* Tries one of the sizes and one that is no power of two; of pairs, which come with every tag,
   only the second. */
static void some_sizes(struct sweep *sweep, const struct element *element, const struct element *tag, enum sharp_reduce_op op)
{
    unsigned sizes = 0;
    for (size_t size = sweep->options->size_min; size < sweep->options->size_max; size *= 2)
        sizes++;
    for (unsigned odd = tag != NULL; odd < 2; odd++) {
        struct trial trial = drawn_trial(sweep, element, tag, op);
        size_t count = count_of(sweep->options->size_min << draw(sweep, sizes + 1), work_stride(&trial.work));
        run_with(sweep, &trial, odd && count > 1 ? count - 1 : count);
    }
}

static void reduction(const struct element *element, const struct element *tag, enum sharp_reduce_op op, void *more)
{
    some_sizes(more, element, tag, op);
}

static void long_messages(struct sweep *sweep, const struct element *element)
{
    static const size_t sizes[] = {4096, 65536, 262144};
    for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        struct trial trial = drawn_trial(sweep, element, NULL, SHARP_OP_SUM);
        run_with(sweep, &trial, count_of(sizes[at], element->size) + 1);
    }
}

static void many_at_once(struct sweep *sweep, const struct element *element)
{
    struct trial trial = drawn_trial(sweep, element, NULL, SHARP_OP_SUM);
    trial.posts = true;
    trial.at_once = sweep->options->nbc_count;
    run_with(sweep, &trial, 3);
}

static void many_groups(struct sweep *sweep, const struct element *element)
{
    enum { GROUPS = 6 };
    struct group groups[GROUPS];
    struct trial trial = drawn_trial(sweep, element, NULL, SHARP_OP_SUM);

    for (int at = 0; at < GROUPS; at++)
        groups[at] = group_again(sweep->layer, sweep->group);
    trial.work.count = 16;
    /* Each rank posts to the groups in another order; the MPI accepts that as well. */
    trial_groups(sweep->layer, groups, GROUPS, &trial, sweep->tally);
    for (int at = 0; at < GROUPS; at++)
        group_free(sweep->layer, &groups[(at * 5 + 2) % GROUPS]);
}

static void every_rank_late(struct sweep *sweep)
{
    for (int rank = 0; rank < sweep->group->size; rank++)
        trial_barrier(sweep->layer, sweep->group, sweep->collective->posts, rank, sweep->tally);
}

void complex_run(const struct layer *layer, const struct options *options, const struct turn *turn, bool whole,
                 struct tally *tally)
{
    for (int row = 0; row < COLLECTIVES; row++) {
        const struct collective *collective = &collectives[row];
        struct sweep sweep = {layer, options, &turn->group, collective, (uint64_t)row + 1, tally};
        if (!(options->collectives >> row & 1) || !layer_has(layer, collective->kind))
            continue;
        if (collective->kind == KIND_BARRIER) {
            every_rank_late(&sweep);
            continue;
        }
        const struct element *element = options->has_element ? options->element : &elements[SHARP_DTYPE_INT];
        if (kind_reduces(collective->kind))
            each_combination(layer, options, whole, reduction, &sweep);
        else
            for (int times = 0; times < 8; times++)
                some_sizes(&sweep, times % 2 ? element : &elements[SHARP_DTYPE_UINT8], NULL, SHARP_OP_NULL);
        if (whole && !options->has_size)
            long_messages(&sweep, element);
        many_groups(&sweep, element);
        if (collective->posts)
            many_at_once(&sweep, element);
    }
}
