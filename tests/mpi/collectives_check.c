/* SPDX-License-Identifier: Apache-2.0
 *
 * Random reductions over several communicators: datatypes, operators, counts, roots and
 * MPI_IN_PLACE, every byte checked.
 *
 * What the tree may take is checked against a plain loop over the inputs of all ranks, which every
 * rank can make by itself. Floating-point inputs are small whole numbers, so that every order of
 * summation gives the same bits. The other cases (a pair type with padding, the program's own
 * operator on a derived type) must still work; PMPI_x, called with the same inputs, is the
 * reference there.
 *
 * Run Open MPI 4.1 with --mca op ^avx where operations may stay with the MPI: its AVX operators
 * saturate sums of 8 and 16 bits. It also compares MPI_UNSIGNED_LONG as if it were signed, so
 * MPI_UINT64_T stands for both here.
 *
 * usage: collectives_check [cases = 200] [seed = 1] [largest count = 100000]
 *
 * Rank 0 prints one JSON line.
 */
#include "check.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum kind { INTEGER, REAL, PAIR, PADDED, DERIVED };

struct two_ints {
    int value, index;
};
struct float_int {
    float value;
    int index;
};
struct double_int {
    double value;
    int index;
};

static uint64_t random_state;

/* The same sequence on every rank: what a case is must be equal everywhere. */
static uint64_t draw(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

struct type {
    MPI_Datatype handle;
    size_t width;
    enum kind kind;
    int is_signed;
};

#define TYPES 18
#define COMMUNICATORS 6

static struct type types[TYPES];
static MPI_Op complex_product;
static MPI_Comm communicators[COMMUNICATORS];

static void multiply_complex(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int64_t *a = in, *b = inout;

    (void)type;
    for (int i = 0; i < 2 * *length; i += 2) {
        int64_t real = a[i] * b[i] - a[i + 1] * b[i + 1], imaginary = a[i] * b[i + 1] + a[i + 1] * b[i];
        b[i] = real;
        b[i + 1] = imaginary;
    }
}

static void make_types(void)
{
    MPI_Datatype complex_integer;

    MPI_Type_contiguous(2, MPI_INT64_T, &complex_integer);
    MPI_Type_commit(&complex_integer);
    MPI_Op_create(multiply_complex, 1, &complex_product);
    const struct type all[TYPES] = {
        {MPI_INT, sizeof(int), INTEGER, 1}, {MPI_UNSIGNED, sizeof(unsigned), INTEGER, 0}, {MPI_LONG, sizeof(long), INTEGER, 1},
        {MPI_LONG_LONG, sizeof(long long), INTEGER, 1}, {MPI_INT8_T, 1, INTEGER, 1},
        {MPI_UINT8_T, 1, INTEGER, 0}, {MPI_INT16_T, 2, INTEGER, 1}, {MPI_UINT16_T, 2, INTEGER, 0}, {MPI_INT32_T, 4, INTEGER, 1},
        {MPI_UINT32_T, 4, INTEGER, 0}, {MPI_INT64_T, 8, INTEGER, 1}, {MPI_UINT64_T, 8, INTEGER, 0}, {MPI_FLOAT, 4, REAL, 1},
        {MPI_DOUBLE, 8, REAL, 1}, {MPI_2INT, 2 * sizeof(int), PAIR, 1},
        {MPI_FLOAT_INT, sizeof(struct float_int), PAIR, 1}, {MPI_DOUBLE_INT, sizeof(struct double_int), PADDED, 1},
        {complex_integer, 16, DERIVED, 1},
    };
    memcpy(types, all, sizeof types);
}

static void make_communicators(int rank, int size)
{
    int extent[1] = {size}, periodic[1] = {1};

    communicators[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank < (size + 1) / 2, rank, &communicators[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &communicators[3]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank * 5 % 7, &communicators[4]);
    MPI_Cart_create(MPI_COMM_WORLD, 1, extent, periodic, 0, &communicators[5]);
}

static MPI_Op draw_op(enum kind kind)
{
    const MPI_Op integer[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    const MPI_Op pair[] = {MPI_MINLOC, MPI_MAXLOC};

    switch (kind) {
    case INTEGER:
        return integer[draw(10)];
    case REAL:
        return integer[draw(4)];
    case PAIR:
    case PADDED:
        return pair[draw(2)];
    default:
        return complex_product;
    }
}

/* Mostly short, sometimes long, sometimes nothing. */
static int draw_count(uint64_t largest)
{
    uint64_t shape = draw(10);

    if (shape == 0)
        return (int)draw(2);
    return (int)(shape < 7 ? draw(300) : draw(largest) + 1);
}

/* This rank's input of one case: of its own, and such that no operator overflows a real. */
static void fill(unsigned char *buffer, int count, const struct type *type, int rank, uint64_t salt)
{
    uint64_t state = salt * 0x9e3779b97f4a7c15u + (uint64_t)rank + 1;

    for (size_t i = 0; i < (size_t)count * type->width; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        buffer[i] = (unsigned char)(state >> 56);
    }
    for (int i = 0; i < count && type->kind == REAL; i++) {
        int small = buffer[(size_t)i * type->width] % 7 - 3;
        if (type->width == 4)
            ((float *)(void *)buffer)[i] = (float)small;
        else
            ((double *)(void *)buffer)[i] = small;
    }
    /* Few values, so that indices decide. */
    for (int i = 0; i < count && (type->kind == PAIR || type->kind == PADDED); i++) {
        unsigned char *element = buffer + (size_t)i * type->width;
        int small = element[0] % 3 - 1, index = element[1];
        if (type->kind == PADDED)
            memset(element, 0, type->width);
        if (type->handle == MPI_2INT)
            *(struct two_ints *)(void *)element = (struct two_ints){small, index};
        else if (type->handle == MPI_FLOAT_INT)
            *(struct float_int *)(void *)element = (struct float_int){(float)small, index};
        else {
            ((struct double_int *)(void *)element)->value = small;
            ((struct double_int *)(void *)element)->index = index;
        }
    }
}

/* into = into op next, element by element; integers wrap. */
#define FOLD(type, extra) \
    { \
        type *a = into; \
        const type *b = next; \
        for (int i = 0; i < count; i++) { \
            if (op == MPI_SUM) \
                a[i] = (type)(a[i] + b[i]); \
            else if (op == MPI_PROD) \
                a[i] = (type)(a[i] * b[i]); \
            else if (op == MPI_MIN) \
                a[i] = b[i] < a[i] ? b[i] : a[i]; \
            else if (op == MPI_MAX) \
                a[i] = b[i] > a[i] ? b[i] : a[i]; \
            extra \
        } \
        return; \
    }
#define BITS \
    else if (op == MPI_BAND) a[i] &= b[i]; \
    else if (op == MPI_BOR) a[i] |= b[i]; \
    else if (op == MPI_BXOR) a[i] ^= b[i]; \
    else if (op == MPI_LAND) a[i] = a[i] && b[i]; \
    else if (op == MPI_LOR) a[i] = a[i] || b[i]; \
    else if (op == MPI_LXOR) a[i] = !a[i] != !b[i];

/* The better value, and of equal values the smaller index. */
#define FOLD_PAIRS(type) \
    { \
        type *a = into; \
        const type *b = next; \
        for (int i = 0; i < count; i++) \
            if ((op == MPI_MAXLOC ? b[i].value > a[i].value : b[i].value < a[i].value) || \
                (b[i].value == a[i].value && b[i].index < a[i].index)) \
                a[i] = b[i]; \
        return; \
    }

static void fold(void *into, const void *next, int count, const struct type *type, MPI_Op op)
{
    if (type->handle == MPI_FLOAT)
        FOLD(float, )
    if (type->handle == MPI_DOUBLE)
        FOLD(double, )
    if (type->handle == MPI_2INT)
        FOLD_PAIRS(struct two_ints)
    if (type->handle == MPI_FLOAT_INT)
        FOLD_PAIRS(struct float_int)
    switch (type->width * (type->is_signed ? 1 : 10)) {
    case 1:
        FOLD(int8_t, BITS)
    case 2:
        FOLD(int16_t, BITS)
    case 4:
        FOLD(int32_t, BITS)
    case 8:
        FOLD(int64_t, BITS)
    case 10:
        FOLD(uint8_t, BITS)
    case 20:
        FOLD(uint16_t, BITS)
    case 40:
        FOLD(uint32_t, BITS)
    case 80:
        FOLD(uint64_t, BITS)
    }
}

struct buffers {
    unsigned char *input, *result, *expected, *other;
};

/* The reference: the inputs of all members of comm, folded in the order of their ranks. */
static void expect(const struct buffers *buffers, MPI_Comm comm, int count, const struct type *type, MPI_Op op, uint64_t salt)
{
    MPI_Group group, world;
    int size;

    MPI_Comm_size(comm, &size);
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int rank = 0; rank < size; rank++) {
        int world_rank;
        MPI_Group_translate_ranks(group, 1, &rank, world, &world_rank);
        fill(rank == 0 ? buffers->expected : buffers->other, count, type, world_rank, salt);
        if (rank > 0)
            fold(buffers->expected, buffers->other, count, type, op);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

/* What the MPI does to padding is its own matter. */
static int is_padding(const struct type *type, size_t at)
{
    return type->kind == PADDED && at % type->width >= offsetof(struct double_int, index) + sizeof(int);
}

/* The loop above knows the operator. */
static int has_reference(const struct type *type)
{
    return type->kind == INTEGER || type->kind == REAL || type->kind == PAIR;
}

/* One random case. Returns 1 for a reduce and 0 for an allreduce. */
static int check_case(const struct buffers *buffers, long number, uint64_t largest)
{
    int rank, size, world_rank;
    MPI_Comm comm = communicators[draw(COMMUNICATORS)];
    const struct type *type = &types[draw(TYPES)];
    MPI_Op op = draw_op(type->kind);
    int count = draw_count(largest), in_place = draw(3) == 0, reduce = (int)draw(2);
    uint64_t root_draw = draw(1 << 20), salt = draw(UINT64_MAX);

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    int root = (int)(root_draw % (uint64_t)size), receives = !reduce || rank == root;
    size_t bytes = (size_t)count * type->width;
    fill(buffers->input, count, type, world_rank, salt);
    memset(buffers->result, 0xa5, bytes);
    if (in_place && receives)
        memcpy(buffers->result, buffers->input, bytes);
    const void *send = in_place && receives ? MPI_IN_PLACE : buffers->input;
    if (!receives)
        memset(buffers->expected, 0xa5, bytes);
    else if (has_reference(type))
        expect(buffers, comm, count, type, op, salt);
    if (reduce && !has_reference(type))
        PMPI_Reduce(buffers->input, buffers->expected, count, type->handle, op, root, comm);
    else if (!has_reference(type))
        PMPI_Allreduce(buffers->input, buffers->expected, count, type->handle, op, comm);
    if (reduce)
        MPI_Reduce(send, buffers->result, count, type->handle, op, root, comm);
    else
        MPI_Allreduce(send, buffers->result, count, type->handle, op, comm);
    for (size_t i = 0; i < bytes; i++)
        CHECK(is_padding(type, i) || buffers->result[i] == buffers->expected[i],
              "case %ld (%s, type %d, %d elements, root %d, %s): byte %zu is %02x, not %02x", number,
              reduce ? "reduce" : "allreduce", (int)(type - types), count, reduce ? root : -1, in_place ? "in place" : "copy",
              i, buffers->result[i], buffers->expected[i]);
    return reduce;
}

int main(int argc, char **argv)
{
    int rank, size, provided, reduces = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long cases = argument(argc, argv, 1, 200), seed = argument(argc, argv, 2, 1), largest = argument(argc, argv, 3, 100000);
    CHECK(cases > 0 && largest > 300, "at least one case, and a largest count above 300");
    random_state = (uint64_t)seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    make_types();
    make_communicators(rank, size);
    size_t bytes = (size_t)(largest > 300 ? largest : 300) * 16;
    struct buffers buffers = {malloc(bytes), malloc(bytes), malloc(bytes), malloc(bytes)};
    CHECK(buffers.input != NULL && buffers.result != NULL && buffers.expected != NULL && buffers.other != NULL, "out of memory");
    for (long number = 0; number < cases; number++) {
        reduces += check_case(&buffers, number, (uint64_t)largest);
        if (number % 50 == 0)
            MPI_Barrier(communicators[draw(2)]);
    }
    if (rank == 0)
        printf("{\"test\": \"collectives_check\", \"ranks\": %d, \"seed\": %ld, \"cases\": %ld, \"reduces\": %d}\n", size, seed,
               cases, reduces);
    free(buffers.input);
    free(buffers.result);
    free(buffers.expected);
    free(buffers.other);
    for (int i = 1; i < COMMUNICATORS; i++)
        MPI_Comm_free(&communicators[i]);
    MPI_Op_free(&complex_product);
    MPI_Type_free(&types[TYPES - 1].handle);
    MPI_Finalize();
    return 0;
}
