/* SPDX-License-Identifier: Apache-2.0
 *
 * control.c - errors that only a sanitizer inside the library sees. They show that the sanitizers
 * are at work, so that silence about the other programs means something.
 *
 *   PROGRAM 1 freed    a spec that its owner has freed is read by the library
 *   PROGRAM 1 race     a vector is written by one thread while the library reads it on another
 */
#include <pthread.h>
#include <stdatomic.h>

#include "conformance.h"

static void freed(void)
{
    struct fixture fixture = set_up();
    int32_t in = 1, out = 0;
    struct sharp_coll_reduce_spec *spec = (struct sharp_coll_reduce_spec *)malloc(sizeof *spec);
    CHECK(spec != NULL);
    *spec = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    struct sharp_coll_reduce_spec *stale = spec;
    __asm__ volatile("" : "+r"(stale)); /* hides from the compiler what it would warn of */
    free(spec);
    sharp_coll_do_allreduce(fixture.comm, stale);
    take_down(&fixture);
}

enum { COUNT = 1000 };

static int32_t vector[COUNT];
static atomic_int is_over;

static void *write_vector(void *unused)
{
    for (int i = 0; !is_over; i = (i + 1) % COUNT)
        vector[i] = i;
    return unused;
}

static void race(void)
{
    static int32_t sums[COUNT];
    struct fixture fixture = set_up();
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, write_vector, NULL) == 0);
    for (int round = 0; round < 100; round++) {
        struct sharp_coll_reduce_spec spec = reduce_spec(vector, sums, COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
        CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    }
    is_over = 1;
    CHECK(pthread_join(writer, NULL) == 0);
    take_down(&fixture);
}

static const struct test tests[] = {{"freed", freed, 1}, {"race", race, 1}};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
