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
#define TRIB_API_MINOR 5

/* Results. 0 is success, and every error is below 0. Codes are never reused. */
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
    TRIB_ERR_AUTH = -14,         /* no key, a wrong key, or no right to do this */
    TRIB_ERR_DEVICE = -15        /* a GPU or its driver failed */
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

/* The type of a value that is directly followed by its index, for TRIB_MAXLOC and TRIB_MINLOC:
 * TRIB_PAIR(TRIB_FLOAT64, TRIB_INT32) has 12 bytes. Pairs have no padding and need no alignment;
 * the index is of any integer type. A call's count is in pairs. */
#define TRIB_PAIR(value, index) ((enum trib_dtype)((value) | ((index) + 1) << 4))

/* MAXLOC gives the largest of the values and the smallest of the indices at which a value equals
 * it, MINLOC the smallest value likewise; NaN wins over any number. These two take pairs only, and
 * only they take pairs. Integers wrap. Logical operators (LAND, LOR, LXOR) take 0 for false and any
 * other value for true, and give 0 or 1 in the type of the elements. Logical and bitwise operators
 * take integers only. trib_supports() answers for each combination. In a group of one rank nothing
 * is computed: the rank gets what it gave. */
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

/* The out-of-band exchange over all ranks of the job. Only trib_init uses it. Callbacks return 0 or
   an error. */
typedef struct trib_oob {
    void *ctx;
    /* Every rank gives len bytes at sbuf; rank 0 receives size * len bytes at rbuf, in the order of
     * ranks. On other ranks rbuf is NULL, unless trib_params had an impossible rank or size. */
    int (*gather)(void *ctx, const void *sbuf, void *rbuf, size_t len);
    /* Copies the len bytes at rank 0's buf to the buf of every other rank. */
    int (*bcast)(void *ctx, void *buf, size_t len);
} trib_oob;

typedef struct trib_params {
    size_t struct_size;      /* sizeof(trib_params) */
    uint32_t rank;           /* rank in the job, 0 .. size - 1 */
    uint32_t size;           /* ranks of the job */
    const char *manager;     /* NULL: environment TRIB_MANAGER */
    const char *host;        /* NULL: environment TRIB_HOST, else gethostname() */
    const trib_oob *oob;     /* NULL: rendezvous at the manager under the name TRIB_RENDEZVOUS, else
                              * under that of the launcher's job (srun, mpirun, torchrun), if rank
                              * and size are those that it says */
    int timeout_ms;          /* time limit of trib_init itself; 0: TRIB_TIMEOUT_MS, else 30000.
                              * TRIB_WAIT_MS, how long the job may wait for quota that others
                              * have, comes on top. How long a rank may be without a node when one
                              * has died says TRIB_TIMEOUT_MS alone, else it is 30000 */
    /* The blocked thread calls this, several times in a row, while it is inside one of our calls,
     * so that the caller's runtime (an MPI) makes progress: first when the call has blocked for
     * four or eight times as long as calls did lately, which is after 1 to 20 ms, then about every
     * millisecond, ever more rarely the longer it finds nothing to do, down to every 20 ms, and
     * every 0.1 ms while it finds some, which the processor time of the calls tells. Once it has
     * found some the first time is after 1 or 2 ms again. No lock of ours is held meanwhile. May be
     * NULL. */
    void (*progress)(void *ctx);
    void *progress_ctx;
    /* What the job would like to use: "NAME=NUMBER,...", in the form of TRIB_QUOTA, which fills in
     * what is left out. "lanes=2" asks for two trees, or for two connections along one. Rank 0's
     * value counts. NULL asks for nothing. */
    const char *quota;
    /* What the program's users call the collectives, "NAME=CALL,...", so that errors name the
     * calls that they know: an MPI library says "allreduce=MPI_Allreduce,barrier=MPI_Barrier".
     * NULL: barrier, allreduce, reduce, bcast, reduce_scatter, allgather. */
    const char *calls;
} trib_params;

