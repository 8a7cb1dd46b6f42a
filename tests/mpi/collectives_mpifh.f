C     SPDX-License-Identifier: Apache-2.0
C
C     Collectives through mpif.h. Every value is checked.
      program mpifh
      implicit none
      include 'mpif.h'
      integer rank, ranks, total, error, i
      double precision given(100), taken(100)
      integer pair(2), lowest(2)
      integer number, request, status(MPI_STATUS_SIZE)

      call MPI_INIT(error)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
      total = ranks * (ranks - 1) / 2
      do i = 1, 100
         given(i) = rank + i
      end do
      do i = 1, 4
         call MPI_ALLREDUCE(given, taken, 100, MPI_DOUBLE_PRECISION,
     &        MPI_SUM, MPI_COMM_WORLD, error)
         if (taken(100) .ne. total + 100d0 * ranks) stop 1
      end do
      call MPI_ALLREDUCE(MPI_IN_PLACE, given, 100, MPI_DOUBLE_PRECISION,
     &     MPI_MAX, MPI_COMM_WORLD, error)
      if (given(1) .ne. ranks) stop 2
      pair(1) = -rank
      pair(2) = rank
      call MPI_ALLREDUCE(pair, lowest, 1, MPI_2INTEGER, MPI_MINLOC,
     &     MPI_COMM_WORLD, error)
      if (lowest(1) .ne. 1 - ranks .or. lowest(2) .ne. ranks - 1) stop 3
      number = rank
      call MPI_IBCAST(number, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD,
     &     request, error)
      call MPI_WAIT(request, status, error)
      if (number .ne. ranks - 1) stop 4
      call MPI_BARRIER(MPI_COMM_WORLD, error)
      if (rank .eq. 0) print '(a)', 'all right'
      call MPI_FINALIZE(error)
      end
