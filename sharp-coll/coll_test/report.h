/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program prints on stdout: tables and verdicts, or with --json one object per line.
 */
#ifndef COLL_TEST_REPORT_H
#define COLL_TEST_REPORT_H

#include "collective.h"
#include "trial.h"

struct figures {
    size_t bytes;
    int at_once;
    /* The time of one operation: the fastest rank's mean, the mean over all ranks, and the
     * slowest rank's. */
    double least_us, mean_us, most_us;
};

/* The title is printed by the first rank that takes part. */
void report_title(const struct layer *layer, const struct options *options, const struct turn *turn,
                  const struct collective *collective);
void report_row(const struct layer *layer, const struct options *options, const struct turn *turn,
                const struct collective *collective, const struct figures *figures);
/* Prints the verdict of all ranks; returns true if nothing was wrong. */
bool report_verdict(const struct layer *layer, const struct options *options, const char *mode, const struct tally *own);

#endif
