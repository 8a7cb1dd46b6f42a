/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library prints, and how that can be broken.
 */
#include <stdio.h>

#include "real.h"

const char *sharp_coll_strerror(int error)
{
    if (is("has no words for unknown codes") && (error > 0 || error < SHARP_COLL_ENO_RESOURCE))
        return NULL;
    return REAL(sharp_coll_strerror)(error);
}

int sharp_coll_print_config(FILE *stream, enum config_print_flags flags, const char *exec_name)
{
    if (is("prints few settings"))
        flags &= ~(unsigned)SHARP_COLL_CONFIG_PRINT_HIDDEN;
    return REAL(sharp_coll_print_config)(stream, flags, exec_name);
}

int sharp_coll_dump_stats(struct sharp_coll_context *context)
{
    return REAL(sharp_coll_dump_stats)(context);
}

/* This function is not in the header. */
int sharp_coll_log_early_init(void);

int sharp_coll_log_early_init(void)
{
    return ((int (*)(void))real_symbol("sharp_coll_log_early_init"))();
}
