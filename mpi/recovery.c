/* SPDX-License-Identifier: Apache-2.0 */
#include "recovery.h"

#include "job.h"
#include "notice.h"
#include "progress.h"
#include "registry.h"
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one member told the first member. */
struct mark {
    bool given;
    uint64_t completed, bytes;
    enum collective collective;
    int root;
    bool held;
};

/* A result or an input that was sent to this rank. */
struct delivery {
    struct delivery *next;
    uint32_t sender;
    size_t bytes;
    void *data;
};

/* The agreement of one group, from the fence on. */
struct recovery {
    bool mark_sent;
    char cause[MESSAGE_CAUSE]; /* why this rank stopped; empty: it was asked to */

    struct mark *marks; /* first member only, one per member */
    uint32_t marks_given;
    char first_cause[MESSAGE_CAUSE]; /* of the first mark that names one */
    int first_rank;                  /* its world rank */

    bool decided;
    struct message decision;
    unsigned char *lacks; /* one byte per member */
    struct delivery *deliveries;
    uint32_t delivered;
};

static void *need_memory(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL)
        recovery_give_up("out of memory while agreeing on how to go on after a node failed");
    return memory;
}

static void send(struct group *group, uint32_t member, const struct message *message, const void *payload)
{
    if (!mailbox_send(members_world_rank(&group->members, member), message, payload))
        recovery_give_up("out of memory while agreeing on how to go on after a node failed");
}

static void send_to_others(struct group *group, const struct message *message, const void *payload)
{
    for (uint32_t member = 0; member < group->members.size; member++)
        if (member != group->rank)
            send(group, member, message, payload);
}

static struct message message_of(const struct group *group, enum message_kind kind)
{
    return (struct message){.group = group->id, .kind = kind, .sender = group->rank};
}

static void send_data(struct group *group, uint32_t member, const void *data, size_t bytes)
{
    struct message message = message_of(group, MESSAGE_DATA);

    message.payload = bytes;
    send(group, member, &message, data);
}

/* Whether a rank has reported a failure on its stderr. Only the first failure is reported there;
 * the report counts the others. The registry's lock guards it. */
static bool told;

/* Once the decision is known, a member that has what another one lacks sends it, in whatever call
 * it happens to be. */
static void send_what_others_lack(struct group *group)
{
    const struct recovery *recovery = group->recovery;
    const struct message *decision = &recovery->decision;
    const struct kept *kept = &group->kept;

    if (decision->collective == COLLECTIVE_ALLREDUCE && decision->held == group->rank) {
        for (uint32_t member = 0; member < group->members.size; member++)
            if (recovery->lacks[member])
                send_data(group, member, kept->data, kept->bytes);
    } else if (decision->collective == COLLECTIVE_REDUCE && recovery->lacks[decision->root] && !recovery->lacks[group->rank]) {
        send_data(group, (uint32_t)decision->root, kept->data, kept->bytes);
    }
    registry_drop_kept(group);
}

static void accept_decision(struct group *group, const struct message *decision, const unsigned char *lacks)
{
    struct recovery *recovery = group->recovery;

    if (recovery->decided)
        return;
    recovery->lacks = need_memory(group->members.size, 1);
    memcpy(recovery->lacks, lacks, group->members.size);
    recovery->decision = *decision;
    recovery->decided = true;
    told = true;
    send_what_others_lack(group);
}

/* Says the cause, and what follows from it. */
static void tell_failure(const struct group *group, const char *consequence)
{
    const struct recovery *recovery = group->recovery;

    if (told)
        return;
    notice("the tree of a communicator failed; rank %d saw: %s. %s; from here on its collectives are done by the MPI",
           recovery->first_rank, recovery->first_cause, consequence);
}

/* The first member that can give the others the last operation; members.size when none can. */
static uint32_t find_holder(const struct group *group, uint64_t reached)
{
    uint32_t member = 0;
    const struct mark *marks = group->recovery->marks;

    while (member < group->members.size && !(marks[member].completed == reached && marks[member].held))
        member++;
    return member;
}

static bool all_hold(const struct group *group, uint64_t reached)
{
    const struct mark *marks = group->recovery->marks;

    for (uint32_t member = 0; member < group->members.size; member++)
        if (marks[member].completed == reached && !marks[member].held)
            return false;
    return true;
}

