/* SPDX-License-Identifier: Apache-2.0
 *
 * C34 .. C57: the data that collectives deliver.
 */
#include <pthread.h>

#include "conformance.h"

/* Element i of rank r. It is small, so that sums and products of floating-point numbers are
 * exact. */
static int value_of(int rank, size_t i)
{
    return (int)((i * 7 + (size_t)rank * 5 + i / 11) % 4);
}

/* Bits for integers of all sizes, whose sums wrap. */
static uint64_t bits_of(int rank, size_t i)
{
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + (uint64_t)(rank + 1) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 29;
    return i % 5 == 0 ? 0 : x * 0x94d049bb133111ebu;
}

/* One integer type: fills a vector, and tells what an operator makes of all ranks' elements. */
#define INTEGER(name, type, wide)                                                                                      \
    static void fill_##name(void *vector, size_t count, int rank)                                                     \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++)                                                                             \
            ((type *)vector)[i] = (type)bits_of(rank, i);                                                              \
    }                                                                                                                  \
    static int matches_##name(const void *vector, size_t i, int ranks, int op)                                         \
    {                                                                                                                  \
        type sum = (type)bits_of(0, i);                                                                                \
        for (int r = 1; r < ranks; r++) {                                                                              \
            type x = (type)bits_of(r, i);                                                                              \
            switch (op) {                                                                                              \
            case SHARP_OP_MAX: sum = x > sum ? x : sum; break;                                                         \
            case SHARP_OP_MIN: sum = x < sum ? x : sum; break;                                                         \
            case SHARP_OP_SUM: sum = (type)((wide)sum + (wide)x); break;                                               \
            case SHARP_OP_PROD: sum = (type)((wide)sum * (wide)x); break;                                              \
            case SHARP_OP_LAND: sum = sum && x; break;                                                                 \
            case SHARP_OP_LOR: sum = sum || x; break;                                                                  \
            case SHARP_OP_LXOR: sum = !sum != !x; break;                                                               \
            case SHARP_OP_BAND: sum = (type)(sum & x); break;                                                          \
            case SHARP_OP_BOR: sum = (type)(sum | x); break;                                                           \
            case SHARP_OP_BXOR: sum = (type)(sum ^ x); break;                                                          \
            }                                                                                                          \
        }                                                                                                              \
        return ((const type *)vector)[i] == sum;                                                                       \
    }

#define FLOAT(name, type)                                                                                              \
    static void fill_##name(void *vector, size_t count, int rank)                                                     \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++)                                                                             \
            ((type *)vector)[i] = (type)value_of(rank, i);                                                             \
    }                                                                                                                  \
    static int matches_##name(const void *vector, size_t i, int ranks, int op)                                         \
    {                                                                                                                  \
        type sum = (type)value_of(0, i);                                                                               \
        for (int r = 1; r < ranks; r++) {                                                                              \
            type x = (type)value_of(r, i);                                                                             \
            switch (op) {                                                                                              \
            case SHARP_OP_MAX: sum = x > sum ? x : sum; break;                                                         \
            case SHARP_OP_MIN: sum = x < sum ? x : sum; break;                                                         \
            case SHARP_OP_SUM: sum += x; break;                                                                        \
            case SHARP_OP_PROD: sum *= x; break;                                                                       \
            }                                                                                                          \
        }                                                                                                              \
        return ((const type *)vector)[i] == sum;                                                                       \
    }

/* Two-byte floating point: the patterns of small integers are denormals, and for binary16 they
 * are equally spaced up to 0x7ff. So sums of the patterns are the patterns of the sums. */
static void fill_denormal(void *vector, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        ((uint16_t *)vector)[i] = (uint16_t)value_of(rank, i);
}

static int matches_denormal(const void *vector, size_t i, int ranks, int op)
{
    int sum = value_of(0, i);
    for (int r = 1; r < ranks; r++) {
        int x = value_of(r, i);
        if (op == SHARP_OP_SUM)
            sum += x;
        else if (op == SHARP_OP_MAX)
            sum = x > sum ? x : sum;
        else
            sum = x < sum ? x : sum;
    }
    return ((const uint16_t *)vector)[i] == sum;
}

