/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in C++, with its own types: sums and a logical operator, whose results are checked.
 */
#include "check.h"

#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>

int main(int argc, char **argv)
{
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<double> mine(1000), sums(mine.size());
    std::iota(mine.begin(), mine.end(), rank);
    MPI_Allreduce(mine.data(), sums.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < sums.size(); i++)
        CHECK(sums[i] == ranks * static_cast<double>(i) + ranks * (ranks - 1) / 2, "sum %zu is %g", i, sums[i]);
    std::complex<double> number(rank, 1), sum;
    MPI_Allreduce(&number, &sum, 1, MPI_CXX_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == std::complex<double>(ranks * (ranks - 1) / 2, ranks), "complex sum %g, %g", sum.real(), sum.imag());
    bool all = rank < ranks, every = false;
    MPI_Allreduce(&all, &every, 1, MPI_CXX_BOOL, MPI_LAND, MPI_COMM_WORLD);
    CHECK(every, "not every rank is below %d", ranks);
    MPI_Bcast(mine.data(), 10, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD);
    CHECK(mine[9] == ranks + 8, "bcast %g", mine[9]);
    MPI_Finalize();
    return 0;
}
