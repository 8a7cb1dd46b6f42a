! SPDX-License-Identifier: Apache-2.0
!
! Collectives through `use mpi_f08`: Fortran's types, MPI_IN_PLACE, a request, and a section of an
! array whose elements do not lie one after the other. Every value is checked.
program collectives_f08
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: real32, real64, int64
  implicit none
  integer, parameter :: elements = 1000
  integer :: rank, ranks, total, i
  real(real64) :: given(elements), taken(elements)
  real(real32) :: short(3), short_sum(3)
  complex(real64) :: z(3), z_sum(3)
  integer(int64) :: wide, wide_max
  logical :: mine, all_true
  integer :: numbers(4), sums(4), gathered(64)
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  total = ranks * (ranks - 1) / 2

  given = rank
  call MPI_Allreduce(given, taken, elements, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (any(taken /= total)) error stop "MPI_DOUBLE_PRECISION"
  call MPI_Allreduce(MPI_IN_PLACE, given, elements, MPI_REAL8, MPI_MAX, MPI_COMM_WORLD)
  if (any(given /= ranks - 1)) error stop "MPI_IN_PLACE"
  short = rank
  call MPI_Reduce(short, short_sum, 3, MPI_REAL, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0 .and. any(short_sum /= total)) error stop "MPI_REAL"
  z = cmplx(rank, -rank, real64)
  call MPI_Allreduce(z, z_sum, 3, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD)
  if (any(real(z_sum) /= total) .or. any(aimag(z_sum) /= -total)) error stop "MPI_DOUBLE_COMPLEX"
  wide = rank * 4294967296_int64
  call MPI_Allreduce(wide, wide_max, 1, MPI_INTEGER8, MPI_MAX, MPI_COMM_WORLD)
  if (wide_max /= (ranks - 1) * 4294967296_int64) error stop "MPI_INTEGER8"
  mine = rank /= 0
  call MPI_Allreduce(mine, all_true, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
  if (all_true) error stop "MPI_LAND"
  call MPI_Allreduce(mine, all_true, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD)
  if (.not. all_true) error stop "MPI_LOR"

  numbers = [(rank + i, i = 1, 4)]
  call MPI_Iallreduce(numbers, sums, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (any(sums /= [(total + ranks * i, i = 1, 4)])) error stop "MPI_Iallreduce"
  call MPI_Allgather(rank, 1, MPI_INTEGER, gathered, 1, MPI_INTEGER, MPI_COMM_WORLD)
  if (any(gathered(1:ranks) /= [(i, i = 0, ranks - 1)])) error stop "MPI_Allgather"
  call MPI_Bcast(numbers, 4, MPI_INTEGER, 1, MPI_COMM_WORLD)
  if (any(numbers /= [(1 + i, i = 1, 4)])) error stop "MPI_Bcast"
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a)', "all right"
  call MPI_Finalize()
end program
