/* SPDX-License-Identifier: Apache-2.0 */
#include "types.h"

#include "runtime.h"

#include <stdbool.h>
#include <wchar.h>

/* The operators that MPI allows on a class of datatypes, as far as the tree has them. Other
 * combinations are left to the MPI, which refuses those that are none in its own words. */
enum family {
    SUMMED = 1,   /* MPI_SUM */
    ORDERED = 2,  /* MPI_PROD, MPI_MIN, MPI_MAX */
    BITWISE = 4,  /* MPI_BAND, MPI_BOR, MPI_BXOR */
    LOGICAL = 8,  /* MPI_LAND, MPI_LOR, MPI_LXOR */
    LOCATED = 16, /* MPI_MAXLOC, MPI_MINLOC */
    ARITHMETIC = SUMMED | ORDERED,
    INTEGER = ARITHMETIC | BITWISE | LOGICAL,
};

#define SIGNED(type) (sizeof(type) == 8 ? TRIB_INT64 : sizeof(type) == 4 ? TRIB_INT32 : sizeof(type) == 2 ? TRIB_INT16 : TRIB_INT8)
#define UNSIGNED(type) \
    (sizeof(type) == 8 ? TRIB_UINT64 : sizeof(type) == 4 ? TRIB_UINT32 : sizeof(type) == 2 ? TRIB_UINT16 : TRIB_UINT8)

/* MPI's pairs are C structs of a value and an int, which some compilers pad. */
#define LAYOUT(type) \
    {sizeof(type), offsetof(struct { type value; int index; }, index), sizeof(struct { type value; int index; }), \
     sizeof(struct { type value; int index; }) == sizeof(type) + sizeof(int) ? 0 : sizeof(type) + sizeof(int)}
#define PAIR(handle, type, dtype) \
    {handle, TRIB_PAIR(dtype, SIGNED(int)), sizeof(type) + sizeof(int), 1, LOCATED, false, LAYOUT(type)}
#define PLAIN(handle, dtype, width, families) {handle, dtype, width, 1, families, false, {0}}
/* Complex numbers are added part by part; their products are the MPI's. */
#define COMPLEX(handle, dtype, part) {handle, dtype, part, 2, SUMMED, false, {0}}
/* Fortran's types are as long as the MPI was told; where that is not the usual, it does them. */
#define FORTRAN(handle, dtype, width, each, families) {handle, dtype, width, each, families, true, {0}}

/* The common types come first, because the table is searched from its start. MPI_CHAR is text to
 * MPI and takes no operator. Bools of C and C++ take the logical ones: each is a byte of 0 or 1.
 * MPI_AINT, MPI_OFFSET and MPI_COUNT do not take logical ones. */
