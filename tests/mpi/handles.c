/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what the MPI calls each datatype that the library knows, and how long it is; and the
 * number of each handle where handles are numbers. MPIs with one ABI print the same.
 */
#include "check.h"

#include <stdint.h>

#define SHOW(name) {#name, name}
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        MPI_Datatype handle;
    } types[] = {
        SHOW(MPI_DOUBLE), SHOW(MPI_FLOAT), SHOW(MPI_INT), SHOW(MPI_LONG), SHOW(MPI_UNSIGNED), SHOW(MPI_UNSIGNED_LONG),
        SHOW(MPI_INT32_T), SHOW(MPI_INT64_T), SHOW(MPI_UINT32_T), SHOW(MPI_UINT64_T), SHOW(MPI_LONG_LONG),
        SHOW(MPI_UNSIGNED_LONG_LONG), SHOW(MPI_SHORT), SHOW(MPI_UNSIGNED_SHORT), SHOW(MPI_SIGNED_CHAR), SHOW(MPI_UNSIGNED_CHAR),
        SHOW(MPI_INT8_T), SHOW(MPI_UINT8_T), SHOW(MPI_INT16_T), SHOW(MPI_UINT16_T), SHOW(MPI_BYTE), SHOW(MPI_C_BOOL),
        SHOW(MPI_2INT), SHOW(MPI_FLOAT_INT), SHOW(MPI_DOUBLE_INT), SHOW(MPI_LONG_INT), SHOW(MPI_SHORT_INT), SHOW(MPI_AINT),
        SHOW(MPI_OFFSET), SHOW(MPI_COUNT), SHOW(MPI_C_DOUBLE_COMPLEX), SHOW(MPI_C_FLOAT_COMPLEX),
    };
    const struct {
        const char *name;
        MPI_Op handle;
    } operators[] = {
        SHOW(MPI_SUM), SHOW(MPI_MAX), SHOW(MPI_MIN), SHOW(MPI_PROD), SHOW(MPI_BAND), SHOW(MPI_BOR), SHOW(MPI_BXOR), SHOW(MPI_LAND),
        SHOW(MPI_LOR), SHOW(MPI_LXOR), SHOW(MPI_MAXLOC), SHOW(MPI_MINLOC),
    };
    char name[MPI_MAX_OBJECT_NAME];
    int length, size;

    MPI_Init(&argc, &argv);
    for (size_t i = 0; i < LENGTH(types); i++) {
        MPI_Type_get_name(types[i].handle, name, &length);
        MPI_Type_size(types[i].handle, &size);
        printf("%s %#llx %s %d\n", types[i].name, (unsigned long long)(uintptr_t)types[i].handle, name, size);
    }
    for (size_t i = 0; i < LENGTH(operators); i++)
        printf("%s %#llx\n", operators[i].name, (unsigned long long)(uintptr_t)operators[i].handle);
    printf("MPI_COMM_WORLD %#llx\n", (unsigned long long)(uintptr_t)MPI_COMM_WORLD);
    printf("MPI_IN_PLACE %lld\n", (long long)(intptr_t)MPI_IN_PLACE);
    printf("MPI_ANY_SOURCE %d, MPI_ANY_TAG %d, MPI_UNDEFINED %d, MPI_ERR_OTHER %d, MPI_COMBINER_NAMED %d\n", MPI_ANY_SOURCE, MPI_ANY_TAG,
           MPI_UNDEFINED, MPI_ERR_OTHER, MPI_COMBINER_NAMED);
    printf("of sizes %zu, %zu, %zu\n", sizeof(MPI_Status), sizeof(MPI_Count), sizeof(MPI_Aint));
    MPI_Finalize();
    return 0;
}
