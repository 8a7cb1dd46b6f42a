/* SPDX-License-Identifier: Apache-2.0
 *
 * C71 .. C78: how jobs are left, and what is printed.
 */
#include <fcntl.h>
#include <limits.h>

#include "conformance.h"

static void c71_leaving_is_local(void)
{
    struct fixture fixture = set_up();
    CHECK_OK(sharp_coll_do_barrier(fixture.comm));
    meet();
    /* All others are gone when rank 0 leaves. */
    if (own_rank == 0) {
        nap(300);
        CHECK_OK(sharp_coll_comm_destroy(fixture.comm));
        CHECK_OK(sharp_coll_finalize(fixture.context));
    } else {
        _exit(0);
    }
}

static void c72_finalize_frees_what_is_left(void)
{
    struct fixture fixture = set_up();
    struct oob oob = world;
    static int32_t in[50], out[50];
    void *handle = NULL, *request = NULL;
    struct sharp_coll_comm *other = make_group(fixture.context, &oob);
    for (int at = 0; at < 50; at++) {
        struct sharp_coll_reduce_spec spec = reduce_spec(&in[at], &out[at], 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
        CHECK_OK(sharp_coll_reg_mr(fixture.context, &in[at], 4, &handle));
        CHECK_OK(sharp_coll_do_allreduce_nb(at % 2 ? other : fixture.comm, &spec, &request));
        while (at < 40 && sharp_coll_req_test(request) == 0)
            ;
    }
    /* A rank that leaves with operations under way ends them for all, and some may still have to
     * post. */
    meet();
    CHECK_OK(sharp_coll_finalize(fixture.context));
    /* Handles of a job that is over are errors, not crashes. */
    CHECK(sharp_coll_req_test(request) == 1);
    CHECK(sharp_coll_do_barrier(other) < 0);
    CHECK(sharp_coll_comm_destroy(other) < 0);
    CHECK(sharp_coll_dereg_mr(fixture.context, handle) < 0);
    CHECK(sharp_coll_finalize(fixture.context) < 0);
    fixture = set_up();
    take_down(&fixture);
}

static void c73_words_for_every_number(void)
{
    static const int others[] = {1, 2, 1000, INT_MAX, INT_MIN, -21, -1000};
    for (int code = -20; code <= 0; code++)
        CHECK(sharp_coll_strerror(code) && sharp_coll_strerror(code)[0]);
    for (int at = 0; at < LENGTH(others); at++)
        CHECK(sharp_coll_strerror(others[at]) && sharp_coll_strerror(others[at])[0]);
}

static void c74_never_positive(void)
{
    struct fixture fixture = set_up();
    struct sharp_coll_comm *comm = NULL;
    void *request = NULL, *handle = NULL;
    struct sharp_coll_reduce_spec reduce;
    struct sharp_coll_bcast_spec bcast;
    struct sharp_coll_gather_spec gather;
    struct sharp_coll_caps caps;
    struct sharp_coll_context *context = NULL;
    /* This is garbage with which no collective starts: types of descriptors that do not exist. */
    for (int round = 0; round < 200; round++) {
        garbage(&reduce, sizeof reduce);
        garbage(&bcast, sizeof bcast);
        garbage(&gather, sizeof gather);
        reduce.sbuf_desc.type = reduce.rbuf_desc.type = (enum sharp_data_buffer_type)(7 + round);
        bcast.buf_desc.type = gather.sbuf_desc.type = gather.rbuf_desc.type = (enum sharp_data_buffer_type)(7 + round);
        CHECK(sharp_coll_do_allreduce(fixture.comm, &reduce) < 0);
        CHECK(sharp_coll_do_allreduce_nb(fixture.comm, &reduce, &request) < 0);
        CHECK(sharp_coll_do_reduce(fixture.comm, &reduce) < 0);
        CHECK(sharp_coll_do_reduce_scatter(fixture.comm, &reduce) < 0);
        CHECK(sharp_coll_do_bcast(fixture.comm, &bcast) < 0);
        CHECK(sharp_coll_do_allgather(fixture.comm, &gather) < 0);
    }
    CHECK(sharp_coll_do_allreduce(fixture.comm, NULL) < 0);
    CHECK(sharp_coll_do_allreduce(NULL, &reduce) < 0);
    CHECK(sharp_coll_do_barrier(NULL) < 0);
    CHECK(sharp_coll_do_barrier_nb(fixture.comm, NULL) < 0);
    CHECK(sharp_coll_init(NULL, &context) < 0);
    CHECK(sharp_coll_comm_init(fixture.context, NULL, &comm) < 0);
    CHECK(sharp_coll_comm_init(NULL, NULL, &comm) < 0);
    CHECK(sharp_coll_caps_query(NULL, &caps) < 0);
    CHECK(sharp_coll_caps_query(fixture.context, NULL) < 0);
    CHECK(sharp_coll_progress(NULL) < 0);
    CHECK(sharp_coll_comm_destroy(NULL) < 0);
    CHECK(sharp_coll_finalize(NULL) < 0);
    CHECK(sharp_coll_reg_mr(fixture.context, NULL, 0, NULL) < 0);
    CHECK(sharp_coll_dereg_mr(fixture.context, NULL) < 0);
    CHECK(sharp_coll_req_wait(NULL) < 0);
    CHECK(sharp_coll_dump_stats(NULL) < 0);
    CHECK(sharp_coll_print_config(NULL, SHARP_COLL_CONFIG_PRINT_CONFIG, NULL) < 0);
    struct sharp_coll_init_spec spec = job_spec();
    spec.world_rank = -1;
    CHECK(sharp_coll_init(&spec, &context) < 0);
    spec.world_rank = own_size;
    CHECK(sharp_coll_init(&spec, &context) < 0);
    CHECK(context == NULL && comm == NULL && request == NULL && handle == NULL);
    CHECK_OK(sharp_coll_do_barrier(fixture.comm));
    take_down(&fixture);
}

/* Bytes that a call writes to a stream of this process. */
static size_t written_to(int stream, void (*call)(void))
{
    char name[] = "/tmp/conformance-XXXXXX";
    int file = mkstemp(name), kept = dup(stream);
    CHECK(file >= 0 && kept >= 0);
    unlink(name);
    fflush(NULL);
    CHECK(dup2(file, stream) == stream);
    call();
    fflush(NULL);
    CHECK(dup2(kept, stream) == stream);
    off_t len = lseek(file, 0, SEEK_END);
    close(file);
    close(kept);
    return (size_t)len;
}

static unsigned flags_of_init;

static void fail_to_join(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    struct oob oob = world;
    spec.config.flags = flags_of_init;
    oob.fail_gather = 1;
    spec.oob_ctx = &oob;
    CHECK_CODE(sharp_coll_init(&spec, &context), SHARP_COLL_EOOB);
}

/* A library may tell of the first failure nevertheless, because the client's user has no other way
   to learn of its cause. */
static void c75_hidden_errors(void)
{
    flags_of_init = 0;
    CHECK(written_to(2, fail_to_join) > 0);
    flags_of_init = SHARP_COLL_HIDE_ERRORS;
    written_to(2, fail_to_join);
    CHECK(written_to(2, fail_to_join) == 0);
    CHECK(setenv("SHARP_COLL_LOG_LEVEL", "0", 1) == 0);
    CHECK(written_to(2, fail_to_join) == 0);
    CHECK(unsetenv("SHARP_COLL_LOG_LEVEL") == 0);
}

static void c76_environment_is_read_at_init(void)
{
    struct sharp_coll_caps caps;
    CHECK(setenv("SHARP_COLL_NO_SUCH_SETTING", "x", 1) == 0);
    CHECK(setenv("SHARP_COLL_SAT_THRESHOLD", "not a number", 1) == 0);
    struct fixture fixture = set_up();
    CHECK_OK(sharp_coll_caps_query(fixture.context, &caps));
    CHECK(caps.support_mask.feature_mask & SHARP_FEATURE_SAT);
    take_down(&fixture);
    CHECK(unsetenv("SHARP_COLL_SAT_THRESHOLD") == 0);
    CHECK(setenv("SHARP_COLL_JOB_QUOTA_MAX_GROUPS", "3", 1) == 0);
    fixture = set_up();
    CHECK_OK(sharp_coll_caps_query(fixture.context, &caps));
    CHECK(caps.resources.max_groups == 3);
    take_down(&fixture);
    CHECK(unsetenv("SHARP_COLL_JOB_QUOTA_MAX_GROUPS") == 0);
}

static void use_everything(void)
{
    struct fixture fixture = set_up();
    int32_t in = 1, out = 0;
    struct sharp_coll_reduce_spec spec = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_log_early_init());
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    CHECK_OK(sharp_coll_dump_stats(fixture.context));
    spec.op = SHARP_OP_NULL;
    CHECK(sharp_coll_do_allreduce(fixture.comm, &spec) < 0);
    take_down(&fixture);
}

