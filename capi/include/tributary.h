/* SPDX-License-Identifier: Apache-2.0
 *
 * tributary.h - the native C API of Tributary: collectives reduced inside the network.
 *
 * Life: trib_init -> trib_group_create -> collectives -> trib_group_free -> trib_finalize.
 * Every call may be made from any thread unless its comment says otherwise. No call holds a lock
 * while it runs a callback of the caller's. Nothing is ever printed to stdout.
 */
#ifndef TRIBUTARY_H
#define TRIBUTARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIB_API_MAJOR 0
#define TRIB_API_MINOR 2

/* Results. 0 is success, everything below is an error; codes are never reused. */
enum trib_status {
    TRIB_OK = 0,
    TRIB_ERR_INVALID = -1,       /* an argument of the caller's is wrong */
    TRIB_ERR_MANAGER = -2,       /* the aggregation manager cannot be reached or refused us */
    TRIB_ERR_NODE = -3,          /* an aggregation node cannot be reached or is gone */
    TRIB_ERR_VERSION = -4,       /* the other side speaks another protocol version */
    TRIB_ERR_QUOTA = -5,         /* the job's quota does not allow it */
    TRIB_ERR_MISMATCH = -6,      /* ranks disagree about the operation */
    TRIB_ERR_PEER = -7,          /* a member died or left */
    TRIB_ERR_TIMEOUT = -8,       /* not done within the caller's time limit */
    TRIB_ERR_OOB = -9,           /* an out-of-band callback failed */
    TRIB_ERR_UNSUPPORTED = -10,  /* no such datatype, operator or combination */
    TRIB_ERR_MEMORY = -11,       /* out of memory */
    TRIB_ERR_FORKED = -12,       /* used in a child after fork() */
    TRIB_ERR_INTERNAL = -13,     /* a broken invariant; please report it */
    TRIB_ERR_AUTH = -14          /* no key, a wrong key, or no right to do this */
};

enum trib_dtype {
    TRIB_UINT32 = 0,
    TRIB_INT32 = 1,
    TRIB_UINT64 = 2,
    TRIB_INT64 = 3,
    TRIB_FLOAT32 = 4,
    TRIB_FLOAT64 = 5,
    TRIB_UINT16 = 6,
    TRIB_INT16 = 7,
    TRIB_FLOAT16 = 8,
    TRIB_BFLOAT16 = 9,
    TRIB_UINT8 = 10,
    TRIB_INT8 = 11,
    TRIB_INDEX_BITS = 0xf0 /* not a type: where TRIB_PAIR puts the index */
};

/* The type of a value directly followed by its index, for TRIB_MAXLOC and TRIB_MINLOC: TRIB_PAIR(TRIB_FLOAT64, TRIB_INT32) has 12
 * bytes. No padding, no alignment; the index is an integer of any type. count is in pairs. */
#define TRIB_PAIR(value, index) ((enum trib_dtype)((value) | ((index) + 1) << 4))

/* MAXLOC gives the largest of the values and the smallest of the indices at which a value equals it, MINLOC the smallest value
 * likewise; a value that is not a number wins. They take pairs, and pairs take nothing else.
 * Integers wrap. Logical operators (LAND, LOR, LXOR) take 0 for false and all else for true, and give 0 or 1 in the type of
 * the elements. Logical and bitwise operators take integers only; trib_supports() answers for each combination. In a group of one
 * rank nothing is computed: it gets what it gave. */
enum trib_op {
    TRIB_MAX = 0,
    TRIB_MIN = 1,
    TRIB_SUM = 2,
    TRIB_PROD = 3,
    TRIB_LAND = 4,
    TRIB_BAND = 5,
    TRIB_LOR = 6,
    TRIB_BOR = 7,
    TRIB_LXOR = 8,
    TRIB_BXOR = 9,
    TRIB_MAXLOC = 10,
    TRIB_MINLOC = 11
};

typedef struct trib_context trib_context; /* one job, one rank */
typedef struct trib_group trib_group;     /* a subset of the job's ranks */
typedef struct trib_request trib_request; /* one operation in flight */

