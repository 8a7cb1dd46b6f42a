/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_rank.c - one rank gives an impossible argument or has an impossible variable: the call
 * must fail at every rank, and none may wait for ever.
 *
 *   PROGRAM RANKS [CASE ...]   the victim is the last rank, or rank 0 where a case ends in "0"
 *
 * Where ranks merely differ about a setting, rank 0's holds for all, and nothing fails.
 *
 * The library says why on stderr; the program that runs this one reads it.
 */
#include "conformance.h"

static int is_victim(int rank)
{
    return own_rank == rank;
}

static void no_job(struct sharp_coll_init_spec *spec)
{
    struct sharp_coll_context *context = NULL;
    CHECK(sharp_coll_init(spec, &context) < 0);
    CHECK(context == NULL);
}

static void told(int victim, int rank, int size)
{
    struct sharp_coll_init_spec spec = job_spec();
    if (is_victim(victim)) {
        spec.world_rank = rank;
        spec.world_size = size;
    }
    no_job(&spec);
}

static void rank_too_large(void)
{
    told(own_size - 1, own_size + 9, own_size);
}

static void rank_too_large_0(void)
{
    told(0, own_size + 9, own_size);
}

static void rank_negative(void)
{
    told(own_size - 1, -3, own_size);
}

static void rank_negative_0(void)
{
    told(0, -3, own_size);
}

static void rank_of_another(void)
{
    told(own_size - 1, own_size - 2, own_size);
}

static void size_zero(void)
{
    told(own_size - 1, own_size - 1, 0);
}

static void size_zero_0(void)
{
    told(0, 0, 0);
}

static void size_huge(void)
{
    told(own_size - 1, own_size - 1, INT32_MAX);
}

static void size_of_another(void)
{
    told(own_size - 1, own_size - 1, own_size + 1);
}

static void context_null(void)
{
    struct sharp_coll_init_spec spec = job_spec();
    struct sharp_coll_context *context = NULL;
    CHECK(sharp_coll_init(&spec, is_victim(own_size - 1) ? NULL : &context) < 0);
    CHECK(context == NULL);
}

static void with(int victim, const char *name, const char *value)
{
    struct sharp_coll_init_spec spec = job_spec();
    if (is_victim(victim))
        CHECK(setenv(name, value, 1) == 0);
    no_job(&spec);
}

static void wait_ms(void)
{
    with(own_size - 1, "TRIB_WAIT_MS", "soon");
}

static void timeout_ms(void)
{
    with(own_size - 1, "TRIB_TIMEOUT_MS", "-1");
}

static void host_not_text(void)
{
    with(own_size - 1, "TRIB_HOST", "\xff\xfe");
}

static void manager_0(void)
{
    with(0, "TRIB_MANAGER", "over there");
}

static void quota_0(void)
{
    with(0, "TRIB_QUOTA", "window=many");
}

/* One rank has no streams: every rank reports what rank 0 has. */
static void without_streams(int victim)
{
    struct sharp_coll_caps caps;
    if (is_victim(victim))
        CHECK(setenv("SHARP_COLL_ENABLE_SAT", "0", 1) == 0);
    struct sharp_coll_context *context = join();
    CHECK_OK(sharp_coll_caps_query(context, &caps));
    CHECK((caps.support_mask.feature_mask & SHARP_FEATURE_SAT) == (victim == 0 ? 0 : SHARP_FEATURE_SAT));
    CHECK_OK(sharp_coll_finalize(context));
}

static void no_streams(void)
{
    without_streams(own_size - 1);
}

static void no_streams_0(void)
{
    without_streams(0);
}

/* A group that cannot be, and afterwards one that can: what failed has not spoiled the job. */
static void no_group(int victim, int rank, int size, int has_output)
{
    struct sharp_coll_context *context = join();
    struct sharp_coll_comm *comm = NULL;
    struct oob oob = world;
    struct sharp_coll_comm_init_spec spec = group_spec(&oob);
    if (is_victim(victim)) {
        spec.rank = rank;
        spec.size = size;
    }
    CHECK(sharp_coll_comm_init(context, &spec, is_victim(victim) && !has_output ? NULL : &comm) < 0);
    CHECK(comm == NULL);
    oob = world;
    comm = make_group(context, &oob);
    CHECK_OK(sharp_coll_do_barrier(comm));
    CHECK_OK(sharp_coll_finalize(context));
}

static void member_too_large(void)
{
    no_group(own_size - 1, own_size + 9, own_size, 1);
}

static void member_too_large_0(void)
{
    no_group(0, own_size + 9, own_size, 1);
}

static void member_negative(void)
{
    no_group(own_size - 1, -1, own_size, 1);
}

static void member_of_another(void)
{
    no_group(own_size - 1, own_size - 2, own_size, 1);
}

static void group_of_none(void)
{
    no_group(own_size - 1, own_size - 1, 0, 1);
}

static void group_of_none_0(void)
{
    no_group(0, 0, 0, 1);
}

static void group_too_large(void)
{
    no_group(own_size - 1, own_size - 1, own_size + 1, 1);
}

static void group_too_small(void)
{
    if (own_size > 2)
        no_group(1, 1, 2, 1);
    else
        no_group(1, 1, -7, 1);
}

static void comm_null(void)
{
    no_group(own_size - 1, own_size - 1, own_size, 0);
}

static const struct test tests[] = {
    {"rank_too_large", rank_too_large, 2},
    {"rank_too_large_0", rank_too_large_0, 2},
    {"rank_negative", rank_negative, 2},
    {"rank_negative_0", rank_negative_0, 2},
    {"rank_of_another", rank_of_another, 2},
    {"size_zero", size_zero, 2},
    {"size_zero_0", size_zero_0, 2},
    {"size_huge", size_huge, 2},
    {"size_of_another", size_of_another, 2},
    {"context_null", context_null, 2},
    {"wait_ms", wait_ms, 2},
    {"timeout_ms", timeout_ms, 2},
    {"host_not_text", host_not_text, 2},
    {"manager_0", manager_0, 2},
    {"quota_0", quota_0, 2},
    {"no_streams", no_streams, 2},
    {"no_streams_0", no_streams_0, 2},
    {"member_too_large", member_too_large, 2},
    {"member_too_large_0", member_too_large_0, 2},
    {"member_negative", member_negative, 2},
    {"member_of_another", member_of_another, 2},
    {"group_of_none", group_of_none, 2},
    {"group_of_none_0", group_of_none_0, 2},
    {"group_too_large", group_too_large, 2},
    {"group_too_small", group_too_small, 2},
    {"comm_null", comm_null, 2},
};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