/* Joins the job. The call is collective over all ranks, and all of them get the same verdict. A
 * rank that was called with a wrong argument, even with an impossible rank or size, takes part in
 * the exchange, and all ranks fail with its number and reason. This takes callbacks that work: a
 * rank without them (params or one of the callbacks is NULL, or struct_size is wrong) fails alone,
 * and the others wait for it as long as the exchange lets them. On failure *ctx is left as it was,
 * and trib_last_error() says what went wrong. */
int trib_init(const trib_params *params, trib_context **ctx);

/* Tells the manager that the program goes on without the tree, or without part of it, and why, so
 * that `trib jobs` and `trib explain` show it. The call is local and waits for no answer. Other
 * ranks may call it too, but only the first call of rank 0 counts. */
int trib_fall_back(trib_context *ctx, const char *why);

/* Leaves the job. The call is local and waits a bounded time for frames still in flight. NULL is
 * allowed. */
int trib_finalize(trib_context *ctx);

/* Returns what a code means. Never NULL. */
const char *trib_strerror(int status);

/* Returns the last error of this thread in words: whose fault it was, and what to do. Never NULL.
 * The text is valid until the next error of this thread. */
const char *trib_last_error(void);

/* Makes a group of world_ranks[0 .. size - 1]; their order gives the ranks in the group. The call
 * is collective over the members only and sends no message to the manager. Two creations with equal
 * members that run at the same time must differ in tag; otherwise tag may be 0. A member whose
 * arguments are wrong fails alone, because the others cannot know which group it meant. They wait
 * for it as for a late one; trib_group_create_nb and trib_wait have a time limit. */
int trib_group_create(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, uint64_t tag, trib_group **group);

/* Does the same without waiting: the request completes when the group is ready. The group may be
 * used for posts at once; they start when it is ready and fail if it fails. */
int trib_group_create_nb(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, uint64_t tag, trib_group **group,
                         trib_request **request);

/* Does the same and gives the group a name, such as that of its communicator, which errors and
 * `trib explain` show. The first 63 bytes of the name count. The name decides nothing: members may
 * give different ones, and NULL gives none. */
int trib_group_create_named_nb(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, uint64_t tag, const char *name,
                               trib_group **group, trib_request **request);

/* Leaves the group and frees its handle. The call is local, but where GPUs of a host combine
 * (TRIB_CUDA_PEERS) it waits for the host's other ranks for two seconds at most. Operations still
 * outstanding fail. NULL is allowed. */
int trib_group_free(trib_group *group);

/* Leaves the group as trib_group_free does, but the handle stays valid until trib_group_free is
 * called. Operations still outstanding fail, and so do all that are posted later. The progress
 * callback may call it, even while a blocking operation of this very group runs the callback; the
 * operation then returns the error. The call is local. */
int trib_group_leave(trib_group *group);

/* How a group takes sums of floating-point numbers: in the order of the tree, or so that the bits
 * of the result depend on no order, whatever tree, hosts and failures there are. FIXED rounds each
 * element once before it is added, relative to the largest of the 256 around it; EXACT gives the
 * sum of the numbers, rounded once, however the vector is cut into calls. Both are for allreduce,
 * reduce and reduce_scatter; products of floating-point numbers are refused then, and all else is
 * as always. docs/exact-sums.md has definitions, bounds and costs.
 *
 * INT8 is for gradients: elements of float32, float16 and bfloat16 travel as 32 integers of 8 bits
 * with a scale, 36 bytes in each direction instead of 128 of float32, and a sum is rounded at each
 * node, at random and by less than a scale; the draw follows from rank, position and the number of
 * the sum, so a run can be repeated. Vectors of fewer than 32 elements, float64 and products are as
 * always. A block with what is no finite number has no numbers in the result.
 * docs/quantised-sums.md has definitions, bounds and costs. */
enum trib_sums {
    TRIB_SUMS_PLAIN = 0,
    TRIB_SUMS_FIXED = 1,
    TRIB_SUMS_EXACT = 2,
    TRIB_SUMS_INT8 = 3
};

