! SPDX-License-Identifier: BSD-3-Clause
! Every collective of the library from Fortran, through one of the three bindings: -DBINDING_MPIF,
! -DBINDING_MPI or -DBINDING_F08. Every result is checked, MPI_IN_PLACE included. The statistics
! must say how often each was served: barrier 1, bcast 2, gather 2, gatherv 1, scatter 2, scatterv
! 1, allgather 2, allgatherv 2, allreduce 5, the others 1.
program interpose_fortran
#if defined(BINDING_F08)
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm, ring
#elif defined(BINDING_MPI)
  use mpi
  implicit none
  integer :: comm, ring
#else
  implicit none
  include 'mpif.h'
  integer :: comm, ring
#endif
  integer :: rank, size, ierr, i, j, root, total
  integer, allocatable :: mine(:), all(:), counts(:), displs(:)
  double precision :: strided(2, 10)
  integer :: pairs(2), around(2)
  integer, allocatable :: places(:)
  logical :: flag
#if defined(BINDING_F08)
  type(MPI_Datatype), allocatable :: types(:)
  type(MPI_Op) :: op
#else
  integer, allocatable :: types(:)
  integer :: op
  external :: combine
#endif

  call MPI_Init(ierr)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, size, ierr)
  root = size - 1
  allocate (mine(size), all(size * size), counts(size), displs(size))

  call MPI_Barrier(comm, ierr)
  call check(ierr == MPI_SUCCESS, 'barrier')

  mine = merge([(i, i = 1, size)], 0, rank == root)
  call MPI_Bcast(mine, size, MPI_INTEGER, root, comm, ierr)
  call check(all_equal(mine, [(i, i = 1, size)]), 'bcast')

  ! A section with a stride: the bindings copy it, or pass on a descriptor.
  strided = merge(1d0, 0d0, rank == root)
  call MPI_Bcast(strided(1, :), 10, MPI_DOUBLE_PRECISION, root, comm, ierr)
  call check(sum(strided(1, :)) == 10d0 .and. sum(strided(2, :)) == merge(10d0, 0d0, rank == root), 'bcast of a section')

  mine = rank
  all = -1
  call MPI_Gather(mine, size, MPI_INTEGER, all, size, MPI_INTEGER, root, comm, ierr)
  if (rank == root) call check(all_equal(all, [((i, j = 1, size), i = 0, size - 1)]), 'gather')
  if (rank == root) then
    all = -1
    all(rank * size + 1:) = rank
    call MPI_Gather(MPI_IN_PLACE, size, MPI_INTEGER, all, size, MPI_INTEGER, root, comm, ierr)
    call check(all_equal(all, [((i, j = 1, size), i = 0, size - 1)]), 'gather in place')
  else
    call MPI_Gather(mine, size, MPI_INTEGER, all, size, MPI_INTEGER, root, comm, ierr)
  end if

  ! Rank i has i + 1 elements, without gaps: i + 1 fits in `size`.
  counts = [(i, i = 1, size)]
  displs = [(i * (i - 1) / 2, i = 1, size)]
  total = size * (size + 1) / 2
  all = -1
  call MPI_Gatherv(mine, rank + 1, MPI_INTEGER, all, counts, displs, MPI_INTEGER, root, comm, ierr)
  if (rank == root) call check(all_equal(all(:total), [((i - 1, j = 1, i), i = 1, size)]), 'gatherv')
  if (rank == root) call check(total == size * size .or. all_equal(all(total + 1:), [(-1, i = total + 1, size * size)]), &
                               'gatherv wrote too much')

  if (rank == root) all = [((i, j = 1, size), i = 0, size - 1)]
  mine = -1
  call MPI_Scatter(all, size, MPI_INTEGER, mine, size, MPI_INTEGER, root, comm, ierr)
  call check(all_equal(mine, [(rank, i = 1, size)]), 'scatter')
  mine = -1
  if (rank == root) then
    call MPI_Scatter(all, size, MPI_INTEGER, MPI_IN_PLACE, size, MPI_INTEGER, root, comm, ierr)
    call check(all(size * size) == root, 'scatter in place')
  else
    call MPI_Scatter(all, size, MPI_INTEGER, mine, size, MPI_INTEGER, root, comm, ierr)
    call check(all_equal(mine, [(rank, i = 1, size)]), 'scatter in place')
  end if
  if (rank == root) all(:total) = [((i - 1, j = 1, i), i = 1, size)]
  mine = -1
  call MPI_Scatterv(all, counts, displs, MPI_INTEGER, mine, size, MPI_INTEGER, root, comm, ierr)
  call check(all_equal(mine(:rank + 1), [(rank, i = 1, rank + 1)]), 'scatterv')
  call check(rank + 1 == size .or. all_equal(mine(rank + 2:), [(-1, i = rank + 2, size)]), 'scatterv wrote too much')

  mine = rank
  all = -1
  call MPI_Allgather(mine, size, MPI_INTEGER, all, size, MPI_INTEGER, comm, ierr)
  call check(all_equal(all, [((i, j = 1, size), i = 0, size - 1)]), 'allgather')
  all = -1
  all(rank * size + 1:(rank + 1) * size) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, size, MPI_INTEGER, comm, ierr)
  call check(all_equal(all, [((i, j = 1, size), i = 0, size - 1)]), 'allgather in place')
  all = -1
  call MPI_Allgatherv(mine, rank + 1, MPI_INTEGER, all, counts, displs, MPI_INTEGER, comm, ierr)
  call check(all_equal(all(:total), [((i - 1, j = 1, i), i = 1, size)]), 'allgatherv')
  all = -1
  all(displs(rank + 1) + 1:displs(rank + 1) + counts(rank + 1)) = rank
  call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displs, MPI_INTEGER, comm, ierr)
  call check(all_equal(all(:total), [((i - 1, j = 1, i), i = 1, size)]), 'allgatherv in place')

  ! What rank i has for rank j: 100 i + j.
  allocate (types(size), places(size))
  types = MPI_INTEGER
  counts = 1
  displs = [(i, i = 0, size - 1)]
  places = 4 * displs
  mine = [(100 * rank + i, i = 0, size - 1)]
  all = -1
  call MPI_Alltoall(mine, 1, MPI_INTEGER, all, 1, MPI_INTEGER, comm, ierr)
  call check(all_equal(all(:size), [(100 * i + rank, i = 0, size - 1)]), 'alltoall')
  all = -1
  call MPI_Alltoallv(mine, counts, displs, MPI_INTEGER, all, counts, displs, MPI_INTEGER, comm, ierr)
  call check(all_equal(all(:size), [(100 * i + rank, i = 0, size - 1)]), 'alltoallv')
  all = -1
  call MPI_Alltoallw(mine, counts, places, types, all, counts, places, types, comm, ierr)
  call check(all_equal(all(:size), [(100 * i + rank, i = 0, size - 1)]), 'alltoallw')

  all = -1
  call MPI_Reduce(mine, all, size, MPI_INTEGER, MPI_SUM, root, comm, ierr)
  if (rank == root) call check(all_equal(all(:size), [(sum_of(i, size), i = 0, size - 1)]), 'reduce')
  all(:size) = mine
  call MPI_Allreduce(MPI_IN_PLACE, all, size, MPI_INTEGER, MPI_SUM, comm, ierr)
  call check(all_equal(all(:size), [(sum_of(i, size), i = 0, size - 1)]), 'allreduce in place')
  all = -1
  call MPI_Reduce_scatter(mine, all, counts, MPI_INTEGER, MPI_SUM, comm, ierr)
  call check(all(1) == sum_of(rank, size), 'reduce_scatter')
  all = -1
  call MPI_Reduce_scatter_block(mine, all, 1, MPI_INTEGER, MPI_SUM, comm, ierr)
  call check(all(1) == sum_of(rank, size), 'reduce_scatter_block')
  call MPI_Scan(mine, all, size, MPI_INTEGER, MPI_SUM, comm, ierr)
  call check(all_equal(all(:size), [(sum_of(i, rank + 1), i = 0, size - 1)]), 'scan')
  all = -1
  call MPI_Exscan(mine, all, size, MPI_INTEGER, MPI_SUM, comm, ierr)
  if (rank == 0) call check(all(1) == -1, 'exscan wrote to rank 0')
  if (rank /= 0) call check(all_equal(all(:size), [(sum_of(i, rank), i = 0, size - 1)]), 'exscan')

  flag = rank == root
  call MPI_Allreduce(MPI_IN_PLACE, flag, 1, MPI_LOGICAL, MPI_LOR, comm, ierr)
  call check(flag, 'allreduce of a logical')
  strided(:, 1) = dble(rank)
  call MPI_Allreduce(MPI_IN_PLACE, strided, 2, MPI_DOUBLE_PRECISION, MPI_MAX, comm, ierr)
  call check(strided(1, 1) == size - 1 .and. strided(2, 1) == size - 1, 'allreduce of reals')
  pairs = [modulo(rank + 1, size), rank]
  call MPI_Allreduce(MPI_IN_PLACE, pairs, 1, MPI_2INTEGER, MPI_MINLOC, comm, ierr)
  call check(pairs(1) == 0 .and. pairs(2) == size - 1, 'allreduce of a pair')
  ! An operation of our own that does not commute: it keeps what comes first.
  call MPI_Op_create(combine, .false., op, ierr)
  mine = rank + 7
  call MPI_Allreduce(mine, all, size, MPI_INTEGER, op, comm, ierr)
  call check(all_equal(all(:size), [(7, i = 1, size)]), 'allreduce by an operation of our own')
  call MPI_Op_free(op, ierr)

  call MPI_Cart_create(comm, 1, [size], [.true.], .false., ring, ierr)
  pairs = [10 * rank, 10 * rank + 1]
  around = -1
  call MPI_Neighbor_alltoall(pairs, 1, MPI_INTEGER, around, 1, MPI_INTEGER, ring, ierr)
  call check(around(1) == 10 * modulo(rank - 1, size) + 1 .and. around(2) == 10 * modulo(rank + 1, size), 'alltoall')
  call MPI_Comm_free(ring, ierr)

  if (rank == 0) print '(a)', 'RESULT {"right": true}'
  call MPI_Finalize(ierr)

contains

  ! The sum of element i over the first `last` ranks.
  integer function sum_of(i, last)
    integer, intent(in) :: i, last
    sum_of = 100 * last * (last - 1) / 2 + last * i
  end function

#if defined(BINDING_F08)
  subroutine combine(in, inout, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [length])
    call c_f_pointer(inout, b, [length])
    b = a
  end subroutine
#endif

  logical function all_equal(found, expected)
    integer, intent(in) :: found(:), expected(:)
    integer :: k
    all_equal = ubound(found, 1) == ubound(expected, 1)
    do k = 1, min(ubound(found, 1), ubound(expected, 1))
      all_equal = all_equal .and. found(k) == expected(k)
    end do
  end function

  subroutine check(fine, what)
    logical, intent(in) :: fine
    character(*), intent(in) :: what
    integer :: code
    if (fine) return
    print '(a, i0, 3a)', 'rank ', rank, ': ', what, ' is wrong'
    call MPI_Abort(MPI_COMM_WORLD, 77, code)
  end subroutine

end program

#if !defined(BINDING_F08)
subroutine combine(in, inout, length, datatype)
  integer :: length, datatype
  integer :: in(length), inout(length)
  inout = in
end subroutine
#endif