/* Out-of-band exchange over all ranks of the job, used by trib_init only. Callbacks return 0 or an error. */
typedef struct trib_oob {
    void *ctx;
    /* Every rank gives len bytes at sbuf; rank 0 receives size * len bytes at rbuf (NULL elsewhere, but where trib_params had a rank
     * or size that cannot be). */
    int (*gather)(void *ctx, const void *sbuf, void *rbuf, size_t len);
    /* len bytes at buf from rank 0 to all. */
    int (*bcast)(void *ctx, void *buf, size_t len);
} trib_oob;

typedef struct trib_params {
    size_t struct_size;      /* sizeof(trib_params) */
    uint32_t rank;           /* rank in the job, 0 .. size - 1 */
    uint32_t size;           /* ranks of the job */
    const char *manager;     /* NULL: environment TRIB_MANAGER */
    const char *host;        /* NULL: environment TRIB_HOST, else gethostname() */
    const trib_oob *oob;     /* NULL: rendezvous at the manager under the name TRIB_RENDEZVOUS */
    int timeout_ms;          /* time limit of trib_init itself; 0: TRIB_TIMEOUT_MS, else 30000. TRIB_WAIT_MS, how long
                              * the job may wait for quota that others have, comes on top */
    /* Called about every millisecond while a call of ours blocks, so that the caller's runtime (an MPI)
     * makes progress; may be NULL. Runs without any lock of ours held, on the blocked thread. */
    void (*progress)(void *ctx);
    void *progress_ctx;
    /* What the job would like to use, "NAME=NUMBER,...", as TRIB_QUOTA says it, which fills in what is left out; rank 0's
     * counts. "lanes=2": over two trees, or two connections along one. NULL: nothing. */
    const char *quota;
} trib_params;

/* Joins the job: collective over all ranks. All ranks get the same verdict: one that was called with something wrong, even with a
 * rank or size that cannot be, takes part in the exchange, and all fail with its number and reason. That takes callbacks that work;
 * a rank without them (params or one of the callbacks NULL, a wrong struct_size) fails alone, and the others wait for it as long as
 * the exchange lets them. On failure *ctx is left alone and trib_last_error() has the whole story. */
int trib_init(const trib_params *params, trib_context **ctx);

/* Tells the manager that the program goes on without the tree, or part of it, and why, so that `trib jobs` and
 * `trib explain` show it. Local; waits for no answer. Only rank 0's word counts, and only its first: other ranks may call it too. */
int trib_fall_back(trib_context *ctx, const char *why);

/* Leaves the job. Local; waits a bounded time for frames still in flight. NULL is allowed. */
int trib_finalize(trib_context *ctx);

/* What a code means. Never NULL. */
const char *trib_strerror(int status);

/* The last error of this thread in words: whose fault, and what to do. Never NULL. */
const char *trib_last_error(void);

/* Makes a group of world_ranks[0 .. size - 1] (order gives the rank in the group); collective over its
 * members only, in band, with no message to the manager. Two creations with equal members that run at the
 * same time must differ in tag; otherwise tag may be 0. A member whose arguments are wrong fails alone, because nobody can tell
 * which group it meant; the others wait for it as for a late one (trib_group_create_nb and trib_wait have a time limit). */
int trib_group_create(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, uint64_t tag, trib_group **group);

/* The same without waiting: the request completes when the group is ready. The group may be used for posts at
 * once; they start when it is ready and fail with it. */
int trib_group_create_nb(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, uint64_t tag, trib_group **group,
                         trib_request **request);

/* The same, of a group that people know by a name, such as its communicator's: errors and `trib explain` say it. Its first 63
 * bytes count; it decides nothing, members may give different ones, and NULL is none. */
int trib_group_create_named_nb(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, uint64_t tag, const char *name,
                               trib_group **group, trib_request **request);

/* Local. Operations still outstanding fail. NULL is allowed. */
int trib_group_free(trib_group *group);

/* Leaves the group as trib_group_free does, but the handle stays valid until that is called: operations still outstanding fail,
 * and so does whatever is posted later. The progress callback may call it, even when it was called by a blocking
 * operation of this very group, which then returns the error. Local. */
int trib_group_leave(trib_group *group);

