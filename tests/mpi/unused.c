/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that ends without a collective.
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