static const struct {
    MPI_Datatype handle;
    uint8_t dtype, width, each, families;
    bool is_fortran;
    struct pair_layout pair;
} DATATYPES[] = {
    PLAIN(MPI_DOUBLE, TRIB_FLOAT64, sizeof(double), ARITHMETIC),
    PLAIN(MPI_FLOAT, TRIB_FLOAT32, sizeof(float), ARITHMETIC),
    PLAIN(MPI_INT, SIGNED(int), sizeof(int), INTEGER),
    PLAIN(MPI_LONG, SIGNED(long), sizeof(long), INTEGER),
    PLAIN(MPI_UNSIGNED, UNSIGNED(unsigned), sizeof(unsigned), INTEGER),
    PLAIN(MPI_UNSIGNED_LONG, UNSIGNED(unsigned long), sizeof(unsigned long), INTEGER),
    PLAIN(MPI_INT32_T, TRIB_INT32, 4, INTEGER),
    PLAIN(MPI_INT64_T, TRIB_INT64, 8, INTEGER),
    PLAIN(MPI_UINT32_T, TRIB_UINT32, 4, INTEGER),
    PLAIN(MPI_UINT64_T, TRIB_UINT64, 8, INTEGER),
    PLAIN(MPI_LONG_LONG, SIGNED(long long), sizeof(long long), INTEGER),
    PLAIN(MPI_UNSIGNED_LONG_LONG, UNSIGNED(unsigned long long), sizeof(unsigned long long), INTEGER),
    PLAIN(MPI_SHORT, SIGNED(short), sizeof(short), INTEGER),
    PLAIN(MPI_UNSIGNED_SHORT, UNSIGNED(unsigned short), sizeof(unsigned short), INTEGER),
    PLAIN(MPI_SIGNED_CHAR, TRIB_INT8, 1, INTEGER),
    PLAIN(MPI_UNSIGNED_CHAR, TRIB_UINT8, 1, INTEGER),
    PLAIN(MPI_INT8_T, TRIB_INT8, 1, INTEGER),
    PLAIN(MPI_UINT8_T, TRIB_UINT8, 1, INTEGER),
    PLAIN(MPI_INT16_T, TRIB_INT16, 2, INTEGER),
    PLAIN(MPI_UINT16_T, TRIB_UINT16, 2, INTEGER),
    PLAIN(MPI_BYTE, TRIB_UINT8, 1, BITWISE),
    PLAIN(MPI_C_BOOL, TRIB_UINT8, sizeof(_Bool), sizeof(_Bool) == 1 ? LOGICAL : 0),
    PLAIN(MPI_CXX_BOOL, TRIB_UINT8, sizeof(_Bool), sizeof(_Bool) == 1 ? LOGICAL : 0),
    PAIR(MPI_2INT, int, SIGNED(int)),
    PAIR(MPI_FLOAT_INT, float, TRIB_FLOAT32),
    PAIR(MPI_DOUBLE_INT, double, TRIB_FLOAT64),
    PAIR(MPI_LONG_INT, long, SIGNED(long)),
    PAIR(MPI_SHORT_INT, short, SIGNED(short)),
    PLAIN(MPI_AINT, SIGNED(MPI_Aint), sizeof(MPI_Aint), ARITHMETIC | BITWISE),
    PLAIN(MPI_OFFSET, SIGNED(MPI_Offset), sizeof(MPI_Offset), ARITHMETIC | BITWISE),
    PLAIN(MPI_COUNT, SIGNED(MPI_Count), sizeof(MPI_Count), ARITHMETIC | BITWISE),
    COMPLEX(MPI_C_DOUBLE_COMPLEX, TRIB_FLOAT64, sizeof(double)),
    COMPLEX(MPI_C_FLOAT_COMPLEX, TRIB_FLOAT32, sizeof(float)),
    COMPLEX(MPI_C_COMPLEX, TRIB_FLOAT32, sizeof(float)),
    COMPLEX(MPI_CXX_DOUBLE_COMPLEX, TRIB_FLOAT64, sizeof(double)),
    COMPLEX(MPI_CXX_FLOAT_COMPLEX, TRIB_FLOAT32, sizeof(float)),
    FORTRAN(MPI_DOUBLE_PRECISION, TRIB_FLOAT64, 8, 1, ARITHMETIC),
    FORTRAN(MPI_REAL, TRIB_FLOAT32, 4, 1, ARITHMETIC),
    FORTRAN(MPI_INTEGER, TRIB_INT32, 4, 1, ARITHMETIC | BITWISE),
    FORTRAN(MPI_LOGICAL, TRIB_INT32, 4, 1, LOGICAL),
    FORTRAN(MPI_DOUBLE_COMPLEX, TRIB_FLOAT64, 8, 2, SUMMED),
    FORTRAN(MPI_COMPLEX, TRIB_FLOAT32, 4, 2, SUMMED),
    FORTRAN(MPI_REAL8, TRIB_FLOAT64, 8, 1, ARITHMETIC),
    FORTRAN(MPI_REAL4, TRIB_FLOAT32, 4, 1, ARITHMETIC),
    FORTRAN(MPI_INTEGER8, TRIB_INT64, 8, 1, ARITHMETIC | BITWISE),
    FORTRAN(MPI_INTEGER4, TRIB_INT32, 4, 1, ARITHMETIC | BITWISE),
    FORTRAN(MPI_INTEGER2, TRIB_INT16, 2, 1, ARITHMETIC | BITWISE),
    FORTRAN(MPI_INTEGER1, TRIB_INT8, 1, 1, ARITHMETIC | BITWISE),
    FORTRAN(MPI_COMPLEX16, TRIB_FLOAT64, 8, 2, SUMMED),
    FORTRAN(MPI_COMPLEX8, TRIB_FLOAT32, 4, 2, SUMMED),
    FORTRAN(MPI_2INTEGER, TRIB_PAIR(TRIB_INT32, TRIB_INT32), 8, 1, LOCATED),
};

