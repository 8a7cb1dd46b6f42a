/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ranks of one host. One posts an operation and does something else while the other is late:
 * what the library does beside it takes hardly any processor time, however often that comes.
 */
#include <stdint.h>
#include <time.h>

#include "ranks.h"

/* How long this process has had a processor, in milliseconds. */
static long processor_ms(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
    return (long)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void body(void)
{
    static const uint32_t ranks[] = {0, 1};
    trib_context *context = NULL;
    trib_group *world = NULL;
    trib_params params = rank_params();
    CHECK(trib_init(&params, &context) == TRIB_OK);
    CHECK(trib_group_create(context, ranks, 2, 0, &world) == TRIB_OK);
    CHECK(trib_barrier(world) == TRIB_OK);
    for (int32_t round = 0; round < 3; round++) {
        trib_request *request = NULL;
        int32_t in = round + (int32_t)own_rank, out = 0;
        /* Nothing but the first rank's helper hears of what the second gives. */
        if (own_rank == 1)
            usleep(700000);
        CHECK(trib_allreduce_nb(world, &in, &out, 1, TRIB_INT32, TRIB_SUM, &request) == TRIB_OK);
        long before = processor_ms();
        usleep(own_rank == 0 ? 1000000 : 300000);
        CHECK(processor_ms() - before < 50);
        CHECK(trib_finish(&request, 60000) == TRIB_OK && out == 2 * round + 1);
    }
    trib_counters counters;
    counters.struct_size = sizeof counters;
    CHECK(trib_get_counters(context, &counters) == TRIB_OK && counters.operations_board == 4);
    CHECK(trib_group_free(world) == TRIB_OK && trib_finalize(context) == TRIB_OK);
}

int main(void)
{
    return on_ranks(2, body);
}
