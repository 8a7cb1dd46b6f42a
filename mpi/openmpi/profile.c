/* SPDX-License-Identifier: Apache-2.0 */
#include "module.h"

#include "job.h"
#include "members.h"
#include "notice.h"
#include "profile.h"
#include "runtime.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A call takes 24 bytes. Calls beyond these are counted and timed, but not split. */
#define MOST_CALLS (UINT64_C(4) << 20)
/* So many values are exchanged at a time. */
#define CHUNK (UINT64_C(1) << 17)

struct call_times {
    uint64_t begun, ended; /* nanoseconds of report_clock() */
    uint32_t collective, doer;
};

struct track {
    uint64_t hash; /* of its number and members, which a later one may have again */
    uint64_t key;  /* the same on all members of the communicator, and no other's */
    uint64_t size;
    struct call_times *calls; /* in the order of all members */
    uint64_t count, room;
    uint64_t first; /* the number of the first call among all communicators' */
    uint64_t split; /* how many of its calls all members have noted */
    struct track *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct track *tracks;
static _Atomic uint64_t noted;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(MPI_Comm comm, uint64_t number)
{
    uint32_t *ranks = members_read(comm, job.world), size = (uint32_t)runtime_size(comm);
    uint64_t hash = mix(mix(UINT64_C(0x2545f4914f6cdd1d), number), size); /* from 0 small ones collide */

    for (uint32_t i = 0; ranks != NULL && i < size; i++)
        hash = mix(hash, ranks[i]);
    free(ranks);
    return hash;
}

struct track *profile_track(MPI_Comm comm, uint64_t number)
{
    struct track *track;
    uint64_t earlier = 0;