INTEGER(u32, uint32_t, uint64_t)
INTEGER(i32, int32_t, uint64_t)
INTEGER(u64, uint64_t, uint64_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(u16, uint16_t, uint64_t)
INTEGER(i16, int16_t, uint64_t)
INTEGER(u8, uint8_t, uint64_t)
INTEGER(i8, int8_t, uint64_t)
FLOAT(f32, float)
FLOAT(f64, double)

static const struct type {
    enum sharp_datatype dtype;
    int is_float;
    void (*fill)(void *, size_t, int);
    int (*matches)(const void *, size_t, int, int);
} types[] = {
    {SHARP_DTYPE_UNSIGNED, 0, fill_u32, matches_u32},
    {SHARP_DTYPE_INT, 0, fill_i32, matches_i32},
    {SHARP_DTYPE_UNSIGNED_LONG, 0, fill_u64, matches_u64},
    {SHARP_DTYPE_LONG, 0, fill_i64, matches_i64},
    {SHARP_DTYPE_FLOAT, 1, fill_f32, matches_f32},
    {SHARP_DTYPE_DOUBLE, 1, fill_f64, matches_f64},
    {SHARP_DTYPE_UNSIGNED_SHORT, 0, fill_u16, matches_u16},
    {SHARP_DTYPE_SHORT, 0, fill_i16, matches_i16},
    {SHARP_DTYPE_FLOAT_SHORT, 1, fill_denormal, matches_denormal},
    {SHARP_DTYPE_BFLOAT16, 1, fill_denormal, matches_denormal},
    {SHARP_DTYPE_UINT8, 0, fill_u8, matches_u8},
    {SHARP_DTYPE_INT8, 0, fill_i8, matches_i8},
};

static int is_short_float(const struct type *type)
{
    return type->fill == fill_denormal;
}

static void c34_every_type_and_operator(void)
{
    static const size_t counts[] = {1, 3, 64, 1000, 65536};
    struct fixture fixture = set_up();
    void *in = malloc(65536 * 8), *out = malloc(65536 * 8);
    CHECK(in && out);
    for (int t = 0; t < LENGTH(types); t++)
        for (int op = SHARP_OP_MAX; op <= SHARP_OP_BXOR; op++)
            for (int c = 0; c < LENGTH(counts); c++) {
                const struct type *type = &types[t];
                struct sharp_coll_reduce_spec spec =
                    reduce_spec(in, out, counts[c], type->dtype, (enum sharp_reduce_op)op);
                if (type->is_float && op > SHARP_OP_PROD) {
                    CHECK_CODE(sharp_coll_do_allreduce(fixture.comm, &spec), SHARP_COLL_ENOT_SUPP);
                    continue;
                }
                /* Products of denormals vanish, so products of the two-byte types say little. */
                if ((is_short_float(type) && op == SHARP_OP_PROD) || (c == LENGTH(counts) - 1 && op % 3 != t % 3))
                    continue;
                type->fill(in, counts[c], own_rank);
                CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
                for (size_t i = 0; i < counts[c]; i++)
                    if (!type->matches(out, i, own_size, op))
                        fail(__FILE__, __LINE__, "type %d, operator %d: element %zu of %zu is wrong", t, op, i, counts[c]);
            }
    struct sharp_coll_reduce_spec spec = reduce_spec(in, out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.dtype = (enum sharp_datatype)0xffff;
    CHECK(sharp_coll_do_allreduce(fixture.comm, &spec) < 0);
    free(in);
    free(out);
    take_down(&fixture);
}

static void c35_denormals_are_kept(void)
{
    struct fixture fixture = set_up();
    static const enum sharp_datatype dtypes[] = {SHARP_DTYPE_FLOAT_SHORT, SHARP_DTYPE_BFLOAT16};
    static const enum sharp_reduce_op ops[] = {SHARP_OP_SUM, SHARP_OP_MAX, SHARP_OP_MIN};
    uint16_t in[40], out[40];
    for (int t = 0; t < 2; t++)
        for (int o = 0; o < 3; o++) {
            struct sharp_coll_reduce_spec spec = reduce_spec(in, out, 40, dtypes[t], ops[o]);
            fill_denormal(in, 40, own_rank);
            CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
            for (size_t i = 0; i < 40; i++)
                CHECK(matches_denormal(out, i, own_size, (int)ops[o]));
        }
    take_down(&fixture);
}

static void c36_in_place(void)
{
    static const size_t counts[] = {1, 5000, 300000};
    struct fixture fixture = set_up();
    for (int c = 0; c < LENGTH(counts); c++) {
        int32_t *both = (int32_t *)malloc(counts[c] * 4);
        void *handle = NULL;
        CHECK(both != NULL);
        CHECK_OK(sharp_coll_reg_mr(fixture.context, both, counts[c] * 4, &handle));
        fill_i32(both, counts[c], own_rank);
        struct sharp_coll_reduce_spec spec = reduce_spec(both, both, counts[c], SHARP_DTYPE_INT, SHARP_OP_SUM);
        spec.sbuf_desc.buffer.mem_handle = spec.rbuf_desc.buffer.mem_handle = handle;
        void *request = NULL;
        CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request));
        finish(request);
        for (size_t i = 0; i < counts[c]; i++)
            CHECK(matches_i32(both, i, own_size, SHARP_OP_SUM));
        CHECK_OK(sharp_coll_dereg_mr(fixture.context, handle));
        free(both);
    }
    take_down(&fixture);
}

