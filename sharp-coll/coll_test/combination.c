/* SPDX-License-Identifier: Apache-2.0
 *
 * What the modes have in common: which combinations exist, and what options mean in a group.
 */
#include "modes.h"

void each_combination(const struct layer *layer, const struct options *options, bool all_tags, combination_visitor *visit,
                      void *more)
{
    struct abilities abilities = layer->abilities();

    for (size_t type = 0; type < SHARP_DTYPE_NULL; type++) {
        const struct element *element = &elements[type];
        if (!(abilities.dtypes >> type & 1) || (options->has_element && element != options->element))
            continue;
        for (size_t code = 0; code < SHARP_OP_NULL; code++) {
            enum sharp_reduce_op op = (enum sharp_reduce_op)code;
            if (!(abilities.reduce_ops >> code & 1) || !operator_is_defined(op, element))
                continue;
            if (!operator_takes_pairs(op))
                visit(element, NULL, op, more);
            for (size_t tag = 0; tag < SHARP_DTYPE_NULL && operator_takes_pairs(op); tag++)
                if ((abilities.tag_dtypes >> tag & 1) && (all_tags || tag == SHARP_DTYPE_INT))
                    visit(element, &elements[tag], op, more);
        }
    }
}

bool layer_has(const struct layer *layer, enum collective_kind kind)
{
    return !kind_has_blocks(kind) || layer->abilities().has_blocks;
}

int root_of(const struct options *options, const struct group *group)
{
    return options->root >= 0 && options->root < group->size ? options->root : group->size - 1;
}

size_t count_of(size_t size, size_t stride)
{
    return size > stride ? size / stride : 1;
}

static struct message_form form(const struct options *options, enum sharp_data_memory_type mem_type)
{
    return (struct message_form){
        .mem_type = mem_type,
        .kind = options->host_kind,
        .count = options->is_list ? options->list_count : 0,
        .is_registered = true,
    };
}

struct message_form send_form(const struct options *options)
{
    return form(options, options->send_mem_type);
}

struct message_form receive_form(const struct options *options)
{
    return form(options, options->receive_mem_type);
}