    if (!job_is_own() || !job.config.profile || !members_are_in(comm, job.world))
        return NULL;
    track = calloc(1, sizeof *track);
    if (track == NULL)
        return NULL;
    track->hash = hash_of(comm, number);
    track->size = (uint64_t)runtime_size(comm);
    pthread_mutex_lock(&lock);
    /* The MPI gives numbers again. All members have made the earlier communicators, too. */
    for (const struct track *each = tracks; each != NULL; each = each->next)
        earlier += each->hash == track->hash;
    track->key = mix(track->hash, earlier);
    track->next = tracks;
    tracks = track;
    pthread_mutex_unlock(&lock);
    return track;
}

static bool has_room(struct track *track)
{
    if (track->count < track->room)
        return true;
    uint64_t room = track->room > 0 ? 2 * track->room : 16;
    struct call_times *more = realloc(track->calls, room * sizeof *more);
    if (more == NULL)
        return false;
    track->calls = more;
    track->room = room;
    return true;
}

/* Only the thread inside a blocking call on the communicator comes here, and MPI allows one. */
void profile_note(struct track *track, enum collective collective, enum doer doer, uint64_t begun, uint64_t ended)
{
    if (track == NULL || atomic_fetch_add_explicit(&noted, 1, memory_order_relaxed) >= MOST_CALLS || !has_room(track))
        return;
    track->calls[track->count++] = (struct call_times){begun, ended, (uint32_t)collective, (uint32_t)doer};
}

/* What ranks tell of a communicator. */
struct summary {
    uint64_t key, size, calls;
};

static int by_key(const void *left, const void *right)
{
    const struct summary *a = left, *b = right;

    return (a->key > b->key) - (a->key < b->key);
}

/* Of each communicator the calls that all its members have noted; none where a member has not noted
 * even the communicator. Returns how many communicators are left. */
static uint64_t merge(struct summary *all, uint64_t count)
{
    uint64_t merged = 0;

    qsort(all, count, sizeof *all, by_key);
    for (uint64_t first = 0, end; first < count; first = end) {
        struct summary one = all[first];
        for (end = first; end < count && all[end].key == one.key; end++)
            if (all[end].calls < one.calls)
                one.calls = all[end].calls;
        if (end - first == one.size && one.calls > 0)
            all[merged++] = one;
    }
    return merged;
}

static void summarize(struct summary *own, uint64_t room)
{
    memset(own, 0, room * sizeof *own);
    for (const struct track *track = tracks; track != NULL; track = track->next)
        *own++ = (struct summary){track->key, track->size, track->count};
}

/* Makes each number the largest that a rank has there. */
static void take_largest(uint64_t *numbers, int count)
{
    const mca_coll_base_comm_coll_t *mpi = &module_of_world->previous;

    (void)mpi->coll_allreduce(MPI_IN_PLACE, numbers, count, MPI_UINT64_T, MPI_MAX, job.world, mpi->coll_allreduce_module);
}

static bool all_have(const void *memory)
{
    return runtime_least(job.world, memory != NULL) != 0;
}

/* Gives each rank, in *all, the communicators and how many calls of each can be split. Returns
 * their number; 0 if there is no memory. */
static uint64_t agree(struct summary **all)
{
    uint64_t most = 0, count = 0;

    for (const struct track *track = tracks; track != NULL; track = track->next)
        most++;
    take_largest(&most, 1);
    struct summary *own = malloc((most + 1) * sizeof *own);
    *all = job.rank == 0 ? malloc((most + 1) * (uint64_t)job.size * sizeof **all) : own;
    if (most > 0 && most * sizeof *own <= INT_MAX && all_have(own != NULL ? *all : NULL)) {
        summarize(own, most);
        runtime_gather(job.world, own, *all, (int)(most * sizeof *own));
        if (job.rank == 0)
            count = merge(*all, most * (uint64_t)job.size);
        runtime_bcast(job.world, &count, sizeof count, 0);
        if (job.rank != 0)
            *all = malloc((count + 1) * sizeof **all);
        if (!all_have(*all) || count * sizeof **all > INT_MAX)
            count = 0;
        if (count > 0) /* Open MPI's inner broadcast divides by the length */
            runtime_bcast(job.world, *all, (int)(count * sizeof **all), 0);
    }
    if (*all != own)
        free(own);
    return count;
}

/* Returns how many calls there are of all communicators. */
static uint64_t number_calls(const struct summary *all, uint64_t count)
{
    uint64_t calls = 0;

    for (uint64_t i = 0; i < count; calls += all[i++].calls)
        for (struct track *track = tracks; track != NULL; track = track->next)
            if (track->key == all[i].key) {
                track->first = calls;
                track->split = all[i].calls;
            }
    return calls;
}

static uint64_t now(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* What is to be added to this rank's clock so that it can be compared with that of others. Ranks on
 * one kernel have one clock, also in a laboratory; others have those that the cluster's time
 * service keeps together, which are as good as that is. */
static uint64_t shift(void)
{
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    uint64_t kernel[2] = {0, UINT64_MAX};

    if (file != NULL) {
        if (fgets(boot, sizeof boot, file) != NULL)
            for (const char *at = boot; *at != '\0'; at++)
                kernel[0] = mix(kernel[0], (unsigned char)*at);
        fclose(file);
    }
    kernel[1] -= kernel[0];
    take_largest(kernel, 2);
    return kernel[0] == UINT64_MAX - kernel[1] ? 0 : now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
}

static void tell(const struct track *track, const uint64_t *last, uint64_t shifted)
{
    for (uint64_t i = 0; i < track->split; i++) {
        const struct call_times *call = &track->calls[i];
        uint64_t begun = call->begun + shifted, ended = call->ended + shifted;
        uint64_t until = last[track->first + i];
        if (until > ended)
            until = ended; /* a root need not wait for others, nor others for each other */
        report_split((enum collective)call->collective, (enum doer)call->doer, until - begun, ended - until);
    }
}

void profile_split(void)
{
    struct summary *all = NULL;

    if (!job.config.profile)
        return;
    uint64_t shifted = shift(), count = agree(&all);
    uint64_t calls = number_calls(all, count);
    uint64_t *last = calloc(calls + 1, sizeof *last); /* when the last member entered each call */
    if (all_have(last)) {
        for (const struct track *track = tracks; track != NULL; track = track->next)
            for (uint64_t i = 0; i < track->split; i++)
                last[track->first + i] = track->calls[i].begun + shifted;
        for (uint64_t done = 0; done < calls; done += CHUNK)
            take_largest(last + done, (int)(calls - done < CHUNK ? calls - done : CHUNK));
        for (const struct track *track = tracks; track != NULL; track = track->next)
            tell(track, last, shifted);
    } else if (job.rank == 0) {
        notice("TRIB_MPI_PROFILE: there is no memory to tell waiting from the rest");
    }
    free(last);
    free(all);
}
