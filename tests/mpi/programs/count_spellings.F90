! SPDX-License-Identifier: BSD-3-Clause
! The same in mpi_f08: the kind of the arrays is the spelling.
!   RESULT {"wrong": 0}, a line for each rank
program count_spellings
  use mpi_f08
  implicit none
  integer, parameter :: most = 16, rounds = 5
  integer :: counts(most), displs(most), sent(most), got(most), rank, n, i, k, wrong
  integer(kind=MPI_COUNT_KIND) :: large(most)
  integer(kind=MPI_ADDRESS_KIND) :: at(most)
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  counts = 1
  large = 1
  displs = [(i, i = 0, most - 1)]
  at = displs
  sent = [(100 * rank + i, i = 0, most - 1)]
  wrong = 0
  do k = 1, rounds
    got = -1
    if (mod(rank, 2) == 0) then
      call MPI_Ialltoallv(sent, large, at, MPI_INTEGER, got, large, at, MPI_INTEGER, MPI_COMM_WORLD, request)
    else
      call MPI_Ialltoallv(sent, counts, displs, MPI_INTEGER, got, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, request)
    end if
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    do i = 1, n
      if (got(i) /= 100 * (i - 1) + rank) wrong = wrong + 1
    end do
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  print '(a, i0, a)', 'RESULT {"wrong": ', wrong, '}'
  call MPI_Finalize()
end program count_spellings
