/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives, by the names that they have in option -c.
 */
#ifndef COLL_TEST_COLLECTIVE_H
#define COLL_TEST_COLLECTIVE_H

#include "operation.h"

struct collective {
    const char *name;
    enum collective_kind kind;
    bool posts; /* whether it uses requests, many at once */
};

enum { COLLECTIVES = 9 };
extern const struct collective collectives[COLLECTIVES];

/* The row of the collective with this name, or -1. */
int collective_named(const char *name, size_t len);
/* A mask with all rows. */
unsigned collectives_all(void);

#endif