/* Says how the group takes sums that are posted from now on. All members have to say the same
 * between the same operations; those that do not get TRIB_ERR_MISMATCH. The call is local. Without
 * it the environment TRIB_SUMS decides (plain, fixed, exact or int8), else sums are plain. */
int trib_group_set_sums(trib_group *group, enum trib_sums sums);

/* Error feedback for vectors that are summed over and over in INT8: multiplies `vector` by `factor`
 * (1, or for an average 1 by the number of members), adds `residual`, `count` elements of float32,
 * float16 or bfloat16 that are zeros before the first sum, rounds each element to the nearest that
 * travels as it is, and leaves in `residual` what that has taken away, as far as the type has
 * digits for it, so that a member's small elements arrive in the end.
 * Call it before the vector is posted. 32 elements with one that is not finite, or above
 * 127 x 2^121, become no numbers, without a residual. The two may not overlap. It computes in the
 * calling thread and needs no context. */
int trib_int8_feed_back(void *vector, void *residual, size_t count, enum trib_dtype t, float factor);

uint32_t trib_group_rank(const trib_group *group);
uint32_t trib_group_size(const trib_group *group);

/* Returns 0 while the group works, else the error that broke it. A broken group never recovers;
   trib_group_error has the text. */
int trib_group_status(const trib_group *group);
/* Writes the text of that error to buf, cut to len bytes with the final 0 (len 0: nothing), and
 * returns trib_group_status(). */
int trib_group_error(const trib_group *group, char *buf, size_t len);

/* As sbuf: the input is already in rbuf. For reduce it is allowed at the root only. For allgather
 * this rank's block lies at its position in rbuf. For reduce-scatter the whole input lies in rbuf,
 * and this rank's block is returned at the start of rbuf. */
#define TRIB_IN_PLACE ((const void *)(intptr_t)-1)

/* Collectives. Buffers belong to the library from the call until the request is done, or until a
 * blocking call returns. Members must post operations of one group in the same order. count is in
 * elements; for reduce_scatter and allgather it is the length of one block. */
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

/* Memory of GPUs. The same collectives over memory of a CUDA device, in the order of a stream: the
 * input is what the stream holds when all that the program has queued there before the call is
 * done. `stream` is a CUstream or a cudaStream_t, NULL among them; a stream that is being captured
 * into a graph is refused. The call copies nothing itself and does not wait: the vector goes
 * through pinned memory of the host in chunks, some of which are copied while others travel.
 * Results have the bits of the same call over memory of the host.
 *
 * Every member of the group uses the same form of an operation, because all have to cut it
 * alike. At least one buffer that this rank uses is memory of a device, of the stream's context;
 * the other one may be the host's. Operations that are begun meanwhile over memory of the host
 * come behind, in the order of the calls. If the device fails, this rank leaves the group, and
 * other members get TRIB_ERR_PEER. trib_test tells when a result is there, and trib_wait waits
 * for it; neither waits for what else the device has to do. Such a group has two threads and
 * some buffers of pinned memory, which trib_group_free gives back when the copies under way are
 * done. Without a driver (libcuda.so.1), or with TRIB_CUDA=off in the environment, the calls
 * return TRIB_ERR_UNSUPPORTED. They exist since version 0.3 of this interface. */
int trib_allreduce_stream_nb(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op,
                             void *stream, trib_request **request);
int trib_reduce_stream_nb(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t, enum trib_op op,
                          uint32_t root, void *stream, trib_request **request);
int trib_bcast_stream_nb(trib_group *g, void *buf, size_t bytes, uint32_t root, void *stream, trib_request **request);
int trib_reduce_scatter_stream_nb(trib_group *g, const void *sbuf, void *rbuf, size_t count, enum trib_dtype t,
                                  enum trib_op op, void *stream, trib_request **request);
int trib_allgather_stream_nb(trib_group *g, const void *sbuf, void *rbuf, size_t bytes, void *stream, trib_request **request);