uint32_t trib_group_rank(const trib_group *group);
uint32_t trib_group_size(const trib_group *group);

/* 0 while the group works, else the error that broke it (it never recovers; its text: trib_group_error). */
int trib_group_status(const trib_group *group);
/* The text of that error in buf (always terminated when len > 0); returns trib_group_status(). */
int trib_group_error(const trib_group *group, char *buf, size_t len);

/* Sentinel for sbuf: the input is already in rbuf. For reduce it is allowed at the root only; for allgather
 * the own block lies at its place in rbuf; for reduce-scatter the whole input lies in rbuf and the own block
 * is returned at its start. */
#define TRIB_IN_PLACE ((const void *)(intptr_t)-1)

/* Collectives. Buffers belong to the library from the call until the request is done (blocking calls: until they
 * return). Members must post operations of one group in the same order. count is in elements; for
 * reduce_scatter and allgather it is the length of one block. */
int trib_allreduce(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op);
int trib_reduce(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op, uint32_t root);
int trib_bcast(trib_group *g, void *buf, size_t bytes, uint32_t root);
int trib_barrier(trib_group *g);
int trib_reduce_scatter(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op);
int trib_allgather(trib_group *g, const void *sbuf, void *rbuf, size_t bytes);

int trib_allreduce_nb(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op,
                      trib_request **request);
int trib_reduce_nb(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op,
                   uint32_t root, trib_request **request);
int trib_bcast_nb(trib_group *g, void *buf, size_t bytes, uint32_t root, trib_request **request);
int trib_barrier_nb(trib_group *g, trib_request **request);
int trib_reduce_scatter_nb(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op,
                           trib_request **request);
int trib_allgather_nb(trib_group *g, const void *sbuf, void *rbuf, size_t bytes, trib_request **request);

/* *done = 1 when the request is finished, 0 otherwise; returns the request's own status once it is finished.
 * Drives progress; never waits. */
int trib_test(trib_request *request, int *done);

/* Waits for the request and returns its status; does not free it. timeout_ms < 0: no limit. */
int trib_wait(trib_request *request, int timeout_ms);

/* Frees a request in any state; a running operation goes on and its buffers stay the library's until it is done.
 * NULL is allowed. */
int trib_request_free(trib_request *request);

/* One poll of everything outstanding; never waits. */
int trib_progress(trib_context *ctx);

/* 1 if the tree can do this combination, else 0. */
int trib_supports(enum trib_dtype t, enum trib_op op);

/* Vectors from `from` to `to` bytes, both included; UINT64_MAX is no end. */
typedef struct trib_range {
    uint64_t from, to;
} trib_range;

/* For which operations the tree is predicted to be at least as fast as the hosts' own algorithms. */
typedef struct trib_prediction {
    size_t struct_size;        /* sizeof(trib_prediction), set by the caller */
    uint32_t known;            /* 0: nothing is predicted for such a group, and all below is 0 */
    uint32_t barrier;          /* 1: barriers */
    uint32_t allreduces;       /* how many ranges follow, ascending: 0 to 2 */
    uint32_t reduces;
    trib_range allreduce[2];
    trib_range reduce[2];
} trib_prediction;

/* What the manager predicted when it admitted the job, for a group of world_ranks[0 .. size - 1] in this order: from the
 * hosts of the ranks, the job's trees, the rates of their links and the constants that the manager was given. Local, and a
 * function of the job and of world_ranks alone, so that all ranks get the same answer and may decide by it. The library itself
 * heeds it nowhere. Since version 0.2 of this interface. */
int trib_predict(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, trib_prediction *prediction);

/* Counters of this rank since trib_init, for reports. */
typedef struct trib_counters {
    size_t struct_size; /* sizeof(trib_counters), set by the caller */
    uint64_t operations_llt, operations_sat;
    uint64_t datagrams_sent, datagrams_received, datagrams_rejected;
    uint64_t stream_bytes_sent, stream_bytes_received;
    uint64_t retransmissions, probes;
    uint64_t groups_created, groups_freed;
    uint64_t datagrams_repeated; /* answers that had come before: no fault, a question and its answer crossed */
} trib_counters;
int trib_get_counters(trib_context *ctx, trib_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
