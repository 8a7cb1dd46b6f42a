/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines for people on stderr. Nothing is ever printed to stdout, which belongs to the program.
 */
#ifndef TRIB_MPI_NOTICE_H
#define TRIB_MPI_NOTICE_H

/* Writes one line with "tributary: " in front and a newline at the end. A single write keeps the
 * lines of ranks apart. */
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