static const struct {
    MPI_Op handle;
    uint8_t op, family;
} OPERATORS[] = {
    {MPI_SUM, TRIB_SUM, SUMMED}, {MPI_MAX, TRIB_MAX, ORDERED}, {MPI_MIN, TRIB_MIN, ORDERED},
    {MPI_PROD, TRIB_PROD, ORDERED}, {MPI_BAND, TRIB_BAND, BITWISE}, {MPI_BOR, TRIB_BOR, BITWISE},
    {MPI_BXOR, TRIB_BXOR, BITWISE}, {MPI_LAND, TRIB_LAND, LOGICAL}, {MPI_LOR, TRIB_LOR, LOGICAL},
    {MPI_LXOR, TRIB_LXOR, LOGICAL}, {MPI_MAXLOC, TRIB_MAXLOC, LOCATED}, {MPI_MINLOC, TRIB_MINLOC, LOCATED},
};

/* MPI's operators that no collective takes. */
static const MPI_Op NO_REDUCTIONS[] = {MPI_OP_NULL, MPI_REPLACE, MPI_NO_OP};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Whether the type is as long as the tree's. */
static bool fits(size_t row)
{
    size_t bytes, distance;

    if (!DATATYPES[row].is_fortran)
        return true;
    runtime_extent(DATATYPES[row].handle, &bytes, &distance);
    return bytes == (size_t)DATATYPES[row].width * DATATYPES[row].each && distance == bytes;
}

bool types_is_float(enum trib_dtype dtype)
{
    return dtype == TRIB_FLOAT16 || dtype == TRIB_BFLOAT16 || dtype == TRIB_FLOAT32 || dtype == TRIB_FLOAT64;
}

bool types_is_mpis(MPI_Op op)
{
    for (size_t column = 0; column < LENGTH(OPERATORS); column++)
        if (OPERATORS[column].handle == op)
            return true;
    for (size_t at = 0; at < LENGTH(NO_REDUCTIONS); at++)
        if (NO_REDUCTIONS[at] == op)
            return true;
    return false;
}

enum reason types_map(const struct config *config, MPI_Datatype datatype, MPI_Op op, struct wire_type *type)
{
    size_t row = 0, column = 0;

    /* A type of Fortran or C++ that this MPI lacks is the null handle. */
    while (row < LENGTH(DATATYPES) && (DATATYPES[row].handle != datatype || datatype == MPI_DATATYPE_NULL))
        row++;
    if (row == LENGTH(DATATYPES) || !fits(row))
        return REASON_DATATYPE;
    while (column < LENGTH(OPERATORS) && OPERATORS[column].handle != op)
        column++;
    if (column == LENGTH(OPERATORS))
        return REASON_OPERATOR;
    type->dtype = (enum trib_dtype)DATATYPES[row].dtype;
    type->op = (enum trib_op)OPERATORS[column].op;
    type->width = DATATYPES[row].width;
    type->each = DATATYPES[row].each;
    type->pair = DATATYPES[row].pair;
    bool allowed = (DATATYPES[row].families & OPERATORS[column].family) != 0;
    bool supported = (config->supported[type->dtype] >> type->op & 1) != 0;
    return allowed && supported ? REASON_TREE : REASON_COMBINATION;
}
