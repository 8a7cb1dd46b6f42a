/* SPDX-License-Identifier: Apache-2.0 */
#include "leaving.h"

#include "job.h"
#include "report.h"

#include "opal/runtime/opal_progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct leaver {
    struct group *group;
    struct leaver *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct leaver *leavers;
static atomic_int count;
static bool is_registered;

/* Whether the making of the tree is over; then the group is free. */
static bool is_free(struct group *group)
{
    int done = 0;
    int status = trib_test(group->creation, &done);

    if (!done)
        return false;
    report_group(status == TRIB_OK ? GROUP_MADE : GROUP_REFUSED);
    if (status == TRIB_OK)
        report_group(GROUP_FREED);
    group_free(group);
    return true;
}

static int progress(void)
{
    int freed = 0;

    if (atomic_load_explicit(&count, memory_order_relaxed) == 0 || pthread_mutex_trylock(&lock) != 0)
        return 0;
    for (struct leaver **at = &leavers; *at != NULL;) {
        struct leaver *leaver = *at;
        if (!is_free(leaver->group)) {
            at = &leaver->next;
            continue;
        }
        *at = leaver->next;
        free(leaver);
        freed++;
    }
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&count, freed);
    return freed;
}

void leaving_free(struct group *group)
{
    struct leaver *leaver;

    if (group->creation == NULL) {
        group_free(group);
        return;
    }
    leaver = malloc(sizeof *leaver);
    if (leaver == NULL)
        job_end("there is no memory for a communicator that goes");
    leaver->group = group;
    pthread_mutex_lock(&lock);
    leaver->next = leavers;
    leavers = leaver;
    atomic_fetch_add(&count, 1);
    if (!is_registered)
        is_registered = opal_progress_register(progress) == OPAL_SUCCESS;
    pthread_mutex_unlock(&lock);
}

void leaving_await(void)
{
    while (atomic_load(&count) > 0 && job_usable())
        opal_progress();
    pthread_mutex_lock(&lock);
    if (is_registered)
        opal_progress_unregister(progress);
    is_registered = false;
    pthread_mutex_unlock(&lock);
}
