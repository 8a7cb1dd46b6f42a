/* SPDX-License-Identifier: Apache-2.0
 *
 * C10: a program with an object of its own that has the name of the library's. Its contents must
 * decide nothing.
 */
#define sharp_coll_default_config hidden_by_this_program
#include "conformance.h"
#undef sharp_coll_default_config

const struct sharp_coll_config hidden_by_this_program = {"mlx5_0", 128, 100, 0, {0, 0, 0}};
extern const struct sharp_coll_config sharp_coll_default_config;
const struct sharp_coll_config sharp_coll_default_config = {(const char *)(uintptr_t)0x10, -1, 1, 0xffffffffu, {-1, -1, -1}};

static void c10_own_default_config(void)
{
    struct fixture fixture = set_up();
    int32_t in = 1, out = 0;
    struct sharp_coll_reduce_spec spec = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    CHECK(out == own_size);
    take_down(&fixture);
}

static const struct test tests[] = {{"C10", c10_own_default_config, 1}};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
