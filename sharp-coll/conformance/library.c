/* SPDX-License-Identifier: Apache-2.0
 *
 * C05, C06, C08 .. C11: what the headers declare and the library exports. LIBSHARP_COLL has the
 * path of the library.
 */
#include <dirent.h>
#include <dlfcn.h>

#include "conformance.h"

#if !defined(SHARP_API) || SHARP_API <= SHARP_VERSION(3, 0)
#error "SHARP_API must be a number above SHARP_VERSION(3, 0) for the preprocessor"
#endif

static void c05_what_configure_scripts_look_for(void)
{
    struct sharp_coll_reduce_spec spec;
    spec.aggr_mode = SHARP_AGGREGATION_NONE;
    CHECK(spec.aggr_mode == 0);
    CHECK(SHARP_COLL_HIDE_ERRORS == 1 && SHARP_COLL_DISABLE_LAZY_GROUP_RESOURCE_ALLOC == 2);
    CHECK(SHARP_DTYPE_BFLOAT16 == 9);
    CHECK(sharp_coll_do_reduce_scatter != NULL && sharp_coll_do_allgather != NULL && sharp_coll_reg_mr_v2 != NULL);
}

static void c06_versions(void)
{
    CHECK(SHARP_API == SHARP_VERSION(SHARP_VERNO_MAJOR, SHARP_VERNO_MINOR));
    CHECK(SHARP_VERSION(3, 6) == 50724864);
    CHECK(sizeof SHARP_VERNO_STRING > 3 && sizeof SHARP_VERNO_REV > 1);
}

static const char *const functions[] = {
    "sharp_coll_init",           "sharp_coll_finalize",           "sharp_coll_caps_query",
    "sharp_coll_progress",       "sharp_coll_comm_init",          "sharp_coll_comm_destroy",
    "sharp_coll_do_barrier",     "sharp_coll_do_barrier_nb",      "sharp_coll_do_allreduce",
    "sharp_coll_do_allreduce_nb", "sharp_coll_do_reduce",         "sharp_coll_do_reduce_nb",
    "sharp_coll_do_reduce_scatter", "sharp_coll_do_reduce_scatter_nb", "sharp_coll_do_allgather",
    "sharp_coll_do_allgather_nb", "sharp_coll_do_bcast",          "sharp_coll_do_bcast_nb",
    "sharp_coll_req_test",       "sharp_coll_req_wait",           "sharp_coll_req_free",
    "sharp_coll_reg_mr",         "sharp_coll_reg_mr_v2",          "sharp_coll_dereg_mr",
    "sharp_coll_print_config",   "sharp_coll_strerror",           "sharp_coll_dump_stats",
    "sharp_coll_log_early_init", "sharp_coll_default_config",
};

