/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives by the names that option -c has.
 */
#ifndef COLL_TEST_COLLECTIVE_H
#define COLL_TEST_COLLECTIVE_H

#include "operation.h"

struct collective {
    const char *name;
    enum collective_kind kind;
    bool posts; /* by requests, many at once */
};

enum { COLLECTIVES = 9 };
extern const struct collective collectives[COLLECTIVES];

/* Its row, or -1. */
int collective_named(const char *name, size_t len);
/* A mask with all rows. */
unsigned collectives_all(void);

#endif
