/* SPDX-License-Identifier: Apache-2.0 */
#include "types.h"

#include <stdbool.h>
#include <wchar.h>

/* The operators that MPI allows on a class of datatypes. Other combinations are left to the MPI to
 * refuse, in its own words. */
enum family {
    ARITHMETIC = 1, /* MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX */
    BITWISE = 2,    /* MPI_BAND, MPI_BOR, MPI_BXOR */
    LOGICAL = 4,    /* MPI_LAND, MPI_LOR, MPI_LXOR */
    LOCATED = 8,    /* MPI_MAXLOC, MPI_MINLOC */
    INTEGER = ARITHMETIC | BITWISE | LOGICAL,
};

#define SIGNED(type) (sizeof(type) == 8 ? TRIB_INT64 : sizeof(type) == 4 ? TRIB_INT32 : sizeof(type) == 2 ? TRIB_INT16 : TRIB_INT8)
#define UNSIGNED(type) \
    (sizeof(type) == 8 ? TRIB_UINT64 : sizeof(type) == 4 ? TRIB_UINT32 : sizeof(type) == 2 ? TRIB_UINT16 : TRIB_UINT8)

/* MPI's pairs are C structs of a value and an int. Where the compiler pads them, they are not what
 * the tree calls a pair, and the width is 0. */
#define PAIR_WIDTH(type) (sizeof(struct { type value; int index; }) == sizeof(type) + sizeof(int) ? sizeof(type) + sizeof(int) : 0)
#define PAIR(handle, type, dtype) {handle, TRIB_PAIR(dtype, SIGNED(int)), PAIR_WIDTH(type), LOCATED}

/* The common types come first, because the table is searched from its start. MPI_CHAR is text to
 * MPI and takes no operator. MPI_C_BOOL takes the logical ones: a bool is a byte of 0 or 1.
 * MPI_AINT, MPI_OFFSET and MPI_COUNT do not take logical ones. */
static const struct {
    MPI_Datatype handle;
    uint8_t dtype, width, families;
} DATATYPES[] = {
    {MPI_DOUBLE, TRIB_FLOAT64, sizeof(double), ARITHMETIC},
    {MPI_FLOAT, TRIB_FLOAT32, sizeof(float), ARITHMETIC},
    {MPI_INT, SIGNED(int), sizeof(int), INTEGER},
    {MPI_LONG, SIGNED(long), sizeof(long), INTEGER},
    {MPI_UNSIGNED, UNSIGNED(unsigned), sizeof(unsigned), INTEGER},
    {MPI_UNSIGNED_LONG, UNSIGNED(unsigned long), sizeof(unsigned long), INTEGER},
    {MPI_INT32_T, TRIB_INT32, 4, INTEGER},
    {MPI_INT64_T, TRIB_INT64, 8, INTEGER},
    {MPI_UINT32_T, TRIB_UINT32, 4, INTEGER},
    {MPI_UINT64_T, TRIB_UINT64, 8, INTEGER},
    {MPI_LONG_LONG, SIGNED(long long), sizeof(long long), INTEGER},
    {MPI_UNSIGNED_LONG_LONG, UNSIGNED(unsigned long long), sizeof(unsigned long long), INTEGER},
    {MPI_SHORT, SIGNED(short), sizeof(short), INTEGER},
    {MPI_UNSIGNED_SHORT, UNSIGNED(unsigned short), sizeof(unsigned short), INTEGER},
    {MPI_SIGNED_CHAR, TRIB_INT8, 1, INTEGER},
    {MPI_UNSIGNED_CHAR, TRIB_UINT8, 1, INTEGER},
    {MPI_INT8_T, TRIB_INT8, 1, INTEGER},
    {MPI_UINT8_T, TRIB_UINT8, 1, INTEGER},
    {MPI_INT16_T, TRIB_INT16, 2, INTEGER},
    {MPI_UINT16_T, TRIB_UINT16, 2, INTEGER},
    {MPI_BYTE, TRIB_UINT8, 1, BITWISE},
    {MPI_C_BOOL, TRIB_UINT8, sizeof(_Bool), sizeof(_Bool) == 1 ? LOGICAL : 0},
    PAIR(MPI_2INT, int, SIGNED(int)),
    PAIR(MPI_FLOAT_INT, float, TRIB_FLOAT32),
    PAIR(MPI_DOUBLE_INT, double, TRIB_FLOAT64),
    PAIR(MPI_LONG_INT, long, SIGNED(long)),
    PAIR(MPI_SHORT_INT, short, SIGNED(short)),
    {MPI_AINT, SIGNED(MPI_Aint), sizeof(MPI_Aint), ARITHMETIC | BITWISE},
    {MPI_OFFSET, SIGNED(MPI_Offset), sizeof(MPI_Offset), ARITHMETIC | BITWISE},
    {MPI_COUNT, SIGNED(MPI_Count), sizeof(MPI_Count), ARITHMETIC | BITWISE},
};

static const struct {
    MPI_Op handle;
    uint8_t op, family;
} OPERATORS[] = {
    {MPI_SUM, TRIB_SUM, ARITHMETIC}, {MPI_MAX, TRIB_MAX, ARITHMETIC}, {MPI_MIN, TRIB_MIN, ARITHMETIC},
    {MPI_PROD, TRIB_PROD, ARITHMETIC}, {MPI_BAND, TRIB_BAND, BITWISE}, {MPI_BOR, TRIB_BOR, BITWISE},
    {MPI_BXOR, TRIB_BXOR, BITWISE}, {MPI_LAND, TRIB_LAND, LOGICAL}, {MPI_LOR, TRIB_LOR, LOGICAL},
    {MPI_LXOR, TRIB_LXOR, LOGICAL}, {MPI_MAXLOC, TRIB_MAXLOC, LOCATED}, {MPI_MINLOC, TRIB_MINLOC, LOCATED},
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum reason types_map(const struct config *config, MPI_Datatype datatype, MPI_Op op, struct wire_type *type)
{
    size_t row = 0, column = 0;

    while (row < LENGTH(DATATYPES) && DATATYPES[row].handle != datatype)
        row++;
    if (row == LENGTH(DATATYPES))
        return REASON_DATATYPE;
    if (DATATYPES[row].width == 0)
        return REASON_PADDED;
    while (column < LENGTH(OPERATORS) && OPERATORS[column].handle != op)
        column++;
    if (column == LENGTH(OPERATORS))
        return REASON_OPERATOR;
    type->dtype = (enum trib_dtype)DATATYPES[row].dtype;
    type->op = (enum trib_op)OPERATORS[column].op;
    type->width = DATATYPES[row].width;
    bool allowed = (DATATYPES[row].families & OPERATORS[column].family) != 0;
    bool supported = (config->supported[type->dtype] >> type->op & 1) != 0;
    return allowed && supported ? REASON_TREE : REASON_COMBINATION;
}
