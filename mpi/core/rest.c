/* SPDX-License-Identifier: Apache-2.0 */
#include "rest.h"

#include <sched.h>
#include <time.h>

/* Where each rank has a core, the others are there after a few looks. */
#define LOOKS 20
/* A pause may come on top of each message on a meeting's way through the ranks, so it is short
 * beside the milliseconds that a meeting takes where they share cores. */
#define PAUSE_MIN_NS 50000
#define PAUSE_MAX_NS 400000

struct rest rest_begin(void)
{
    return (struct rest){.looks = 0, .pause_ns = PAUSE_MIN_NS};
}

void rest_pause(struct rest *rest)
{
    struct timespec pause = {.tv_nsec = rest->pause_ns};

    if (rest->looks < LOOKS) {
        rest->looks++;
        sched_yield();
        return;
    }
    nanosleep(&pause, NULL);
    if (rest->pause_ns < PAUSE_MAX_NS)
        rest->pause_ns *= 2;
}
