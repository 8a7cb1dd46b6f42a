/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program says on stdout: tables and verdicts, or with --json an object per line.
 */
#ifndef COLL_TEST_REPORT_H
#define COLL_TEST_REPORT_H

#include "collective.h"
#include "trial.h"

struct figures {
    size_t bytes;
    int at_once;
    /* One operation: the fastest rank's mean, all ranks', the slowest one's. */
    double least_us, mean_us, most_us;
};

/* The first rank that takes part speaks. */
void report_title(const struct layer *layer, const struct options *options, const struct turn *turn,
                  const struct collective *collective);
void report_row(const struct layer *layer, const struct options *options, const struct turn *turn,
                const struct collective *collective, const struct figures *figures);
/* Of all ranks; true if nothing was wrong. */
bool report_verdict(const struct layer *layer, const struct options *options, const char *mode, const struct tally *own);

#endif