static void c77_nothing_on_stdout(void)
{
    CHECK(written_to(1, use_everything) == 0);
}

static void c78_printing_settings(void)
{
    /* One client calls it so, with two arguments. */
    int (*two)(FILE *, int) = (int (*)(FILE *, int))(void (*)(void))sharp_coll_print_config;
    char *text = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&text, &len);
    CHECK(stream != NULL);
    CHECK_OK(two(stream, SHARP_COLL_CONFIG_PRINT_CONFIG));
    CHECK(fclose(stream) == 0);
    CHECK(strstr(text, "SHARP_COLL_LOG_LEVEL=") != NULL);
    free(text);
    stream = open_memstream(&text, &len);
    CHECK(stream != NULL);
    CHECK_OK(sharp_coll_print_config(stream,
                                     (enum config_print_flags)(SHARP_COLL_CONFIG_PRINT_CONFIG | SHARP_COLL_CONFIG_PRINT_HEADER |
                                                               SHARP_COLL_CONFIG_PRINT_DOC | SHARP_COLL_CONFIG_PRINT_HIDDEN),
                                     "a program"));
    CHECK(fclose(stream) == 0);
    CHECK(strstr(text, "a program") != NULL && strstr(text, "SHARP_COLL_BUFFER_POOL_SIZE=") != NULL);
    free(text);
}

static const struct test tests[] = {
    {"C71", c71_leaving_is_local, 1},
    {"C72", c72_finalize_frees_what_is_left, 1},
    {"C73", c73_words_for_every_number, 1},
    {"C74", c74_never_positive, 1},
    {"C75", c75_hidden_errors, 1},
    {"C76", c76_environment_is_read_at_init, 1},
    {"C77", c77_nothing_on_stdout, 1},
    {"C78", c78_printing_settings, 1},
};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
