/* SPDX-License-Identifier: Apache-2.0
 *
 * sharp_coll.h - collectives reduced inside the network, source and binary compatible with the
 * libsharp_coll API, carried by Tributary's aggregation nodes over plain Ethernet.
 *
 * Life: sharp_coll_init -> sharp_coll_comm_init -> collectives -> sharp_coll_comm_destroy ->
 * sharp_coll_finalize. Functions return 0 or one of enum sharp_error_no, never a positive number,
 * unless their comment says otherwise. Words named reserved are never read.
 */
#ifndef SHARP_COLL_H
#define SHARP_COLL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest list of pieces in one descriptor. */
#define SHARP_COLL_DATA_MAX_IOV 15

enum sharp_error_no {
    SHARP_COLL_SUCCESS = 0,
    SHARP_COLL_ERROR = -1,         /* none of the others */
    SHARP_COLL_ENOT_SUPP = -2,     /* no such operation on these elements, or no driver for this
                                    * memory */
    SHARP_COLL_ENOMEM = -3,
    SHARP_COLL_EGROUP_ALLOC = -4,  /* the group could not be made */
    SHARP_COLL_ECONN_TREE = -5,    /* an aggregation node cannot be reached or is gone */
    SHARP_COLL_EGROUP_JOIN = -6,   /* a member died or left */
    SHARP_COLL_EQUOTA = -7,        /* the job's quota does not allow it */
    SHARP_COLL_ESESS_INIT = -8,    /* the aggregation manager cannot be reached, or speaks another
                                    * version */
    SHARP_COLL_EDEV = -9,
    SHARP_COLL_EINVAL = -10,       /* an argument of the caller's is wrong */
    SHARP_COLL_EJOB_CREATE = -11,  /* the aggregation manager refused the job */
    SHARP_COLL_ETREE_INFO = -12,
    SHARP_COLL_ENOTREE = -13,
    SHARP_COLL_EGROUP_ID = -14,
    SHARP_COLL_EOOB = -15,         /* an out-of-band callback failed */
    SHARP_COLL_EGROUP_MCAST = -16,
    SHARP_COLL_EGROUP_TRIM = -17,
    SHARP_COLL_ELOCK_FAILED = -18,
    SHARP_COLL_ELOCK_DENIED = -19,
    SHARP_COLL_ENO_RESOURCE = -20
};

enum sharp_datatype {
    SHARP_DTYPE_UNSIGNED = 0,       /* 4 bytes */
    SHARP_DTYPE_INT = 1,            /* 4 bytes */
    SHARP_DTYPE_UNSIGNED_LONG = 2,  /* 8 bytes */
    SHARP_DTYPE_LONG = 3,           /* 8 bytes */
    SHARP_DTYPE_FLOAT = 4,
    SHARP_DTYPE_DOUBLE = 5,
    SHARP_DTYPE_UNSIGNED_SHORT = 6, /* 2 bytes */
    SHARP_DTYPE_SHORT = 7,          /* 2 bytes */
    SHARP_DTYPE_FLOAT_SHORT = 8,    /* IEEE binary16 */
    SHARP_DTYPE_BFLOAT16 = 9,
    SHARP_DTYPE_UINT8 = 10,
    SHARP_DTYPE_INT8 = 11,
    SHARP_DTYPE_NULL = 12           /* none */
};

/* Integers wrap; logical operators give 0 or 1. MAXLOC and MINLOC take packed pairs of a value
 * (dtype) and a tag (tag_dtype), without padding; of equal values the smaller tag wins. */
enum sharp_reduce_op {
    SHARP_OP_MAX = 0,
    SHARP_OP_MIN = 1,
    SHARP_OP_SUM = 2,
    SHARP_OP_PROD = 3,
    SHARP_OP_LAND = 4,
    SHARP_OP_BAND = 5,
    SHARP_OP_LOR = 6,
    SHARP_OP_BOR = 7,
    SHARP_OP_LXOR = 8,
    SHARP_OP_BXOR = 9,
    SHARP_OP_MAXLOC = 10,
    SHARP_OP_MINLOC = 11,
    SHARP_OP_NULL = 12
};

enum sharp_job_features {
    SHARP_FEATURE_LLT = 1 << 0,                /* short vectors, by datagrams */
    SHARP_FEATURE_REPRODUCIBLE = 1 << 1,       /* the same bits in every run */
    SHARP_FEATURE_SAT = 1 << 2,                /* long vectors, by streams */
    SHARP_FEATURE_SAT_EXCLUSIVE_LOCK = 1 << 3
};

/* A hint; the library chooses by length. */
enum sharp_aggregation_mode {
    SHARP_AGGREGATION_NONE = 0,
    SHARP_AGGREGATION_DATAGRAM = 1,
    SHARP_AGGREGATION_STREAMING = 2
};

enum sharp_data_buffer_type {
    SHARP_DATA_BUFFER = 0,
    SHARP_DATA_IOV = 1
};

