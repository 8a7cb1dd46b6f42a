/* SPDX-License-Identifier: Apache-2.0
 *
 * version.h - the edition of the libsharp_coll interface that this library follows. It is packed
 * into one number as (major << 24) | (minor << 16), so that the preprocessor can compare editions.
 */
#ifndef SHARP_VERSION_H
#define SHARP_VERSION_H

#define SHARP_VERNO_MAJOR 3
#define SHARP_VERNO_MINOR 7
#define SHARP_VERNO_REV "0"
#define SHARP_VERNO_STRING "3.7"

#define SHARP_MINOR_BIT 16UL
#define SHARP_MAJOR_BIT 24UL
#define SHARP_VERSION(major, minor) (((major) << SHARP_MAJOR_BIT) | ((minor) << SHARP_MINOR_BIT))
#define SHARP_API SHARP_VERSION(SHARP_VERNO_MAJOR, SHARP_VERNO_MINOR)

#endif
