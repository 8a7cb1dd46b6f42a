/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank calls trib_init with an impossible argument: the call fails at every rank, with that
 * rank's number and reason, and no rank waits for ever. The program needs no fabric, because no
 * rank gets as far as the manager.
 */
#include "ranks.h"

/* What is wrong, and which words every rank gets for it. */
struct fault {
    void (*spoil)(trib_params *params);
    const char *name, *value; /* of the environment, if spoil is NULL */
    const char *words;
    int of_root_only;
};

static int wants_no_context;

static void rank_too_large(trib_params *params)
{
    params->rank = own_size + 9;
}

static void size_zero(trib_params *params)
{
    params->size = 0;
}

static void size_huge(trib_params *params)
{
    params->size = UINT32_MAX;
}

static void size_of_another(trib_params *params)
{
    params->size++;
}

static void rank_of_another(trib_params *params)
{
    params->rank = own_size - 1 - own_rank;
}

static void timeout_negative(trib_params *params)
{
    params->timeout_ms = -1;
}

static void quota_senseless(trib_params *params)
{
    params->quota = "lanes=2,lanes";
}

static void host_not_text(trib_params *params)
{
    params->host = "\xff\xfe";
}

static void host_too_long(trib_params *params)
{
    static char name[400];
    memset(name, 'x', sizeof name - 1);
    params->host = name;
}

static void no_context(trib_params *params)
{
    (void)params;
    wants_no_context = 1;
}

static const struct fault faults[] = {
    {rank_too_large, NULL, NULL, "does not exist in a job of", 0},
    {size_zero, NULL, NULL, "not 0", 0},
    {size_huge, NULL, NULL, "not 4294967295", 0},
    {size_of_another, NULL, NULL, "it was told that it is rank", 0},
    {timeout_negative, NULL, NULL, "params->timeout_ms is negative", 0},
    {quota_senseless, NULL, NULL, "params->quota: `lanes`", 0},
    {host_not_text, NULL, NULL, "params->host is not UTF-8", 0},
    {host_too_long, NULL, NULL, "a host name has 1 to 253 bytes", 0},
    {no_context, NULL, NULL, "argument `ctx` is NULL", 0},
    {NULL, "TRIB_WAIT_MS", "soon", "TRIB_WAIT_MS=soon", 0},
    {NULL, "TRIB_TIMEOUT_MS", "-1", "TRIB_TIMEOUT_MS=-1", 0},
    {NULL, "TRIB_HOST", "\xff\xfe", "TRIB_HOST is not UTF-8", 0},
    {NULL, "TRIB_NUMA", "65536", "TRIB_NUMA=65536 is neither the number of a NUMA node", 0},
    {NULL, "TRIB_QUOTA", "window=many", "`window=many`", 1},
    {NULL, "TRIB_MANAGER", "over there", "`over there` is not a manager address", 1},
};

static const struct fault *fault;
static uint32_t victim;

static void fails_with_it(void)
{
    trib_context *context = NULL;
    trib_params params = rank_params();
    char prefix[32];
    alarm(30);
    CHECK(setenv("TRIB_MANAGER", "tls://127.0.0.1:9?credentials=/nonexistent", 1) == 0);
    if (own_rank == victim) {
        if (fault->spoil)
            fault->spoil(&params);
        else
            CHECK(setenv(fault->name, fault->value, 1) == 0);
    }
    CHECK(trib_init(&params, wants_no_context ? NULL : &context) == TRIB_ERR_INVALID);
    CHECK(context == NULL);
    snprintf(prefix, sizeof prefix, "rank %u: ", victim);
    CHECK(strncmp(trib_last_error(), prefix, strlen(prefix)) == 0);
    CHECK(strstr(trib_last_error(), fault->words));
}

/* Two ranks give the same rank. */
static void fails_with_a_twin(void)
{
    trib_context *context = NULL;
    trib_params params = rank_params();
    alarm(30);
    CHECK(setenv("TRIB_MANAGER", "tls://127.0.0.1:9?credentials=/nonexistent", 1) == 0);
    if (own_rank == own_size - 1)
        rank_of_another(&params);
    CHECK(trib_init(&params, &context) == TRIB_ERR_INVALID);
    CHECK(context == NULL && strstr(trib_last_error(), "it was told that it is rank 0 of"));
}

int main(void)
{
    static const uint32_t sizes[] = {2, 3, 4, 8};
    for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        for (fault = faults; fault < faults + sizeof faults / sizeof faults[0]; fault++) {
            victim = fault->of_root_only ? 0 : sizes[at] - 1;
            if (on_ranks(sizes[at], fails_with_it) != 0)
                return 1;
            victim = 0;
            /* Rank 0 with a size that is only too large reads more records than there are: the
               words differ, and nothing hangs. */
            if (fault->spoil != size_of_another && on_ranks(sizes[at], fails_with_it) != 0)
                return 1;
        }
        if (on_ranks(sizes[at], fails_with_a_twin) != 0)
            return 1;
    }
    return 0;
}
