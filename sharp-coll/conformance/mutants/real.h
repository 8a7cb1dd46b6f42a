/* SPDX-License-Identifier: Apache-2.0
 *
 * real.h - the library behind the broken one. SHARP_REAL is its path, SHARP_MUTANT the name of what
 * is broken.
 */
#ifndef REAL_H
#define REAL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sharp/api/sharp.h"

/* A function of the library behind this one. */
#define REAL(name) ((__typeof__(&(name)))real_symbol(#name))

void *real_symbol(const char *name);

/* Whether this is what is broken. */
int is(const char *mutant);

#endif
