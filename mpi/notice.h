/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines for people on stderr. Nothing ever goes to stdout, which is the program's.
 */
#ifndef TRIB_MPI_NOTICE_H
#define TRIB_MPI_NOTICE_H

/* One line, "tributary: " in front and the newline added, written in one piece so that lines of
 * ranks do not mix. */
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
