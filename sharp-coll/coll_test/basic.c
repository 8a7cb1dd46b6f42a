/* SPDX-License-Identifier: Apache-2.0 */
#include "modes.h"

/* What a visit needs. */
struct sweep {
    const struct layer *layer;
    const struct options *options;
    const struct group *group;
    const struct collective *collective;
    struct tally *tally;
};

static void one(const struct sweep *sweep, const struct element *element, const struct element *tag, enum sharp_reduce_op op,
                size_t size)
{
    struct trial trial = {
        .work = {
            .kind = sweep->collective->kind,
            .element = element,
            .tag = tag,
            .op = op,
            .root = root_of(sweep->options, sweep->group),
            .chunks = 1,
        },
        .posts = sweep->collective->posts,
        .at_once = 1,
        .send = send_form(sweep->options),
        .receive = receive_form(sweep->options),
    };
    trial.work.count = count_of(size, work_stride(&trial.work));
    /* A window is one buffer. */
    if (kind_has_blocks(trial.work.kind))
        trial.send.count = trial.receive.count = 0;
    trial_run(sweep->layer, sweep->group, &trial, sweep->tally);
}

static void reduction(const struct element *element, const struct element *tag, enum sharp_reduce_op op, void *more)
{
    const struct sweep *sweep = more;

    one(sweep, element, tag, op, sweep->options->size_min);
    if (sweep->options->size_max > sweep->options->size_min)
        one(sweep, element, tag, op, sweep->options->size_max);
}

static void carried(const struct sweep *sweep)
{
    for (size_t size = sweep->options->size_min; size <= sweep->options->size_max; size *= 2)
        one(sweep, &elements[SHARP_DTYPE_UINT8], NULL, SHARP_OP_NULL, size);
}

void basic_run(const struct layer *layer, const struct options *options, const struct turn *turn, struct tally *tally)
{
    for (int row = 0; row < COLLECTIVES; row++) {
        const struct collective *collective = &collectives[row];
        struct sweep sweep = {layer, options, &turn->group, collective, tally};
        if (!(options->collectives >> row & 1) || !layer_has(layer, collective->kind))
            continue;
        if (collective->kind == KIND_BARRIER)
            trial_barrier(layer, &turn->group, collective->posts, turn->group.size - 1, tally);
        else if (kind_reduces(collective->kind))
            each_combination(layer, options, false, reduction, &sweep);
        else
            carried(&sweep);
    }
}