static void c37_same_bits_everywhere(void)
{
    static const size_t counts[] = {1, 100, 100000};
    struct fixture fixture = set_up();
    for (int c = 0; c < LENGTH(counts); c++) {
        size_t bytes = counts[c] * 4;
        float *in = (float *)malloc(bytes), *out = (float *)malloc(bytes), *first = (float *)malloc(bytes);
        CHECK(in && out && first);
        for (size_t i = 0; i < counts[c]; i++)
            in[i] = 1.0f / (float)(1 + (i * 31 + (size_t)own_rank * 17) % 1009);
        struct sharp_coll_reduce_spec spec = reduce_spec(in, out, counts[c], SHARP_DTYPE_FLOAT, SHARP_OP_SUM);
        CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
        memcpy(first, out, bytes);
        for (int r = 1; r < own_size; r++)
            if (own_rank == 0)
                whole(lines[r], out, bytes, 1);
        if (own_rank != 0)
            whole(lines[0], first, bytes, 0);
        CHECK(memcmp(first, out, bytes) == 0);
        free(in);
        free(out);
        free(first);
    }
    take_down(&fixture);
}

/* Pairs of any value and any tag: the value has the pattern from fill, and the tag is a small
   number above zero in its own type. */
static void put_tag(unsigned char *at, enum sharp_datatype dtype, unsigned tag)
{
    float f32 = (float)tag;
    double f64 = tag;
    uint64_t integer = tag;
    switch (dtype) {
    case SHARP_DTYPE_FLOAT: memcpy(at, &f32, 4); break;
    case SHARP_DTYPE_DOUBLE: memcpy(at, &f64, 8); break;
    default: memcpy(at, &integer, size_of(dtype)); break; /* denormals of the two-byte types */
    }
}

static void c38_pairs(void)
{
    struct sharp_coll_caps caps;
    struct fixture fixture = set_up();
    CHECK_OK(sharp_coll_caps_query(fixture.context, &caps));
    enum { COUNT = 50 };
    unsigned char in[COUNT * 16], out[COUNT * 16];
    for (int op = SHARP_OP_MAXLOC; op <= SHARP_OP_MINLOC; op++)
        for (int t = 0; t < LENGTH(types); t++)
            for (int tag = 0; tag < LENGTH(types); tag++) {
                if (!(caps.support_mask.tag_dtypes >> tag & 1))
                    continue;
                enum sharp_datatype tag_dtype = types[tag].dtype;
                size_t value_len = size_of(types[t].dtype), stride = value_len + size_of(tag_dtype);
                for (size_t i = 0; i < COUNT; i++) {
                    /* No value has a sign: they are 0 .. 3 in every type. */
                    unsigned char one[8] = {0};
                    put_tag(one, types[t].dtype, (unsigned)value_of(own_rank, i));
                    memcpy(in + i * stride, one, value_len);
                    put_tag(in + i * stride + value_len, tag_dtype, 100u - (unsigned)own_rank);
                }
                struct sharp_coll_reduce_spec spec =
                    reduce_spec(in, out, COUNT, types[t].dtype, (enum sharp_reduce_op)op);
                spec.sbuf_desc.buffer.length = spec.rbuf_desc.buffer.length = COUNT * stride;
                spec.tag_dtype = tag_dtype;
                CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
                for (size_t i = 0; i < COUNT; i++) {
                    int best = value_of(0, i), who = 0;
                    for (int r = 1; r < own_size; r++) {
                        int x = value_of(r, i);
                        /* Of equal values the smaller tag wins, which is that of the later rank. */
                        if (op == SHARP_OP_MAXLOC ? x >= best : x <= best) {
                            best = x;
                            who = r;
                        }
                    }
                    unsigned char expected[16] = {0};
                    put_tag(expected, types[t].dtype, (unsigned)best);
                    put_tag(expected + value_len, tag_dtype, 100u - (unsigned)who);
                    if (memcmp(expected, out + i * stride, stride) != 0)
                        fail(__FILE__, __LINE__, "value %d, tag %d, operator %d: pair %zu is wrong", t, tag, op, i);
                }
            }
    struct sharp_coll_reduce_spec spec = reduce_spec(in, out, 1, SHARP_DTYPE_INT, SHARP_OP_MAXLOC);
    spec.tag_dtype = (enum sharp_datatype)99;
    CHECK_CODE(sharp_coll_do_allreduce(fixture.comm, &spec), SHARP_COLL_ENOT_SUPP);
    take_down(&fixture);
}

