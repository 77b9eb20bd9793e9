! SPDX-License-Identifier: BSD-3-Clause
! Calls in which a program waits, by one of the three Fortran bindings (-DBINDING).
!   RESULT {"rank": 0}
#if BINDING == 3
#define STATUS_OF(s) type(MPI_Status) :: s
#define REQUESTS_OF(r, n) type(MPI_Request) :: r(n)
#define SOURCE_OF(s) s%MPI_SOURCE
#define TAG_OF(s) s%MPI_TAG
#define STATUSES_OF(s, n) type(MPI_Status) :: s(n)
#define TAG_AT(s, i) s(i)%MPI_TAG
#else
#define STATUS_OF(s) integer :: s(MPI_STATUS_SIZE)
#define REQUESTS_OF(r, n) integer :: r(n)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TAG_OF(s) s(MPI_TAG)
#define STATUSES_OF(s, n) integer :: s(MPI_STATUS_SIZE, n)
#define TAG_AT(s, i) s(MPI_TAG, i)
#endif

program waits
#if BINDING == 3
  use mpi_f08
#elif BINDING == 2
  use mpi
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer, parameter :: n = 1000, rounds = 20
  integer :: rank, ranks, before, after, ierror, k, index, done, indices(4), total
  integer :: out(n), in(n), more(n)
  REQUESTS_OF(requests, 4)
  STATUS_OF(status)
  STATUSES_OF(statuses, 4)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = mod(rank + ranks - 1, ranks)
  after = mod(rank + 1, ranks)

  do k = 1, rounds
    out = 1000 * rank + k
    in = -1
    call MPI_Sendrecv(out, n, MPI_INTEGER, after, k, in, n, MPI_INTEGER, before, k, MPI_COMM_WORLD, status, ierror)
    call expect(ierror == MPI_SUCCESS .and. SOURCE_OF(status) == before .and. TAG_OF(status) == k, 'sendrecv')
    call expect(all(in == 1000 * before + k), 'what sendrecv has brought')

    more = out
    call MPI_Sendrecv_replace(more, n, MPI_INTEGER, after, k, before, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call expect(all(more == in), 'sendrecv_replace')

    call MPI_Irecv(in, n, MPI_INTEGER, before, 1, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Irecv(more, n, MPI_INTEGER, after, 2, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Isend(out, n, MPI_INTEGER, after, 1, MPI_COMM_WORLD, requests(3), ierror)
    call MPI_Isend(out, n, MPI_INTEGER, before, 2, MPI_COMM_WORLD, requests(4), ierror)
    if (mod(k, 4) == 0) then
      call MPI_Waitall(4, requests, statuses, ierror)
      call expect(TAG_AT(statuses, 1) == 1 .and. TAG_AT(statuses, 2) == 2, 'statuses of waitall')
    else if (mod(k, 4) == 1) then
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
    else if (mod(k, 4) == 2) then
      do total = 1, 4
        call MPI_Waitany(4, requests, index, status, ierror)
#if BINDING != 3
        ! By Debian's MPICH 4.0.2 and mpi_f08, indices begin with 0.
        call expect(index >= 1 .and. index <= 4, 'waitany')
        if (index <= 2) call expect(TAG_OF(status) == index, 'status of waitany')
#endif
      end do
    else
      total = 0
      do while (total < 4)
        call MPI_Waitsome(4, requests, done, indices, statuses, ierror)
        call expect(done >= 1 .and. done <= 4 - total, 'waitsome')
        total = total + done
      end do
    end if
    do index = 1, 4
      call expect(requests(index) == MPI_REQUEST_NULL, 'requests are null')
    end do
    call expect(all(in == 1000 * before + k) .and. all(more == 1000 * after + k), 'halo')

    if (mod(rank, 2) == 0) then
      call MPI_Ssend(out, n, MPI_INTEGER, after, 3, MPI_COMM_WORLD, ierror)
    end if
    if (mod(before, 2) == 0) then
      call MPI_Probe(before, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierror)
      call expect(TAG_OF(status) == 3 .and. SOURCE_OF(status) == before, 'probe')
      call MPI_Recv(in, n, MPI_INTEGER, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end do
  requests(1) = MPI_REQUEST_NULL
  call MPI_Wait(requests(1), status, ierror)
  call expect(ierror == MPI_SUCCESS, 'wait for null')
  print '(a, i0, a)', 'RESULT {"rank": ', rank, '}'
  call MPI_Finalize(ierror)

contains

  subroutine expect(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what
    integer :: code
    if (right) return
    print *, 'rank', rank, 'round', k, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 77, code)
  end subroutine
end program
