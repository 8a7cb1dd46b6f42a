/* SPDX-License-Identifier: Apache-2.0
 *
 * What the launcher has told this process in its environment. That is all there is to know while
 * ranks cannot talk to each other yet.
 */
#ifndef TRIB_MPI_LAUNCHER_H
#define TRIB_MPI_LAUNCHER_H

#include <stdbool.h>

/* Which of the program's applications this process belongs to, counted from 1, or 0 if the launcher
 * does not tell, and how many there are: `mpirun -np 2 ./a : -np 2 ./b` has two. A launcher that
 * tells nothing about them counts as one that has started a single application. */
struct applications {
    int own, all;
};

struct applications launcher_applications(void);

/* Whether this process is the first rank of its application. Without a launcher it is. */
bool launcher_is_first_rank(void);

#endif