static void c39_reduce_gives_to_the_root_only(void)
{
    struct fixture fixture = set_up();
    for (int root = 0; root < own_size; root++)
        for (size_t count = 1; count <= 40000; count *= 40) {
            int32_t *in = (int32_t *)malloc(count * 4), *out = (int32_t *)malloc(count * 4);
            CHECK(in && out);
            fill_i32(in, count, own_rank);
            struct sharp_coll_reduce_spec spec = reduce_spec(in, out, count, SHARP_DTYPE_INT, SHARP_OP_BXOR);
            spec.root = root;
            if (own_rank != root)
                garbage(&spec.rbuf_desc, sizeof spec.rbuf_desc);
            CHECK_OK(sharp_coll_do_reduce(fixture.comm, &spec));
            for (size_t i = 0; own_rank == root && i < count; i++)
                CHECK(matches_i32(out, i, own_size, SHARP_OP_BXOR));
            free(in);
            free(out);
        }
    struct sharp_coll_reduce_spec spec;
    int32_t one = 1;
    spec = reduce_spec(&one, &one, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.root = own_size;
    CHECK_CODE(sharp_coll_do_reduce(fixture.comm, &spec), SHARP_COLL_EINVAL);
    take_down(&fixture);
}

static void c40_reduces_to_all_roots_at_once(void)
{
    struct fixture fixture = set_up();
    enum { COUNT = 3000 };
    static int32_t in[RANKS_MAX][COUNT], out[COUNT];
    void *requests[RANKS_MAX] = {NULL};
    for (int root = 0; root < own_size; root++) {
        fill_i32(in[root], COUNT, own_rank + root);
        struct sharp_coll_reduce_spec spec = reduce_spec(in[root], out, COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
        spec.root = root;
        CHECK_OK(sharp_coll_do_reduce_nb(fixture.comm, &spec, &requests[root]));
    }
    for (int root = 0; root < own_size; root++)
        finish(requests[root]);
    for (size_t i = 0; i < COUNT; i++) {
        uint32_t sum = 0;
        for (int r = 0; r < own_size; r++)
            sum += (uint32_t)bits_of(r + own_rank, i);
        CHECK((uint32_t)out[i] == sum);
    }
    take_down(&fixture);
}

/* The whole vector of a rank for reduce-scatter, and one element of its sum. */
static int32_t summed(size_t i)
{
    uint32_t sum = 0;
    for (int r = 0; r < own_size; r++)
        sum += (uint32_t)bits_of(r, i);
    return (int32_t)sum;
}

static struct sharp_coll_reduce_spec window_spec(const int32_t *sbuf, size_t window, int32_t *rbuf, size_t block,
                                                 size_t offset, size_t length)
{
    struct sharp_coll_reduce_spec spec = reduce_spec(sbuf, rbuf, length, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.sbuf_desc.buffer.length = window * 4;
    spec.rbuf_desc.buffer.length = block * 4;
    spec.offset = offset * 4;
    return spec;
}

static void c41_reduce_scatter(void)
{
    static const size_t blocks[] = {1, 7, 4096, 100000};
    struct fixture fixture = set_up();
    for (int b = 0; b < LENGTH(blocks); b++) {
        size_t block = blocks[b], all = block * (size_t)own_size;
        int32_t *in = (int32_t *)malloc(all * 4), *out = (int32_t *)fenced(block * 4);
        CHECK(in != NULL);
        fill_i32(in, all, own_rank);
        struct sharp_coll_reduce_spec spec = window_spec(in, all, out, block, 0, block);
        CHECK_OK(sharp_coll_do_reduce_scatter(fixture.comm, &spec));
        for (size_t i = 0; i < block; i++)
            CHECK(out[i] == summed((size_t)own_rank * block + i));
        /* In place: the result begins where the vector did. */
        spec = window_spec(in, all, in, block, 0, block);
        CHECK_OK(sharp_coll_do_reduce_scatter(fixture.comm, &spec));
        CHECK(memcmp(in, out, block * 4) == 0);
        /* This is a client's mistake: a vector as long as all of them together. */
        if (own_size > 1) {
            spec = window_spec(in, all * (size_t)own_size, in, block, 0, block);
            CHECK_CODE(sharp_coll_do_reduce_scatter(fixture.comm, &spec), SHARP_COLL_EINVAL);
        }
        free(in);
    }
    take_down(&fixture);
}

/* Windows of a length that divides nothing. The input of each call is only its window, and each
   call writes only the overlap. */
static void c42_reduce_scatter_windows(void)
{
    struct fixture fixture = set_up();
    size_t block = 1000, all = block * (size_t)own_size, step = 777;
    int32_t *in = (int32_t *)malloc(all * 4), *out = (int32_t *)malloc(block * 4);
    CHECK(in && out);
    fill_i32(in, all, own_rank);
    memset(out, 0x11, block * 4);
    size_t from = (size_t)own_rank * block, to = from + block;
    for (size_t at = 0; at < all; at += step) {
        size_t len = at + step <= all ? step : all - at;
        int32_t *window = (int32_t *)fenced(len * 4);
        memcpy(window, in + at, len * 4);
        size_t start = at > from ? at : from, stop = at + len < to ? at + len : to;
        int32_t *mine = start < stop ? (int32_t *)fenced((stop - start) * 4) : (int32_t *)fenced(0);
        struct sharp_coll_reduce_spec spec = window_spec(window, len, mine, block, at, len);
        CHECK_OK(sharp_coll_do_reduce_scatter(fixture.comm, &spec));
        if (start < stop)
            memcpy(out + (start - from), mine, (stop - start) * 4);
    }
    for (size_t i = 0; i < block; i++)
        CHECK(out[i] == summed(from + i));
    free(in);
    free(out);
    take_down(&fixture);
}

static void c43_reduce_scatter_in_chunks(void)
{
    struct fixture fixture = set_up();
    size_t block = 1200, all = block * (size_t)own_size, chunks = 2 * (size_t)own_size, len = all / chunks;
    int32_t *in = (int32_t *)malloc(all * 4), *out = (int32_t *)fenced(block * 4);
    void *requests[2 * RANKS_MAX];
    CHECK(in != NULL);
    fill_i32(in, all, own_rank);
    for (size_t c = 0; c < chunks; c++) {
        size_t at = c * len;
        struct sharp_coll_reduce_spec spec = window_spec(in + at, len, out + at % block, block, at, block);
        CHECK_OK(sharp_coll_do_reduce_scatter_nb(fixture.comm, &spec, &requests[c]));
    }
    for (size_t c = 0; c < chunks; c++)
        finish(requests[c]);
    for (size_t i = 0; i < block; i++)
        CHECK(out[i] == summed((size_t)own_rank * block + i));
    free(in);
    take_down(&fixture);
}

static struct sharp_coll_gather_spec gather_spec(const void *sbuf, size_t block, void *rbuf, size_t window, size_t offset)
{
    struct sharp_coll_gather_spec spec;
    garbage(&spec, sizeof spec);
    spec.sbuf_desc = buffer_of((void *)(uintptr_t)sbuf, block, NULL);
    spec.rbuf_desc = buffer_of(rbuf, window, NULL);
    spec.offset = offset;
    return spec;
}

static unsigned char byte_of(size_t i)
{
    return (unsigned char)bits_of(99, i);
}

static void c44_allgather_ignores_garbage(void)
{
    static const size_t blocks[] = {1, 7, 4099, 300001};
    struct fixture fixture = set_up();
    for (int b = 0; b < LENGTH(blocks); b++) {
        size_t block = blocks[b], all = block * (size_t)own_size;
        unsigned char *in = (unsigned char *)malloc(block), *out = (unsigned char *)fenced(all);
        CHECK(in != NULL);
        for (size_t i = 0; i < block; i++)
            in[i] = byte_of((size_t)own_rank * block + i);
        struct sharp_coll_gather_spec spec = gather_spec(in, block, out, all, 0);
        garbage(&spec.sbuf_desc.mem_type, sizeof spec.sbuf_desc.mem_type);
        garbage(&spec.rbuf_desc.mem_type, sizeof spec.rbuf_desc.mem_type);
        CHECK_OK(sharp_coll_do_allgather(fixture.comm, &spec));
        for (size_t i = 0; i < all; i++)
            CHECK(out[i] == byte_of(i));
        free(in);
    }
    take_down(&fixture);
}

static void c45_allgather_windows(void)
{
    struct fixture fixture = set_up();
    size_t block = 1001, all = block * (size_t)own_size, step = 777;
    size_t from = (size_t)own_rank * block, to = from + block;
    for (size_t at = 0; at < all; at += step) {
        size_t len = at + step <= all ? step : all - at;
        size_t start = at > from ? at : from, stop = at + len < to ? at + len : to;
        size_t own = start < stop ? stop - start : 0;
        unsigned char *in = (unsigned char *)fenced(own), *out = (unsigned char *)fenced(len);
        for (size_t i = 0; i < own; i++)
            in[i] = byte_of(start + i);
        struct sharp_coll_gather_spec spec = gather_spec(in, block, out, len, at);
        void *request = NULL;
        CHECK_OK(sharp_coll_do_allgather_nb(fixture.comm, &spec, &request));
        finish(request);
        for (size_t i = 0; i < len; i++)
            CHECK(out[i] == byte_of(at + i));
    }
    take_down(&fixture);
}

static void c46_allgather_in_place(void)
{
    struct fixture fixture = set_up();
    for (size_t block = 1; block <= 100000; block *= 99) {
        size_t all = block * (size_t)own_size, from = (size_t)own_rank * block;
        unsigned char *out = (unsigned char *)malloc(all);
        CHECK(out != NULL);
        memset(out, 0x77, all);
        for (size_t i = 0; i < block; i++)
            out[from + i] = byte_of(from + i);
        struct sharp_coll_gather_spec spec = gather_spec(out + from, block, out, all, 0);
        CHECK_OK(sharp_coll_do_allgather(fixture.comm, &spec));
        for (size_t i = 0; i < all; i++)
            CHECK(out[i] == byte_of(i));
        free(out);
    }
    take_down(&fixture);
}

static void c47_bcast(void)
{
    static const size_t sizes[] = {1, 3, 255, 4097, 65537, 3000001};
    struct fixture fixture = set_up();
    for (int s = 0; s < LENGTH(sizes); s++)
        for (int root = 0; root < own_size; root++) {
            unsigned char *bytes = (unsigned char *)fenced(sizes[s]);
            for (size_t i = 0; own_rank == root && i < sizes[s]; i++)
                bytes[i] = byte_of(i + (size_t)root);
            struct sharp_coll_bcast_spec spec;
            garbage(&spec, sizeof spec);
            spec.root = root;
            spec.buf_desc = buffer_of(bytes, sizes[s], NULL);
            spec.size = sizes[s];
            CHECK_OK(sharp_coll_do_bcast(fixture.comm, &spec));
            for (size_t i = 0; i < sizes[s]; i++)
                CHECK(bytes[i] == byte_of(i + (size_t)root));
        }
    take_down(&fixture);
}

/* Cuts memory into pieces. The first ones get the remainder, so that elements are cut, too. */
static struct sharp_coll_data_desc pieces_of(void *memory, size_t len, int count, struct sharp_data_iov *vector)
{
    struct sharp_coll_data_desc desc;
    char *at = (char *)memory;
    garbage(&desc, sizeof desc);
    desc.type = SHARP_DATA_IOV;
    desc.mem_type = SHARP_MEM_TYPE_HOST;
    desc.iov.count = (unsigned)count;
    desc.iov.vector = vector;
    for (int p = 0; p < count; p++) {
        size_t piece = len / (size_t)count + ((size_t)p < len % (size_t)count);
        vector[p].ptr = at;
        vector[p].length = piece;
        vector[p].mem_handle = NULL;
        at += piece;
    }
    return desc;
}

static void c48_lists_of_pieces(void)
{
    struct fixture fixture = set_up();
    static int32_t in[20001], out[20001];
    for (size_t count = 1; count <= 20001; count = count * 27 + 14)
        for (int n = 1; n <= SHARP_COLL_DATA_MAX_IOV; n++) {
            struct sharp_data_iov from[SHARP_COLL_DATA_MAX_IOV], to[SHARP_COLL_DATA_MAX_IOV];
            fill_i32(in, count, own_rank);
            memset(out, 0, count * 4);
            struct sharp_coll_reduce_spec spec = reduce_spec(in, out, count, SHARP_DTYPE_INT, SHARP_OP_SUM);
            spec.sbuf_desc = pieces_of(in, count * 4, n, from);
            if (n % 3 != 0)
                spec.rbuf_desc = pieces_of(out, count * 4, SHARP_COLL_DATA_MAX_IOV + 1 - n, to);
            void *request = NULL;
            CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request));
            garbage(from, sizeof from);
            garbage(to, sizeof to);
            finish(request);
            for (size_t i = 0; i < count; i++)
                CHECK(matches_i32(out, i, own_size, SHARP_OP_SUM));
        }
    struct sharp_data_iov from[1];
    struct sharp_coll_reduce_spec spec = reduce_spec(in, out, 4, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.sbuf_desc = pieces_of(in, 16, 1, from);
    spec.sbuf_desc.iov.count = 16;
    CHECK_CODE(sharp_coll_do_allreduce(fixture.comm, &spec), SHARP_COLL_EINVAL);
    spec.sbuf_desc.iov.count = 0;
    CHECK_CODE(sharp_coll_do_allreduce(fixture.comm, &spec), SHARP_COLL_EINVAL);
    take_down(&fixture);
}

static void c49_without_handles(void)
{
    struct fixture fixture = set_up();
    for (size_t count = 1; count <= 3000000; count *= 144) {
        int32_t *in = (int32_t *)malloc(count * 4), *out = (int32_t *)malloc(count * 4);
        CHECK(in && out);
        fill_i32(in, count, own_rank);
        struct sharp_coll_reduce_spec spec = reduce_spec(in, out, count, SHARP_DTYPE_INT, SHARP_OP_MAX);
        CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
        for (size_t i = 0; i < count; i++)
            CHECK(matches_i32(out, i, own_size, SHARP_OP_MAX));
        free(in);
        free(out);
    }
    take_down(&fixture);
}

static void c50_send_buffer_freed_after_post(void)
{
    struct fixture fixture = set_up();
    for (size_t count = 1; count <= 4096; count *= 8) {
        int32_t *in = (int32_t *)malloc(count * 4), *out = (int32_t *)malloc(count * 4);
        void *request = NULL;
        CHECK(in && out);
        fill_i32(in, count, own_rank);
        struct sharp_coll_reduce_spec spec = reduce_spec(in, out, count, SHARP_DTYPE_INT, SHARP_OP_SUM);
        if (own_rank == 0)
            nap(20);
        CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request));
        memset(in, 0x99, count * 4);
        free(in);
        finish(request);
        for (size_t i = 0; i < count; i++)
            CHECK(matches_i32(out, i, own_size, SHARP_OP_SUM));
        free(out);
    }
    take_down(&fixture);
}

