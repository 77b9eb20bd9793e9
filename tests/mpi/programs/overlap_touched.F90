! SPDX-License-Identifier: BSD-3-Clause
! Alltoalls that may return early, called from Fortran. At once the buffer goes to another function,
! and MPI_IN_PLACE is Fortran's. Each rank stops with an error if it has wrong data.
! -DBINDING=1: mpif.h, 2: mpi, 3: mpi_f08.
program overlap_touched
#if BINDING == 3
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(2)
#elif BINDING == 2
  use mpi
  implicit none
  integer :: requests(2)
#else
  implicit none
  include 'mpif.h'
  integer :: requests(2)
#endif
  integer, parameter :: block = 524288
  integer :: rank, ranks, next, before, call_number, ierr, r
  integer, allocatable :: from(:), to(:), other(:)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (from(block * ranks), to(block * ranks), other(block * ranks))
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call_number = 0

  call alltoall()
  call MPI_Irecv(other, size(other), MPI_INTEGER, before, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Isend(to, size(to), MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  do r = 0, ranks - 1
    call expect(other, r, value(r, before))
  end do

  call alltoall()
  call MPI_Allreduce(MPI_IN_PLACE, to, size(to), MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  do r = 0, ranks - 1
    call expect(to, r, value(r, ranks - 1))
  end do

  call alltoall()
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, to, block, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  do r = 0, ranks - 1
    call expect(to, r, value(rank, r))
  end do
  call MPI_Finalize(ierr)

contains

  ! What rank `receiver` gets from rank `sender` in this call, besides the number of the element.
  integer function value(sender, receiver)
    integer, intent(in) :: sender, receiver
    value = call_number * 1009 + sender * 131 + receiver * 17
  end function

  subroutine alltoall()
    integer :: peer, i
    call_number = call_number + 1
    do peer = 0, ranks - 1
      do i = 1, block
        from(peer * block + i) = value(rank, peer) + i
      end do
    end do
    to = -1
    other = -1
    call MPI_Alltoall(from, block, MPI_INTEGER, to, block, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  end subroutine

  subroutine expect(buffer, at, first)
    integer, intent(in) :: buffer(:), at, first
    integer :: i
    do i = 1, block
      if (buffer(at * block + i) /= first + i) then
        print *, 'rank', rank, 'call', call_number, 'wrong data at', at, i
        call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
      end if
    end do
  end subroutine
end program