enum sharp_data_memory_type {
    SHARP_MEM_TYPE_HOST = 0,
    SHARP_MEM_TYPE_CUDA = 1,
    SHARP_MEM_TYPE_LAST = 2
};

/* sharp_coll_config.flags */
enum {
    /* Print one line of the first failed sharp_coll_init, at rank 0. */
    SHARP_COLL_HIDE_ERRORS = 1 << 0,
    /* Take everything in sharp_coll_comm_init, as is always done here. */
    SHARP_COLL_DISABLE_LAZY_GROUP_RESOURCE_ALLOC = 1 << 1
};

/* sharp_coll_reg_params.field_mask */
enum {
    SHARP_COLL_REG_FIELD_DMABUF_FD = 1 << 0,
    SHARP_COLL_REG_FIELD_DMABUF_OFFSET = 1 << 1
};

enum config_print_flags {
    SHARP_COLL_CONFIG_PRINT_CONFIG = 1 << 0, /* names and values */
    SHARP_COLL_CONFIG_PRINT_HEADER = 1 << 1, /* a title above */
    SHARP_COLL_CONFIG_PRINT_DOC = 1 << 2,    /* what each setting means */
    SHARP_COLL_CONFIG_PRINT_HIDDEN = 1 << 3  /* settings that mean nothing here, too */
};

struct sharp_coll_context;
struct sharp_coll_comm;

struct sharp_coll_config {
    const char *ib_dev_list;        /* a hint: names of devices or network interfaces; NULL or "":
                                     * choose */
    int user_progress_num_polls;    /* empty polls of a blocking call before progress_func runs; 0:
                                     * never */
    int coll_timeout;               /* ms; only diagnostics: a late peer is no error */
    uint32_t flags;
    int reserved[3];
};

/* The caller's own collectives. sharp_coll_init uses them over the job and sharp_coll_comm_init
 * over the group. They return 0 or an error. The root of gather receives size * len bytes in the
 * order of ranks. */
struct sharp_coll_out_of_band_colls {
    int (*bcast)(void *context, void *buffer, int len, int root);
    int (*barrier)(void *context);
    int (*gather)(void *context, int root, void *sbuf, void *rbuf, int len);
};

struct sharp_coll_comm_init_spec {
    int rank; /* in the group */
    int size;
    void *oob_ctx;
    const uint32_t *group_world_ranks; /* never read: the members tell each other */
    int reserved[2];
};

struct sharp_coll_init_spec {
    uint64_t job_id; /* the same at all ranks; need not be unique */
    int world_rank;
    int world_size;
    int (*progress_func)(void); /* may be NULL */
    int group_channel_idx;      /* not needed */
    struct sharp_coll_config config;
    struct sharp_coll_out_of_band_colls oob_colls;
    int world_local_rank;       /* not needed */
    int enable_thread_support;  /* calls from several threads are safe in any case */
    void *oob_ctx;
    int reserved[4];
};

struct sharp_coll_caps {
    int sharp_pkt_version;
    uint64_t reserved[2];
    struct {
        uint64_t dtypes;       /* bit n: datatype n */
        uint64_t tag_dtypes;
        uint64_t reduce_ops;   /* bit n: operator n */
        uint64_t feature_mask; /* enum sharp_job_features */
        uint64_t reserved[4];
    } support_mask;
    struct {
        int max_osts;
        int user_data_per_ost; /* bytes */
        int max_groups;
        int max_group_channels;
        int osts_per_group;
    } resources;
};

struct sharp_data_iov {
    void *ptr;
    size_t length;
    void *mem_handle;
};

struct sharp_coll_reg_params {
    uint64_t field_mask;
    int dmabuf_fd;
    size_t dmabuf_offset;
};

struct sharp_coll_data_desc {
    enum sharp_data_buffer_type type;
    enum sharp_data_memory_type mem_type;
    int reserved[2];
    union {
        struct {
            void *ptr;
            size_t length; /* bytes */
            void *mem_handle;
        } buffer;
        struct {
            unsigned count; /* 1 .. SHARP_COLL_DATA_MAX_IOV pieces, in the order of the message */
            struct sharp_data_iov *vector;
        } iov;
    };
};

struct sharp_coll_reduce_spec {
    int root; /* of sharp_coll_do_reduce */
    struct sharp_coll_data_desc sbuf_desc;
    struct sharp_coll_data_desc rbuf_desc;
    enum sharp_datatype dtype;
    size_t length; /* elements; pairs for MAXLOC and MINLOC */
    enum sharp_reduce_op op;
    enum sharp_datatype tag_dtype;          /* of MAXLOC and MINLOC */
    enum sharp_aggregation_mode aggr_mode;  /* a hint */
    int stream_lock_batch_size;             /* a hint */
    size_t offset; /* of sharp_coll_do_reduce_scatter, in bytes: where the window of sbuf
                    * begins */
    int reserved[2];
};

