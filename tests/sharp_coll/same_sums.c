/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of what files hold, by every call of libsharp_coll that can take one, and cut into several
 * calls. A rank gives the numbers of the file given.K, where K is its entry in a list. Fails unless
 * all calls give the same bits; rank 0 writes these to the file `sums`.
 *
 * usage: same_sums RANKS sums FOLDER TYPE COUNT K,K,... [cut]
 *   TYPE   float32, float64, float16 or bfloat16
 *   cut    the sums of parts of the vector are those of the whole, too
 */
#include "conformance.h"

static const char *folder, *list;
static enum sharp_datatype type;
static size_t count;
static int is_cut;
static struct sharp_coll_comm *comm;
static char *given, *sums, *others;

static void read_given(void)
{
    char path[4096];
    char *rest = (char *)(uintptr_t)list;
    long which = 0;

    for (int at = 0; at <= own_rank; at++)
        which = strtol(rest + (at > 0), &rest, 10);
    snprintf(path, sizeof path, "%s/given.%ld", folder, which);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fread(given, size_of(type), count, file) == count);
    fclose(file);
}

static void write_sums(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/sums", folder);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(sums, size_of(type), count, file) == count && fclose(file) == 0);
}

static void compare(size_t from, size_t many, const char *call)
{
    if (memcmp(others, sums + from * size_of(type), many * size_of(type)) != 0)
        fail(__FILE__, __LINE__, "%s has other bits than sharp_coll_do_allreduce", call);
}

static struct sharp_coll_reduce_spec sum_of(const char *from, char *into, size_t many)
{
    struct sharp_coll_reduce_spec spec = reduce_spec(from, into, many, type, SHARP_OP_SUM);
    spec.root = own_size - 1;
    return spec;
}

/* Nothing of an earlier call may pass for a result. */
static void forget(void)
{
    memset(others, 0x5a, count * size_of(type));
}

static void by_every_call(void)
{
    struct sharp_coll_reduce_spec spec = sum_of(given, sums, count);
    void *request = NULL;

    CHECK_OK(sharp_coll_do_allreduce(comm, &spec));
    memcpy(others, given, count * size_of(type));
    spec = sum_of(others, others, count);
    CHECK_OK(sharp_coll_do_allreduce(comm, &spec));
    compare(0, count, "sharp_coll_do_allreduce in place");
    forget();
    spec = sum_of(given, others, count);
    CHECK_OK(sharp_coll_do_allreduce_nb(comm, &spec, &request));
    CHECK_OK(sharp_coll_req_wait(request));
    compare(0, count, "sharp_coll_do_allreduce_nb");
    forget();
    CHECK_OK(sharp_coll_do_reduce(comm, &spec));
    if (own_rank == spec.root)
        compare(0, count, "sharp_coll_do_reduce");
}

/* A block for each rank, of as much of the vector as that leaves. */
static void scatter(void)
{
    size_t block = count / (size_t)own_size;
    struct sharp_coll_reduce_spec spec = sum_of(given, others, block * (size_t)own_size);

    spec.rbuf_desc = buffer_of(others, block * size_of(type), NULL);
    spec.offset = 0;
    forget();
    CHECK_OK(sharp_coll_do_reduce_scatter(comm, &spec));
    compare((size_t)own_rank * block, block, "sharp_coll_do_reduce_scatter");
}

static void in_parts(size_t part)
{
    for (size_t from = 0; from < count; from += part) {
        size_t many = count - from < part ? count - from : part;
        struct sharp_coll_reduce_spec spec = sum_of(given + from * size_of(type), others, many);
        forget();
        CHECK_OK(sharp_coll_do_allreduce(comm, &spec));
        compare(from, many, "a part");
    }
}

static void take_sums(void)
{
    struct fixture fixture = set_up();

    comm = fixture.comm;
    given = calloc(count, size_of(type));
    sums = calloc(count, size_of(type));
    others = calloc(count, size_of(type));
    CHECK(given != NULL && sums != NULL && others != NULL);
    read_given();
    by_every_call();
    if (count >= (size_t)own_size)
        scatter();
    for (size_t part = count / 2 + 1; is_cut && part > 4; part /= 3)
        in_parts(part);
    if (own_rank == 0)
        write_sums();
    free(given);
    free(sums);
    free(others);
    take_down(&fixture);
}

static const struct test tests[] = {{"sums", take_sums, 1}};

int main(int argc, char **argv)
{
    static const char *const names[] = {"float32", "float64", "float16", "bfloat16"};
    static const enum sharp_datatype types[] = {SHARP_DTYPE_FLOAT, SHARP_DTYPE_DOUBLE, SHARP_DTYPE_FLOAT_SHORT,
                                                SHARP_DTYPE_BFLOAT16};
    int known = 0;

    if (argc < 7) {
        fprintf(stderr, "usage: same_sums RANKS sums FOLDER TYPE COUNT K,K,... [cut]\n");
        return 2;
    }
    folder = argv[3];
    for (int at = 0; at < LENGTH(names); at++)
        if (strcmp(argv[4], names[at]) == 0) {
            type = types[at];
            known = 1;
        }
    count = strtoul(argv[5], NULL, 10);
    list = argv[6];
    is_cut = argc > 7 && strcmp(argv[7], "cut") == 0;
    if (!known || count == 0) {
        fprintf(stderr, "same_sums: no such type, or no elements\n");
        return 2;
    }
    return run_tests(tests, LENGTH(tests), argc, argv);
}