/* For when no member has completed an operation that another one lacks. */
static void decide_to_repeat(struct group *group, struct message *decision, const unsigned char *lacks)
{
    decision->collective = COLLECTIVE_NONE;
    tell_failure(group, "No rank has the result of the operation that was running, so all repeat it");
    send_to_others(group, decision, lacks);
    accept_decision(group, decision, lacks);
}

/* For when some members have completed the last operation and some have not. */
static void decide_to_complete(struct group *group, struct message *decision, const unsigned char *lacks)
{
    const struct recovery *recovery = group->recovery;
    const struct mark *mark = recovery->marks;

    while (mark->completed != decision->completed)
        mark++;
    decision->collective = mark->collective;
    decision->root = mark->root;
    decision->bytes = mark->bytes;
    decision->held = find_holder(group, decision->completed);
    bool root_lacks = mark->collective == COLLECTIVE_REDUCE && lacks[mark->root];
    if ((mark->collective == COLLECTIVE_ALLREDUCE && decision->held == group->members.size) ||
        (root_lacks && !all_hold(group, decision->completed)))
        recovery_give_up("a node failed (rank %d saw: %s) when only some ranks had completed %s of %llu bytes, and those "
                         "keep no more than %llu bytes for the others; TRIB_MPI_KEEP_BYTES sets how many",
                         recovery->first_rank, recovery->first_cause, collective_name(mark->collective),
                         (unsigned long long)mark->bytes, (unsigned long long)job.config.keep_bytes);
    tell_failure(group, "Some ranks had completed the last operation and give the others what they lack");
    send_to_others(group, decision, lacks);
    accept_decision(group, decision, lacks);
}

static void decide(struct group *group)
{
    const struct recovery *recovery = group->recovery;
    uint32_t size = group->members.size;
    uint64_t reached = 0, least = UINT64_MAX;
    struct message decision = message_of(group, MESSAGE_DECISION);
    unsigned char *lacks = need_memory(size, 1);

    for (uint32_t member = 0; member < size; member++) {
        uint64_t completed = recovery->marks[member].completed;
        reached = completed > reached ? completed : reached;
        least = completed < least ? completed : least;
    }
    if (reached - least > 1)
        recovery_give_up("a node failed (rank %d saw: %s) and one rank is %llu operations ahead of another, which blocking "
                         "collectives cannot be; please report it",
                         recovery->first_rank, recovery->first_cause, (unsigned long long)(reached - least));
    for (uint32_t member = 0; member < size; member++)
        lacks[member] = recovery->marks[member].completed < reached;
    decision.completed = reached;
    decision.payload = size;
    if (reached == least)
        decide_to_repeat(group, &decision, lacks);
    else
        decide_to_complete(group, &decision, lacks);
    free(lacks);
}

static void take_mark(struct group *group, const struct message *message)
{
    struct recovery *recovery = group->recovery;
    struct mark *mark = &recovery->marks[message->sender];

    if (mark->given)
        return;
    *mark = (struct mark){
        .given = true,
        .completed = message->completed,
        .bytes = message->bytes,
        .collective = (enum collective)message->collective,
        .root = message->root,
        .held = message->held != 0,
    };
    if (message->cause[0] != '\0' && recovery->first_cause[0] == '\0') {
        recovery->first_rank = members_world_rank(&group->members, message->sender);
        memcpy(recovery->first_cause, message->cause, sizeof recovery->first_cause);
    }
    if (++recovery->marks_given == group->members.size)
        decide(group);
}

static void give_mark(struct group *group)
{
    struct recovery *recovery = group->recovery;
    const struct kept *kept = &group->kept;
    struct message mark = message_of(group, MESSAGE_MARK);

    if (recovery->mark_sent)
        return;
    recovery->mark_sent = true;
    mark.completed = group->completed;
    mark.bytes = kept->bytes;
    mark.collective = kept->collective;
    mark.root = kept->root;
    mark.held = kept->held;
    memcpy(mark.cause, recovery->cause, sizeof mark.cause);
    if (group->rank == 0)
        take_mark(group, &mark);
    else
        send(group, 0, &mark, NULL);
}

/* From here on this rank starts nothing through the group's tree. It sends its mark when no
 * operation is running. */
static void fence(struct group *group)
{
    if (group->recovery == NULL) {
        group->recovery = need_memory(1, sizeof *group->recovery);
        report_group(GROUP_BROKEN);
        if (group->rank == 0) {
            struct message query = message_of(group, MESSAGE_QUERY);
            group->recovery->marks = need_memory(group->members.size, sizeof *group->recovery->marks);
            send_to_others(group, &query, NULL);
        }
    }
    if (!group->in_operation)
        give_mark(group);
}

