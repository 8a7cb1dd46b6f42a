! SPDX-License-Identifier: Apache-2.0
!
! The collectives that the tree takes, as a Fortran program calls them: with mpif.h, with `use mpi`
! (-DUSE_MPI) or with `use mpi_f08` (-DUSE_MPI_F08). Each result is checked, and so is that of
! MPI_IN_PLACE, MPI_BOTTOM and, with mpi_f08, of every other element of an array.
program fortran_collectives
#if defined(USE_MPI_F08)
  use mpi_f08
#define COMM type(MPI_Comm)
#define TYPE_HANDLE type(MPI_Datatype)
#elif defined(USE_MPI)
  use mpi
#define COMM integer
#define TYPE_HANDLE integer
#endif
  implicit none
#if !defined(USE_MPI_F08) && !defined(USE_MPI)
  include 'mpif.h'
#define COMM integer
#define TYPE_HANDLE integer
#endif
  integer :: rank, ranks, error, i
#ifdef INIT_THREAD
  integer :: provided
#endif
  integer :: ones(4), sums(4), everyone(64)
  integer, volatile :: far(4)
  double precision :: x(8), y(8)
  double complex :: z(2)
  logical :: flags(2)
  integer(kind=MPI_ADDRESS_KIND) :: address
  integer :: lengths(1)
  integer(kind=MPI_ADDRESS_KIND) :: addresses(1)
  COMM :: half, copy
  TYPE_HANDLE :: absolute

#ifdef INIT_THREAD
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, error)
#else
  call MPI_Init(error)
#endif
  call check(error == MPI_SUCCESS, 'MPI_Init')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)

  ones = 1
  sums = -1
  error = -1
  call MPI_Allreduce(ones, sums, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call check(error == MPI_SUCCESS .and. all(sums == ranks), 'MPI_Allreduce')

  x = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, x, 8, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  call check(all(x == ranks), 'MPI_Allreduce in place')

  z = cmplx(1, rank, kind(z))
  call MPI_Allreduce(MPI_IN_PLACE, z, 2, MPI_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD, error)
  call check(all(z == cmplx(ranks, ranks * (ranks - 1) / 2, kind(z))), 'MPI_Allreduce of complex numbers')

  flags = [rank == 0, .true.]
  call MPI_Allreduce(MPI_IN_PLACE, flags, 2, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, error)
  call check(.not. flags(1) .and. flags(2), 'MPI_Allreduce of logicals')

  y = rank
  x = -1
  call MPI_Reduce(y, x, 8, MPI_DOUBLE_PRECISION, MPI_SUM, 1, MPI_COMM_WORLD, error)
  call check(rank /= 1 .or. all(x == ranks * (ranks - 1) / 2), 'MPI_Reduce')
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, y, 8, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  else
    call MPI_Reduce(y, x, 8, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  end if
  call check(rank /= 0 .or. all(y == ranks * (ranks - 1) / 2), 'MPI_Reduce in place')

  sums = rank
  call MPI_Bcast(sums, 4, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  call check(all(sums == 1), 'MPI_Bcast')

  call MPI_Allgather(rank, 1, MPI_INTEGER, everyone, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check(all(everyone(1:ranks) == [(i, i = 0, ranks - 1)]), 'MPI_Allgather')
  everyone = -1
  everyone(rank + 1) = 2 * rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, everyone, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
  call check(all(everyone(1:ranks) == [(2 * i, i = 0, ranks - 1)]), 'MPI_Allgather in place')

  everyone = 1
  call MPI_Reduce_scatter_block(everyone, sums, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call check(sums(1) == ranks, 'MPI_Reduce_scatter_block')

  ! The only address of this type's data is its own, so the buffer has to be MPI_BOTTOM.
  call MPI_Get_address(far, address, error)
  lengths = 4
  addresses = address
  call MPI_Type_create_hindexed(1, lengths, addresses, MPI_INTEGER, absolute, error)
  call MPI_Type_commit(absolute, error)
  far = 10 * rank
  call MPI_Bcast(MPI_BOTTOM, 1, absolute, 1, MPI_COMM_WORLD, error)
  call check(all(far == 10), 'MPI_Bcast at MPI_BOTTOM')
  call MPI_Type_free(absolute, error)

  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
  call MPI_Comm_dup(half, copy, error)
  call MPI_Allreduce(rank, i, 1, MPI_INTEGER, MPI_MIN, copy, error)
  call check(i == mod(rank, 2), 'MPI_Allreduce of half')
  call MPI_Barrier(copy, error)
  call MPI_Comm_free(copy, error)
  call MPI_Comm_free(half, error)

#ifdef USE_MPI_F08
  if (MPI_SUBARRAYS_SUPPORTED) then
    x = rank
    call MPI_Bcast(x(1:8:2), 4, MPI_DOUBLE_PRECISION, 1, MPI_COMM_WORLD, error)
    call check(all(x(1:8:2) == 1) .and. all(x(2:8:2) == rank), 'MPI_Bcast of every other element')
  end if
  ! The argument for the error may be left out.
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Finalize()
#else
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
#endif
  if (rank == 0) print '(a)', 'all right'

contains
  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    integer :: ignored
    if (.not. condition) then
      print '(a, i0, 2a)', 'rank ', rank, ': wrong: ', what
      call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
    end if
  end subroutine
end program
