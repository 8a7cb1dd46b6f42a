/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h - runs a test on several ranks of one job: processes forked from this one, which exchange
 * what trib_init needs over socket pairs.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tributary.h"

/* Ends the rank with a message if the condition does not hold. */
#define CHECK(condition)                                                                                            \
    do {                                                                                                            \
        if (!(condition)) {                                                                                         \
            fprintf(stderr, "%s:%d: rank %u: not so: %s; last error: %s\n", __FILE__, __LINE__, own_rank,           \
                    #condition, trib_last_error());                                                                 \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

#define RANKS_MAX 64

static uint32_t own_rank, own_size;
/* At rank 0 the ends of the sockets towards the others; elsewhere [0] leads to rank 0. */
static int lines[RANKS_MAX];

static int whole(int line, void *bytes, size_t len, int writes)
{
    char *at = (char *)bytes;
    while (len > 0) {
        ssize_t done = writes ? send(line, at, len, MSG_NOSIGNAL) : recv(line, at, len, 0);
        if (done <= 0)
            return 1;
        at += done;
        len -= (size_t)done;
    }
    return 0;
}

static int oob_gather(void *ctx, const void *sbuf, void *rbuf, size_t len)
{
    (void)ctx;
    if (own_rank != 0)
        return whole(lines[0], (void *)(uintptr_t)sbuf, len, 1);
    memcpy(rbuf, sbuf, len);
    for (uint32_t r = 1; r < own_size; r++)
        if (whole(lines[r], (char *)rbuf + r * len, len, 0))
            return 1;
    return 0;
}

static int oob_bcast(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    if (own_rank != 0)
        return whole(lines[0], buf, len, 0);
    for (uint32_t r = 1; r < own_size; r++)
        if (whole(lines[r], buf, len, 1))
            return 1;
    return 0;
}

static const trib_oob oob = {NULL, oob_gather, oob_bcast};

static trib_params rank_params(void)
{
    trib_params params;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.rank = own_rank;
    params.size = own_size;
    params.oob = &oob;
    return params;
}

/* Runs body on `size` ranks and returns 0 if it returns on all of them. */
static int on_ranks(uint32_t size, void (*body)(void))
{
    int pairs[RANKS_MAX][2];
    pid_t children[RANKS_MAX];
    int failed = 0;
    for (uint32_t r = 1; r < size; r++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[r]) != 0)
            return 1;
    own_size = size;
    for (uint32_t r = 0; r < size; r++) {
        children[r] = fork();
        if (children[r] < 0)
            return 1;
        if (children[r] == 0) {
            own_rank = r;
            for (uint32_t other = 1; other < size; other++) {
                if (r == 0)
                    lines[other] = pairs[other][0];
                else
                    close(pairs[other][0]);
                if (r == other)
                    lines[0] = pairs[other][1];
                else
                    close(pairs[other][1]);
            }
            /* With the alarm, a hang is a failure too. */
            alarm(120);
            body();
            exit(0);
        }
    }
    for (uint32_t r = 1; r < size; r++) {
        close(pairs[r][0]);
        close(pairs[r][1]);
    }
    for (uint32_t r = 0; r < size; r++) {
        int status = 0;
        if (waitpid(children[r], &status, 0) != children[r] || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "rank %u failed, wait status %d\n", r, status);
            failed = 1;
        }
    }
    return failed;
}

#endif