static void c51_spec_reused_after_post(void)
{
    struct fixture fixture = set_up();
    enum { POSTS = 20, COUNT = 900 };
    static int32_t in[POSTS][COUNT], out[POSTS][COUNT];
    void *requests[POSTS];
    struct sharp_coll_reduce_spec spec;
    for (int at = 0; at < POSTS; at++) {
        fill_i32(in[at], COUNT, own_rank + at);
        spec = reduce_spec(in[at], out[at], COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
        CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &requests[at]));
        garbage(&spec, sizeof spec);
    }
    for (int at = 0; at < POSTS; at++) {
        finish(requests[at]);
        for (size_t i = 0; i < COUNT; i++) {
            uint32_t sum = 0;
            for (int r = 0; r < own_size; r++)
                sum += (uint32_t)bits_of(r + at, i);
            CHECK((uint32_t)out[at][i] == sum);
        }
    }
    take_down(&fixture);
}

static void c52_one_handle_for_everything(void)
{
    struct fixture fixture = set_up();
    enum { COUNT = 10000 };
    static int32_t memory[4 * COUNT];
    void *handle = NULL;
    CHECK_OK(sharp_coll_reg_mr(fixture.context, memory, sizeof memory, &handle));
    fill_i32(memory + 100, COUNT, own_rank);
    struct sharp_coll_reduce_spec spec =
        reduce_spec(memory + 100, memory + 2 * COUNT + 3, COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.sbuf_desc.buffer.mem_handle = spec.rbuf_desc.buffer.mem_handle = handle;
    void *request = NULL;
    CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request));
    finish(request);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(matches_i32(memory + 2 * COUNT + 3, i, own_size, SHARP_OP_SUM));
    CHECK_OK(sharp_coll_dereg_mr(fixture.context, handle));
    take_down(&fixture);
}

