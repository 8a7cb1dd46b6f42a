/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include "recovery.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *newest, *oldest;
static size_t buried, kept_bytes;

void registry_lock(void)
{
    pthread_mutex_lock(&lock);
}

bool registry_trylock(void)
{
    return pthread_mutex_trylock(&lock) == 0;
}

void registry_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void link_first(struct group *group)
{
    group->newer = NULL;
    group->older = newest;
    *(newest != NULL ? &newest->newer : &oldest) = group;
    newest = group;
}

static void take_out(struct group *group)
{
    *(group->newer != NULL ? &group->newer->older : &newest) = group->older;
    *(group->older != NULL ? &group->older->newer : &oldest) = group->newer;
}

void registry_drop_kept(struct group *group)
{
    kept_bytes -= group->kept.capacity;
    free(group->kept.data);
    group->kept.data = NULL;
    group->kept.capacity = 0;
    group->kept.held = false;
}

void registry_add(struct group *group)
{
    link_first(group);
}

struct group *registry_find(uint64_t id)
{
    struct group *group = newest;

    while (group != NULL && group->id != id)
        group = group->older;
    return group;
}

void registry_remove_and_free(struct group *group)
{
    take_out(group);
    if (group->buried)
        buried--;
    registry_drop_kept(group);
    recovery_free(group->recovery);
    members_free(&group->members);
    free(group);
}

void registry_bury(struct group *group)
{
    take_out(group);
    link_first(group);
    group->buried = true;
    buried++;
    for (struct group *old = oldest, *next; old != NULL && buried > REGISTRY_BURIED; old = next) {
        next = old->newer;
        if (old->buried && !recovery_undecided(old))
            registry_remove_and_free(old);
    }
}

/* Makes room for bytes in group->kept; false when memory is short. */
static bool reserve(struct group *group, size_t bytes)
{
    if (group->kept.capacity >= bytes)
        return true;
    registry_drop_kept(group);
    for (struct group *old = oldest; old != NULL && kept_bytes + bytes > REGISTRY_KEPT_BYTES; old = old->newer)
        if (old->recovery == NULL)
            registry_drop_kept(old);
    group->kept.data = malloc(bytes);
    if (group->kept.data == NULL)
        return false;
    group->kept.capacity = bytes;
    kept_bytes += bytes;
    return true;
}

void registry_keep(struct group *group, enum collective collective, int root, const void *data, size_t bytes, size_t limit)
{
    struct kept *kept = &group->kept;

    if (newest != group) {
        take_out(group);
        link_first(group);
    }
    kept->collective = collective;
    kept->root = root;
    kept->bytes = bytes;
    kept->held = data != NULL && bytes <= limit && reserve(group, bytes);
    if (kept->held)
        memcpy(kept->data, data, bytes);
}

bool registry_any_unsettled(void)
{
    for (const struct group *group = newest; group != NULL; group = group->older)
        if (recovery_undecided(group) || (group->recovery == NULL && group->tree != NULL && trib_group_status(group->tree) != TRIB_OK))
            return true;
    return false;
}

struct group *registry_any_alive(void)
{
    struct group *group = newest;

    while (group != NULL && group->buried)
        group = group->older;
    return group;
}
