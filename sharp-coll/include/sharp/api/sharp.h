/* SPDX-License-Identifier: Apache-2.0
 *
 * sharp.h - everything at once.
 */
#ifndef SHARP_H
#define SHARP_H

#include "sharp_coll.h"
#include "version.h"

#endif