struct handles {
    struct sharp_coll_context *context;
    void *all[3000];
};

static void *forget(void *argument)
{
    struct handles *handles = (struct handles *)argument;
    for (int at = 0; at < LENGTH(handles->all); at++)
        CHECK_OK(sharp_coll_dereg_mr(handles->context, handles->all[at]));
    return NULL;
}

static void c53_registration_is_bookkeeping(void)
{
    struct sharp_coll_context *context = join();
    static struct handles handles;
    pthread_t thread;
    char *memory = (char *)mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    handles.context = context;
    for (int at = 0; at < LENGTH(handles.all); at++) {
        /* The registered memory is unreadable, overlapping, far away or empty. */
        void *start = at % 7 == 0 ? (void *)(uintptr_t)0x7f0000000000 : (void *)(memory + at);
        CHECK_OK(sharp_coll_reg_mr(context, start, at % 11 == 0 ? 0 : 5000, &handles.all[at]));
        CHECK(handles.all[at] != NULL);
    }
    CHECK(munmap(memory, 1 << 20) == 0);
    CHECK(pthread_create(&thread, NULL, forget, &handles) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c54_failed_registration(void)
{
    struct sharp_coll_context *context = join();
    struct sharp_coll_reg_params params;
    int32_t buffer;
    void *handle = &handle;
    CHECK(sharp_coll_reg_mr(NULL, &buffer, 4, &handle) < 0);
    CHECK(handle == NULL);
    garbage(&params, sizeof params);
    params.dmabuf_fd = -1;
    CHECK_OK(sharp_coll_reg_mr_v2(context, &buffer, 4, &params, &handle));
    CHECK(handle != NULL);
    CHECK_OK(sharp_coll_dereg_mr(context, handle));
    CHECK(sharp_coll_dereg_mr(context, handle) < 0);
    CHECK_OK(sharp_coll_finalize(context));
}

/* A byte of a long vector. Most of its bytes are zeros, so that sending them needs no memory. */
static unsigned char rare_byte(size_t i, size_t len)
{
    return i < 100 || (i >> 32 != (i + 100) >> 32) || i + 100 >= len ? byte_of(i) | 1 : 0;
}

/* Broadcasts one vector of more than 4 GiB, where two ranks share a machine that has the room for
   it. */
static void bcast_of_more_than_4_gib(struct sharp_coll_comm *comm)
{
    size_t len = ((size_t)4 << 30) + 5000;
    unsigned char *bytes =
        (unsigned char *)mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    static const size_t starts[] = {0, ((size_t)4 << 30) - 200, ((size_t)4 << 30) + 4800};
    CHECK(bytes != MAP_FAILED);
    for (int at = 0; own_rank == 0 && at < LENGTH(starts); at++)
        for (size_t i = starts[at]; i < starts[at] + 200; i++)
            bytes[i] = rare_byte(i, len);
    struct sharp_coll_bcast_spec spec;
    garbage(&spec, sizeof spec);
    spec.root = 0;
    spec.buf_desc = buffer_of(bytes, len, NULL);
    spec.size = len;
    CHECK_OK(sharp_coll_do_bcast(comm, &spec));
    for (int at = 0; at < LENGTH(starts); at++)
        for (size_t i = starts[at]; i < starts[at] + 200; i++)
            CHECK(bytes[i] == rare_byte(i, len));
    CHECK(munmap(bytes, len) == 0);
}

/* A window of a longer vector: only the arithmetic deals with long vectors. */
static void window_beyond_4_gib(struct sharp_coll_comm *comm)
{
    int64_t in[10], out[10];
    for (int i = 0; i < 10; i++)
        in[i] = own_rank + i;
    size_t block = ((((size_t)4 << 30) / 8 + 1000) / (size_t)own_size + 1) * 8, from = block * (size_t)(own_size - 1);
    struct sharp_coll_reduce_spec spec = reduce_spec(in, out, 10, SHARP_DTYPE_LONG, SHARP_OP_SUM);
    spec.sbuf_desc.buffer.length = sizeof in;
    spec.rbuf_desc.buffer.length = block;
    spec.offset = from;
    CHECK_OK(sharp_coll_do_reduce_scatter(comm, &spec));
    for (int i = 0; own_rank == own_size - 1 && i < 10; i++)
        CHECK(out[i] == own_size * i + own_size * (own_size - 1) / 2);
}

static void c55_more_than_4_gib(void)
{
    struct fixture fixture = set_up();
    if (SHARP_API > SHARP_VERSION(3, 6)) {
        long long room = (long long)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
        window_beyond_4_gib(fixture.comm);
        if (own_size == 2 && room > (long long)8 << 30)
            bcast_of_more_than_4_gib(fixture.comm);
        else if (own_size == 2)
            fprintf(stderr, "C55: %lld bytes of memory are too few for a vector of 4 GiB\n", room);
    }
    take_down(&fixture);
}

static void c56_gpu_memory_or_a_clean_no(void)
{
    struct fixture fixture = set_up();
    int32_t in = 1, out = 0;
    struct sharp_coll_reduce_spec spec = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.sbuf_desc.mem_type = SHARP_MEM_TYPE_CUDA;
    int code = sharp_coll_do_allreduce(fixture.comm, &spec);
    /* With a driver, an address of host memory is accepted. */
    CHECK(code == SHARP_COLL_ENOT_SUPP || (code == 0 && out == own_size));
    spec = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    CHECK(out == own_size);
    take_down(&fixture);
}

static void c57_nothing_at_all(void)
{
    struct fixture fixture = set_up();
    void *request = NULL;
    int32_t in = 1, out = 0;
    struct sharp_coll_reduce_spec spec = reduce_spec(NULL, NULL, 0, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.root = 0;
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    CHECK_OK(sharp_coll_do_reduce(fixture.comm, &spec));
    CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request));
    finish(request);
    spec.offset = 0;
    CHECK_OK(sharp_coll_do_reduce_scatter(fixture.comm, &spec));
    struct sharp_coll_gather_spec gather = gather_spec(NULL, 0, NULL, 0, 0);
    CHECK_OK(sharp_coll_do_allgather(fixture.comm, &gather));
    struct sharp_coll_bcast_spec bcast;
    garbage(&bcast, sizeof bcast);
    bcast.root = 0;
    bcast.size = 0;
    bcast.buf_desc = buffer_of(NULL, 0, NULL);
    CHECK_OK(sharp_coll_do_bcast(fixture.comm, &bcast));
    spec = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    CHECK(out == own_size);
    take_down(&fixture);
}

static const struct test tests[] = {
    {"C34", c34_every_type_and_operator, 1},
    {"C35", c35_denormals_are_kept, 1},
    {"C36", c36_in_place, 1},
    {"C37", c37_same_bits_everywhere, 1},
    {"C38", c38_pairs, 1},
    {"C39", c39_reduce_gives_to_the_root_only, 1},
    {"C40", c40_reduces_to_all_roots_at_once, 1},
    {"C41", c41_reduce_scatter, 1},
    {"C42", c42_reduce_scatter_windows, 1},
    {"C43", c43_reduce_scatter_in_chunks, 1},
    {"C44", c44_allgather_ignores_garbage, 1},
    {"C45", c45_allgather_windows, 1},
    {"C46", c46_allgather_in_place, 1},
    {"C47", c47_bcast, 1},
    {"C48", c48_lists_of_pieces, 1},
    {"C49", c49_without_handles, 1},
    {"C50", c50_send_buffer_freed_after_post, 1},
    {"C51", c51_spec_reused_after_post, 1},
    {"C52", c52_one_handle_for_everything, 1},
    {"C53", c53_registration_is_bookkeeping, 1},
    {"C54", c54_failed_registration, 1},
    {"C55", c55_more_than_4_gib, 1},
    {"C56", c56_gpu_memory_or_a_clean_no, 1},
    {"C57", c57_nothing_at_all, 1},
};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
