/* SPDX-License-Identifier: Apache-2.0
 *
 * All groups of this rank, the most recently used first. The registry leads from a message to its
 * group. It owns what is kept of completed operations, and the memory of groups that were freed a
 * moment ago, about which another rank may still ask.
 *
 * From a communicator a group is found through the communicator's attribute, never here.
 */
#ifndef TRIB_MPI_REGISTRY_H
#define TRIB_MPI_REGISTRY_H

#include "group.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The lock guards the registry, the mailbox, and all fields of a group except those that its
 * comment names. It is never held while a function of tributary.h waits, because that function may
 * call our progress callback. */
void registry_lock(void);
bool registry_trylock(void);
void registry_unlock(void);

/* The following functions are called with the lock held. */

void registry_add(struct group *group);
struct group *registry_find(uint64_t id);
void registry_remove_and_free(struct group *group);
/* Notes that the communicator was freed. The group can still be found until REGISTRY_BURIED younger
 * ones have followed it. */
void registry_bury(struct group *group);
/* Notes the operation that group just completed, and copies what another rank might miss. If data
 * is NULL, there is nothing to copy. */
void registry_keep(struct group *group, enum collective collective, int root, const void *data, size_t bytes, size_t limit);
/* Frees the copy. */
void registry_drop_kept(struct group *group);
/* Whether a group's tree has failed and its members have not yet agreed on how to go on. */
bool registry_any_unsettled(void);
/* Any group that is not buried, or NULL. */
struct group *registry_any_alive(void);

#define REGISTRY_BURIED 64
/* The limit for the copies of all groups together; the least recently used groups lose theirs
 * first. */
#define REGISTRY_KEPT_BYTES ((size_t)64 << 20)

#endif
