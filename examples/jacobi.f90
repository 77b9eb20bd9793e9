! SPDX-License-Identifier: BSD-3-Clause
! Jacobi's method for Laplace's equation, by Fortran 2008's bindings: jacobi [GRID]
!
! Each rank has some columns of a square grid. In each step a point becomes the mean of its four
! neighbours. Border columns go to both neighbours, and Allreduce finds the largest change of all
! ranks. x*x - y*y solves the equation on every grid, so the program can check what it finds.
program jacobi
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  implicit none
  real(real64), allocatable :: u(:, :), next(:, :)
  real(real64) :: change, error, begin, seconds
  integer :: n, rank, ranks, left, right, first, last
  character(20) :: text

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  n = 32
  if (command_argument_count() > 0) then
    call get_command_argument(1, text)
    read (text, *) n
  end if
  if (n < ranks) then
    if (rank == 0) write (error_unit, '(a)') 'jacobi: GRID is a number of columns, at least one for each rank'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end if
  first = n*rank/ranks + 1
  last = n*(rank + 1)/ranks
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)

  ! The border of the square has the solution's values. All else begins with zero.
  allocate (u(0:n + 1, first - 1:last + 1))
  u = 0
  u(0, :) = column(0)
  u(n + 1, :) = column(n + 1)
  if (rank == 0) u(:, 0) = row(0)
  if (rank == ranks - 1) u(:, n + 1) = row(n + 1)
  next = u

  begin = MPI_Wtime()
  change = 1
  do while (change > 1e-10_real64)
    call exchange()
    next(1:n, first:last) = (u(0:n - 1, first:last) + u(2:n + 1, first:last) &
                             + u(1:n, first - 1:last - 1) + u(1:n, first + 1:last + 1))/4
    change = maxval(abs(next(1:n, first:last) - u(1:n, first:last)))
    call MPI_Allreduce(MPI_IN_PLACE, change, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    u(1:n, first:last) = next(1:n, first:last)
  end do
  seconds = MPI_Wtime() - begin

  error = largest_error()
  if (rank == 0) print '(a, i0, a, i0, a, i0, 3a, f6.3, a)', 'jacobi: ', n, ' x ', n, ' points, ', ranks, ' ranks: ', &
    merge('right', 'wrong', error < 1e-6_real64), ',', seconds, ' s'
  call MPI_Finalize()
  if (error >= 1e-6_real64) stop 1

contains

  pure elemental real(real64) function solution(i, j)
    integer, intent(in) :: i, j
    solution = (real(i, real64)**2 - real(j, real64)**2)/real(n + 1, real64)**2
  end function

  ! Values of the solution along one row of the grid, and along one column.
  function column(i) result(values)
    integer, intent(in) :: i
    real(real64) :: values(first - 1:last + 1)
    integer :: j
    values = [(solution(i, j), j=first - 1, last + 1)]
  end function

  function row(j) result(values)
    integer, intent(in) :: j
    real(real64) :: values(0:n + 1)
    integer :: i
    values = [(solution(i, j), i=0, n + 1)]
  end function

  subroutine exchange()
    call MPI_Sendrecv(u(:, first), n + 2, MPI_DOUBLE_PRECISION, left, 0, &
                      u(:, last + 1), n + 2, MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(u(:, last), n + 2, MPI_DOUBLE_PRECISION, right, 1, &
                      u(:, first - 1), n + 2, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  real(real64) function largest_error()
    integer :: j
    largest_error = 0
    do j = first, last
      largest_error = max(largest_error, maxval(abs(u(:, j) - row(j))))
    end do
    call MPI_Allreduce(MPI_IN_PLACE, largest_error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  end function
end program