struct sharp_coll_bcast_spec {
    int root;
    struct sharp_coll_data_desc buf_desc;
    size_t size; /* bytes */
    int reserved[4];
};

struct sharp_coll_bcast_spec_v2 {
    int root;
    struct sharp_coll_data_desc sbuf_desc;
    struct sharp_coll_data_desc rbuf_desc;
    size_t size; /* bytes */
    int reserved[4];
};

struct sharp_coll_gather_spec {
    struct sharp_coll_data_desc sbuf_desc;
    struct sharp_coll_data_desc rbuf_desc;
    enum sharp_datatype dtype; /* not needed: bytes are copied */
    size_t size;               /* not needed: rbuf has the length of the window */
    size_t offset;             /* bytes: where the window begins that rbuf holds */
    int reserved[4];
};

/* The configuration of a job that asks for nothing else. */
extern const struct sharp_coll_config sharp_coll_default_config;

/* Joins the job. The call is collective over the job's ranks and has one verdict for all. A rank
 * whose arguments make no sense takes part in the exchange and tells the others, which takes a spec
 * with callbacks that work: without such a spec the rank fails alone. *context is written only on
 * success. */
int sharp_coll_init(struct sharp_coll_init_spec *spec, struct sharp_coll_context **context);
/* Leaves the job and ends whatever is left of it. The call is local. */
int sharp_coll_finalize(struct sharp_coll_context *context);
/* What the fabric can do for this job. */
int sharp_coll_caps_query(struct sharp_coll_context *context, struct sharp_coll_caps *caps);
/* Polls everything outstanding once and never waits. */
int sharp_coll_progress(struct sharp_coll_context *context);

/* Makes a group. The call is collective over the group's members and has one verdict for all, as
 * above. The callbacks are the job's, so the context has to be valid. *comm is written only on
 * success. */
int sharp_coll_comm_init(struct sharp_coll_context *context, struct sharp_coll_comm_init_spec *spec,
                         struct sharp_coll_comm **comm);
/* Leaves a group. The call is local. */
int sharp_coll_comm_destroy(struct sharp_coll_comm *comm);

/* Collectives. Operations of one group match by their order. The forms with _nb never wait for a
 * peer. Specs and lists of pieces may be used again at once, buffers when the request is done. */
int sharp_coll_do_barrier(struct sharp_coll_comm *comm);
int sharp_coll_do_barrier_nb(struct sharp_coll_comm *comm, void **request);
int sharp_coll_do_allreduce(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec);
int sharp_coll_do_allreduce_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec, void **request);
int sharp_coll_do_reduce(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec);
int sharp_coll_do_reduce_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec, void **request);
int sharp_coll_do_bcast(struct sharp_coll_comm *comm, struct sharp_coll_bcast_spec *spec);
int sharp_coll_do_bcast_nb(struct sharp_coll_comm *comm, struct sharp_coll_bcast_spec *spec, void **request);
/* The vector has a block for each rank, as long as rbuf. sbuf holds the window of it that begins at
 * offset; the reduced part of the window that lies in this rank's block goes to the start of
 * rbuf. */
int sharp_coll_do_reduce_scatter(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec);
int sharp_coll_do_reduce_scatter_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec, void **request);
/* The vector has a block of each rank, as long as sbuf. rbuf takes the window of it that begins at
 * offset; sbuf begins with the part of this rank's block that lies in the window. */
int sharp_coll_do_allgather(struct sharp_coll_comm *comm, struct sharp_coll_gather_spec *spec);
int sharp_coll_do_allgather_nb(struct sharp_coll_comm *comm, struct sharp_coll_gather_spec *spec, void **request);

/* Returns 1 when the request is done, else 0. It drives progress and never waits. NULL counts as
 * done. */
int sharp_coll_req_test(void *request);
/* Waits for the request, frees it, and returns its result. */
int sharp_coll_req_wait(void *request);
/* Frees a request. NULL is allowed. */
int sharp_coll_req_free(void *request);

/* Names a region of memory and does not touch it. *mr is NULL on failure. */
int sharp_coll_reg_mr(struct sharp_coll_context *context, void *buf, size_t len, void **mr);
int sharp_coll_reg_mr_v2(struct sharp_coll_context *context, void *buf, size_t len,
                         const struct sharp_coll_reg_params *params, void **mr);
int sharp_coll_dereg_mr(struct sharp_coll_context *context, void *mr);

/* Writes the settings. exec_name is read only when a header is asked for. */
int sharp_coll_print_config(FILE *stream, enum config_print_flags flags, const char *exec_name);
/* What a code means. Never NULL. */
const char *sharp_coll_strerror(int error);
/* Writes the counters of this rank. With SHARP_COLL_STATS_DUMP_MODE=2 it writes those of all ranks,
   and the call is collective over the job. */
int sharp_coll_dump_stats(struct sharp_coll_context *context);
/* Reads the log level now instead of in sharp_coll_init. */
int sharp_coll_log_early_init(void);

#ifdef __cplusplus
}
#endif
#endif