static void take_delivery(struct group *group, const struct message *message, void *payload)
{
    struct delivery *delivery = need_memory(1, sizeof *delivery);

    *delivery = (struct delivery){group->recovery->deliveries, message->sender, message->payload, payload};
    group->recovery->deliveries = delivery;
    group->recovery->delivered++;
}

void recovery_handle(const struct message *message, void *payload)
{
    struct group *group = registry_find(message->group);

    /* The group was freed long ago. The rank that asks will name this one when its time is up. */
    if (group == NULL || message->sender >= group->members.size) {
        free(payload);
        return;
    }
    fence(group);
    if (group->in_operation && group->tree != NULL)
        /* This ends the operation, which might wait much longer by itself. The mark follows. */
        trib_group_leave(group->tree);
    switch ((enum message_kind)message->kind) {
    case MESSAGE_QUERY:
        break;
    case MESSAGE_MARK:
        take_mark(group, message);
        break;
    case MESSAGE_DECISION:
        accept_decision(group, message, payload);
        break;
    case MESSAGE_DATA:
        take_delivery(group, message, payload);
        return;
    }
    free(payload);
}

bool recovery_begin(struct group *group)
{
    registry_lock();
    mailbox_poll(recovery_handle);
    group->in_operation = group->recovery == NULL;
    bool works = group->in_operation;
    registry_unlock();
    return works;
}

bool recovery_is_asked_for(const struct group *group)
{
    registry_lock();
    bool asked = group->recovery != NULL;
    registry_unlock();
    return asked;
}

/* The outcome of the operation is known, so the mark can be sent if it was asked for meanwhile. */
static void end(struct group *group)
{
    group->in_operation = false;
    if (group->recovery != NULL)
        give_mark(group);
}

/* What a member that misses this operation would need from this rank: the result of an allreduce,
 * or the input to a reduce. */
static const void *needed_by_others(const struct group *group, const struct operation *operation)
{
    if (operation->collective == COLLECTIVE_ALLREDUCE)
        return operation->output;
    if (operation->collective == COLLECTIVE_REDUCE && operation->root != group->rank)
        return operation->input;
    return NULL;
}

void recovery_end_completed(struct group *group, const struct operation *operation)
{
    registry_lock();
    registry_keep(group, operation->collective, (int)operation->root, needed_by_others(group, operation),
                  operation_bytes(operation), job.config.keep_bytes);
    group->completed++;
    end(group);
    registry_unlock();
}

void recovery_end_failed(struct group *group, const char *cause)
{
    registry_lock();
    fence(group); /* the operation still counts as running, so the mark waits for its cause */
    snprintf(group->recovery->cause, sizeof group->recovery->cause, "%s", cause);
    end(group);
    registry_unlock();
}

void recovery_end_refused(struct group *group)
{
    registry_lock();
    end(group);
    registry_unlock();
}

static bool is_decided(const struct group *group)
{
    return group->recovery->decided;
}

static bool result_is_here(const struct group *group)
{
    return group->recovery->delivered >= 1;
}

static bool inputs_are_here(const struct group *group)
{
    return group->recovery->delivered >= group->members.size - 1;
}

/* Lists the members for which the first one still waits, for the message before the end. */
static void list_missing(const struct group *group, char *text, size_t length)
{
    size_t used = 0;

    for (uint32_t member = 0; member < group->members.size && used < length; member++)
        if (!group->recovery->marks[member].given)
            used += (size_t)snprintf(text + used, length - used, " %d", members_world_rank(&group->members, member));
}

static _Noreturn void give_up_waiting(const struct group *group)
{
    const struct recovery *recovery = group->recovery;
    char missing[256] = "";

    if (!recovery->decided && group->rank == 0)
        list_missing(group, missing, sizeof missing);
    else if (!recovery->decided)
        snprintf(missing, sizeof missing, " %d", members_world_rank(&group->members, 0));
    else
        snprintf(missing, sizeof missing, " %d or another that has what this one lacks",
                 members_world_rank(&group->members, recovery->decision.held % group->members.size));
    recovery_give_up("a node failed (%s), and after %u ms (TRIB_TIMEOUT_MS) there is no word from rank%s about the last "
                     "operation; a rank answers only in the collectives of MPI",
                     recovery->cause[0] != '\0' ? recovery->cause : "seen by another rank", job.config.timeout_ms, missing);
}

