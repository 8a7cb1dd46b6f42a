/* SPDX-License-Identifier: Apache-2.0
 *
 * How the program ends. The codes are those of all tools of this project.
 */
#ifndef COLL_TEST_FAIL_H
#define COLL_TEST_FAIL_H

#include <stdbool.h>

enum {
    EXIT_GOOD = 0,
    EXIT_WRONG = 1,       /* a result is wrong, or a call failed */
    EXIT_USAGE = 2,       /* the command line asks for something that makes no sense */
    EXIT_ENVIRONMENT = 3, /* something outside is missing or out of reach */
};

/* Whether this is rank 0, as the launcher says before MPI_Init; without a launcher it is. */
bool is_first_rank(void);
/* Writes one line on stderr that names the program. If every rank finds the same, only rank 0
 * writes it. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);
__attribute__((format(printf, 1, 2))) void complain_once(const char *format, ...);

/* Ends all ranks, because the others would wait for the rank that alone has found something. */
__attribute__((noreturn)) void end_all(int code);

#endif