/* Waits until nothing is left of the request but copies to the device that are queued, and makes
 * `stream` wait for these: what the program queues there from now on finds the result, and the
 * buffers may be used in the order of that stream. It returns the request's status, or
 * TRIB_ERR_TIMEOUT after timeout_ms, as trib_wait does. A request that is not over memory of a
 * device is waited for. It exists since version 0.3 of this interface. */
int trib_wait_stream(trib_request *request, void *stream, int timeout_ms);

/* Sets *done to 1 when the request is finished, else to 0. Returns the request's own status once it
 * is finished. It drives progress and never waits. */
int trib_test(trib_request *request, int *done);

/* Waits for the request and returns its status; it does not free the request. If it is not finished
 * after timeout_ms, TRIB_ERR_TIMEOUT is returned and the operation goes on. A negative timeout_ms
 * means no limit. */
int trib_wait(trib_request *request, int timeout_ms);

/* Waits as trib_wait does and, once the operation has succeeded, frees *request and sets it to
 * NULL. On any other status the request stays as it is. It exists since version 0.5 of this
 * interface. */
int trib_finish(trib_request **request, int timeout_ms);

/* Frees a request in any state. A running operation goes on, and its buffers stay the library's
 * until it is done. NULL is allowed. */
int trib_request_free(trib_request *request);

/* Polls everything outstanding once and never waits. */
int trib_progress(trib_context *ctx);

/* Returns 1 if the tree can do this combination, else 0. */
int trib_supports(enum trib_dtype t, enum trib_op op);

/* Vectors of `from` to `to` bytes, both included. A `to` of UINT64_MAX means that there is no upper
 * end. */
typedef struct trib_range {
    uint64_t from, to;
} trib_range;

/* The operations for which the tree is predicted to be at least as fast as the hosts' own
   algorithms. */
typedef struct trib_prediction {
    size_t struct_size;        /* sizeof(trib_prediction), set by the caller */
    uint32_t known;            /* 0: nothing is predicted for such a group, and all below is 0 */
    uint32_t barrier;          /* 1: barriers */
    uint32_t allreduces;       /* how many ranges follow, ascending: 0 to 2 */
    uint32_t reduces;
    trib_range allreduce[2];
    trib_range reduce[2];
    uint32_t in_memory;        /* 1: the ranks share a host, and do all operations of the group in
                                * memory that they share, unless one of them cannot; then nothing
                                * else is predicted */
    uint32_t unused;           /* 0 */
} trib_prediction;

/* Writes what the manager predicted, when it admitted the job, for a group of world_ranks[0 .. size
 * - 1] in this order. It predicts from the hosts of the ranks, the job's trees, the rates of their
 * links and the constants that it was given. The call is local, and its answer depends on the job
 * and on world_ranks alone, so all ranks get the same answer and may decide by it. The library
 * itself never heeds it. It exists since version 0.2 of this interface. */
int trib_predict(trib_context *ctx, const uint32_t *world_ranks, uint32_t size, trib_prediction *prediction);

/* Counters of this rank since trib_init, for reports. */
typedef struct trib_counters {
    size_t struct_size; /* sizeof(trib_counters), set by the caller */
    uint64_t operations_llt, operations_sat;
    uint64_t datagrams_sent, datagrams_received, datagrams_rejected;
    uint64_t stream_bytes_sent, stream_bytes_received;
    uint64_t retransmissions, probes;
    uint64_t groups_created, groups_freed;
    uint64_t datagrams_repeated; /* answers that had come before: no fault, as a question and its
                                  * answer may cross */
    uint64_t epochs;             /* how often the job has gone on after the death of a node */
    uint64_t replayed;           /* fragments and segments that were sent again for that */
    uint64_t operations_board;   /* in memory that the members on a host share */
    uint64_t operations_combined; /* over memory of GPUs, which combine on each host (TRIB_CUDA_PEERS) */
} trib_counters;
int trib_get_counters(trib_context *ctx, trib_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