static void wait_until(struct group *group, bool (*holds)(const struct group *group))
{
    uint64_t deadline_ms = progress_clock_ms() + job.config.timeout_ms;

    for (;;) {
        registry_lock();
        bool done = holds(group);
        registry_unlock();
        if (done)
            return;
        if (progress_clock_ms() >= deadline_ms)
            give_up_waiting(group);
        progress_and_rest();
    }
}

static void need_bytes(const struct delivery *delivery, size_t bytes)
{
    if (delivery->bytes != bytes)
        recovery_give_up("ranks disagree about the length of a vector: %zu and %zu bytes", delivery->bytes, bytes);
}

/* The root folds from left to right in the order of ranks, as a tree with one node would do. */
static void fold_inputs(struct group *group, const struct operation *operation, const void *own)
{
    size_t bytes = operation_bytes(operation);
    uint32_t size = group->members.size;
    const void **inputs = need_memory(size, sizeof *inputs);
    void *next = need_memory(bytes > 0 ? bytes : 1, 1), *sum = need_memory(bytes > 0 ? bytes : 1, 1);

    inputs[group->rank] = own;
    for (const struct delivery *delivery = group->recovery->deliveries; delivery != NULL; delivery = delivery->next) {
        need_bytes(delivery, bytes);
        inputs[delivery->sender] = delivery->data;
    }
    memcpy(sum, inputs[0], bytes);
    for (uint32_t rank = 1; rank < size; rank++) {
        memcpy(next, inputs[rank], bytes);
        /* This computes next = sum op next. */
        PMPI_Reduce_local(sum, next, (int)operation->count, operation->datatype, operation->op);
        void *spare = sum;
        sum = next;
        next = spare;
    }
    memcpy(operation->output, sum, bytes);
    free(inputs);
    free(next);
    free(sum);
}

static void send_own_input(struct group *group, const struct operation *operation)
{
    registry_lock();
    send_data(group, operation->root, operation->input, operation_bytes(operation));
    registry_unlock();
}

/* Completes the last operation, which this rank lacks and another rank has. */
static void complete(struct group *group, const struct operation *operation, const void *saved)
{
    const struct recovery *recovery = group->recovery;

    if (recovery->decision.collective != operation->collective)
        recovery_give_up("ranks disagree about an operation: %s here, %s elsewhere", collective_name(operation->collective),
                         collective_name((enum collective)recovery->decision.collective));
    if (operation->collective == COLLECTIVE_ALLREDUCE) {
        wait_until(group, result_is_here);
        need_bytes(recovery->deliveries, operation_bytes(operation));
        memcpy(operation->output, recovery->deliveries->data, recovery->deliveries->bytes);
    } else if (operation->collective == COLLECTIVE_REDUCE && operation->root == group->rank) {
        wait_until(group, inputs_are_here);
        fold_inputs(group, operation, saved != NULL ? saved : operation->input);
    } else if (operation->collective == COLLECTIVE_REDUCE && recovery->lacks[operation->root]) {
        send_own_input(group, operation);
    }
    group->completed++;
}

enum outcome recovery_settle(struct group *group, const struct operation *operation, const void *saved)
{
    trib_group_free(group_take_tree(group));
    wait_until(group, is_decided);
    job_tell_fallback("the tree of a communicator of %u ranks failed (%s), and its collectives are done by the MPI",
                      group->members.size,
                      group->recovery->cause[0] != '\0' ? group->recovery->cause : "as another rank saw");
    if (group->completed == group->recovery->decision.completed)
        return OUTCOME_LEFT_TO_MPI;
    complete(group, operation, saved);
    return OUTCOME_DONE;
}

_Noreturn void recovery_give_up(const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    notice("rank %d ends the program: %s", job.rank, text);
    PMPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

bool recovery_undecided(const struct group *group)
{
    return group->recovery != NULL && !group->recovery->decided;
}

void recovery_free(struct recovery *recovery)
{
    if (recovery == NULL)
        return;
    for (struct delivery *delivery = recovery->deliveries, *next; delivery != NULL; delivery = next) {
        next = delivery->next;
        free(delivery->data);
        free(delivery);
    }
    free(recovery->marks);
    free(recovery->lacks);
    free(recovery);
}
