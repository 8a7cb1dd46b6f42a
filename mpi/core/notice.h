/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines for people on stderr. Nothing is ever printed to stdout, which belongs to the program.
 */
#ifndef TRIB_MPI_NOTICE_H
#define TRIB_MPI_NOTICE_H

/* Writes one line with "tributary: " in front and a newline at the end. A single write keeps the
 * lines of ranks apart. */
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Waits until the launcher has read what this process has written to stderr, for at most a second:
 * a launcher that is told to end the program drops what it has not read. */
void notice_wait_until_read(void);

#endif