static void c08_everything_is_exported(void)
{
    void *library = dlopen(getenv("LIBSHARP_COLL"), RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    for (int at = 0; at < LENGTH(functions); at++)
        if (!dlsym(library, functions[at]))
            fail(__FILE__, __LINE__, "%s is not exported", functions[at]);
    CHECK(((const struct sharp_coll_config *)dlsym(library, "sharp_coll_default_config"))->user_progress_num_polls >= 0);
    CHECK(dlclose(library) == 0);
}

#define OFFSET(type, field, at) CHECK(offsetof(struct type, field) == (at))

static void c09_sizes_and_offsets(void)
{
    CHECK(sizeof(struct sharp_coll_config) == 32);
    OFFSET(sharp_coll_config, user_progress_num_polls, 8);
    OFFSET(sharp_coll_config, coll_timeout, 12);
    OFFSET(sharp_coll_config, flags, 16);
    OFFSET(sharp_coll_config, reserved, 20);
    CHECK(sizeof(struct sharp_coll_out_of_band_colls) == 24);
    OFFSET(sharp_coll_out_of_band_colls, barrier, 8);
    OFFSET(sharp_coll_out_of_band_colls, gather, 16);
    CHECK(sizeof(struct sharp_coll_comm_init_spec) == 32);
    OFFSET(sharp_coll_comm_init_spec, size, 4);
    OFFSET(sharp_coll_comm_init_spec, oob_ctx, 8);
    OFFSET(sharp_coll_comm_init_spec, group_world_ranks, 16);
    OFFSET(sharp_coll_comm_init_spec, reserved, 24);
    CHECK(sizeof(struct sharp_coll_init_spec) == 120);
    OFFSET(sharp_coll_init_spec, world_rank, 8);
    OFFSET(sharp_coll_init_spec, world_size, 12);
    OFFSET(sharp_coll_init_spec, progress_func, 16);
    OFFSET(sharp_coll_init_spec, group_channel_idx, 24);
    OFFSET(sharp_coll_init_spec, config, 32);
    OFFSET(sharp_coll_init_spec, oob_colls, 64);
    OFFSET(sharp_coll_init_spec, world_local_rank, 88);
    OFFSET(sharp_coll_init_spec, enable_thread_support, 92);
    OFFSET(sharp_coll_init_spec, oob_ctx, 96);
    OFFSET(sharp_coll_init_spec, reserved, 104);
    CHECK(sizeof(struct sharp_coll_caps) == 112);
    OFFSET(sharp_coll_caps, reserved, 8);
    OFFSET(sharp_coll_caps, support_mask.dtypes, 24);
    OFFSET(sharp_coll_caps, support_mask.tag_dtypes, 32);
    OFFSET(sharp_coll_caps, support_mask.reduce_ops, 40);
    OFFSET(sharp_coll_caps, support_mask.feature_mask, 48);
    OFFSET(sharp_coll_caps, resources.max_osts, 88);
    OFFSET(sharp_coll_caps, resources.user_data_per_ost, 92);
    OFFSET(sharp_coll_caps, resources.max_groups, 96);
    OFFSET(sharp_coll_caps, resources.max_group_channels, 100);
    OFFSET(sharp_coll_caps, resources.osts_per_group, 104);
    CHECK(sizeof(struct sharp_data_iov) == 24);
    OFFSET(sharp_data_iov, length, 8);
    OFFSET(sharp_data_iov, mem_handle, 16);
    CHECK(sizeof(struct sharp_coll_reg_params) == 24);
    OFFSET(sharp_coll_reg_params, dmabuf_fd, 8);
    OFFSET(sharp_coll_reg_params, dmabuf_offset, 16);
    CHECK(sizeof(struct sharp_coll_data_desc) == 40);
    OFFSET(sharp_coll_data_desc, mem_type, 4);
    OFFSET(sharp_coll_data_desc, buffer.ptr, 16);
    OFFSET(sharp_coll_data_desc, buffer.length, 24);
    OFFSET(sharp_coll_data_desc, buffer.mem_handle, 32);
    OFFSET(sharp_coll_data_desc, iov.count, 16);
    OFFSET(sharp_coll_data_desc, iov.vector, 24);
    CHECK(sizeof(struct sharp_coll_reduce_spec) == 136);
    OFFSET(sharp_coll_reduce_spec, sbuf_desc, 8);
    OFFSET(sharp_coll_reduce_spec, rbuf_desc, 48);
    OFFSET(sharp_coll_reduce_spec, dtype, 88);
    OFFSET(sharp_coll_reduce_spec, length, 96);
    OFFSET(sharp_coll_reduce_spec, op, 104);
    OFFSET(sharp_coll_reduce_spec, tag_dtype, 108);
    OFFSET(sharp_coll_reduce_spec, aggr_mode, 112);
    OFFSET(sharp_coll_reduce_spec, stream_lock_batch_size, 116);
    OFFSET(sharp_coll_reduce_spec, offset, 120);
    CHECK(sizeof(struct sharp_coll_bcast_spec) == 72);
    OFFSET(sharp_coll_bcast_spec, buf_desc, 8);
    OFFSET(sharp_coll_bcast_spec, size, 48);
    CHECK(sizeof(struct sharp_coll_bcast_spec_v2) == 112);
    OFFSET(sharp_coll_bcast_spec_v2, rbuf_desc, 48);
    OFFSET(sharp_coll_bcast_spec_v2, size, 88);
    CHECK(sizeof(struct sharp_coll_gather_spec) == 120);
    OFFSET(sharp_coll_gather_spec, rbuf_desc, 40);
    OFFSET(sharp_coll_gather_spec, dtype, 80);
    OFFSET(sharp_coll_gather_spec, size, 88);
    OFFSET(sharp_coll_gather_spec, offset, 96);
    CHECK(sizeof(enum sharp_datatype) == 4 && SHARP_DTYPE_NULL == 12 && SHARP_OP_NULL == 12);
    CHECK(SHARP_COLL_ENO_RESOURCE == -20 && SHARP_COLL_DATA_MAX_IOV == 15);
}

typedef int (*init_call)(struct sharp_coll_init_spec *, struct sharp_coll_context **);
typedef int (*comm_call)(struct sharp_coll_context *, struct sharp_coll_comm_init_spec *, struct sharp_coll_comm **);
typedef int (*allreduce_call)(struct sharp_coll_comm *, struct sharp_coll_reduce_spec *);
typedef int (*finalize_call)(struct sharp_coll_context *);

static int threads_of_this_process(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Whether this thread is the last one. One that has been joined is listed until the kernel has
 * taken it down, which may be a moment later. */
static int is_the_only_thread(void)
{
    for (int pauses = 0; threads_of_this_process() != 1; pauses++) {
        if (pauses == 10000)
            return 0;
        usleep(1000);
    }
    return 1;
}

/* One job through a library that is loaded for it. */
static void one_life(void)
{
    void *library = dlopen(getenv("LIBSHARP_COLL"), RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    init_call init = (init_call)(intptr_t)dlsym(library, "sharp_coll_init");
    comm_call comm_init = (comm_call)(intptr_t)dlsym(library, "sharp_coll_comm_init");
    allreduce_call allreduce = (allreduce_call)(intptr_t)dlsym(library, "sharp_coll_do_allreduce");
    finalize_call finalize = (finalize_call)(intptr_t)dlsym(library, "sharp_coll_finalize");
    CHECK(init && comm_init && allreduce && finalize);
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_comm *comm = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    struct oob oob = world;
    struct sharp_coll_comm_init_spec group = group_spec(&oob);
    int32_t in = 1, out = 0;
    struct sharp_coll_reduce_spec reduce = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK(init(&spec, &context) == 0);
    CHECK(comm_init(context, &group, &comm) == 0);
    CHECK(allreduce(comm, &reduce) == 0);
    CHECK(out == own_size);
    CHECK(finalize(context) == 0);
    CHECK(is_the_only_thread());
    CHECK(dlclose(library) == 0);
}

static void c11_load_use_unload_again(void)
{
    for (int round = 0; round < 3; round++)
        one_life();
}

static const struct test tests[] = {
    {"C05", c05_what_configure_scripts_look_for, 1},
    {"C06", c06_versions, 1},
    {"C08", c08_everything_is_exported, 1},
    {"C09", c09_sizes_and_offsets, 1},
    {"C11", c11_load_use_unload_again, 1},
};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
