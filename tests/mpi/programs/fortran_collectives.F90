! SPDX-License-Identifier: BSD-3-Clause
! Every collective of ours from Fortran, with MPI_IN_PLACE, derived types, MPI_BOTTOM and array
! sections. BINDING says how the program includes MPI: 1 mpif.h, 2 the mpi module, 3 the mpi_f08
! module. Each rank prints how often it made which call, to compare with the library's statistics.
#if BINDING == 3
#define COMM_T type(MPI_Comm)
#define DATATYPE_T type(MPI_Datatype)
#else
#define COMM_T integer
#define DATATYPE_T integer
#endif

program fortran_collectives
#if BINDING == 2
  use mpi
#elif BINDING == 3
  use mpi_f08
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer, parameter :: n = 5
  integer, parameter :: barriers = 1, bcasts = 2, gathers = 3, gathervs = 4, scatters = 5, scattervs = 6
  integer, parameter :: allgathers = 7, allgathervs = 8
  integer :: rank, ranks, ierr, calls(8)
  COMM_T :: comm

  calls = 0
  call MPI_Init(ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, ranks, ierr)
  call barrier_and_bcast()
  call derived_bcast()
  call bottom_bcast()
  call section_bcast()
  call regular(0)
  call regular(ranks - 1)
  call irregular(0)
  call irregular(ranks - 1)
  call report()
  call MPI_Finalize(ierr)

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    integer :: code
    if (good .and. ierr == MPI_SUCCESS) return
    write (0, '(A,I0,2A)') 'fortran: FAILED on rank ', rank, ': ', what
    call MPI_Abort(MPI_COMM_WORLD, 3, code)
  end subroutine

  subroutine barrier_and_bcast()
    integer :: numbers(1000), i
    double precision :: one
    call MPI_Barrier(comm, ierr)
    calls(barriers) = calls(barriers) + 1
    numbers = -1
    if (rank == ranks - 1) numbers = [(i * 7, i = 1, 1000)]
    call MPI_Bcast(numbers, 1000, MPI_INTEGER, ranks - 1, comm, ierr)
    call expect(all(numbers == [(i * 7, i = 1, 1000)]), 'bcast of integers')
    one = 0
    if (rank == 0) one = 2.5d0
    call MPI_Bcast(one, 1, MPI_DOUBLE_PRECISION, 0, comm, ierr)
    call expect(one == 2.5d0, 'bcast of a double')
    calls(bcasts) = calls(bcasts) + 2
  end subroutine

  ! A row of a matrix in Fortran's order: every n-th number.
  subroutine derived_bcast()
    DATATYPE_T :: row
    integer :: matrix(n, n), i
    call MPI_Type_vector(n, 1, n, MPI_INTEGER, row, ierr)
    call MPI_Type_commit(row, ierr)
    matrix = -1
    if (rank == 0) matrix(2, :) = [(i, i = 1, n)]
    call MPI_Bcast(matrix(2, 1), 1, row, 0, comm, ierr)
    calls(bcasts) = calls(bcasts) + 1
    call expect(all(matrix(2, :) == [(i, i = 1, n)]) .and. all(matrix(1, :) == -1), 'bcast of a row')
    call MPI_Type_free(row, ierr)
  end subroutine

  subroutine bottom_bcast()
    DATATYPE_T :: places
    integer, target, save :: first, second
    integer(MPI_ADDRESS_KIND) :: addresses(2)
    integer :: lengths(2)
    first = rank
    second = 10 * rank
    call MPI_Get_address(first, addresses(1), ierr)
    call MPI_Get_address(second, addresses(2), ierr)
    lengths = 1
    call MPI_Type_create_hindexed(2, lengths, addresses, MPI_INTEGER, places, ierr)
    call MPI_Type_commit(places, ierr)
    call MPI_Bcast(MPI_BOTTOM, 1, places, ranks - 1, comm, ierr)
    calls(bcasts) = calls(bcasts) + 1
    call check_bottom(first, second)
    call MPI_Type_free(places, ierr)
  end subroutine

  ! It is not inlined, so that the compiler forgets what it knew of the two.
  subroutine check_bottom(a, b)
    integer, volatile :: a, b
    call expect(a == ranks - 1 .and. b == 10 * (ranks - 1), 'bcast from MPI_BOTTOM')
  end subroutine

  subroutine section_bcast()
    integer :: numbers(20), i
    numbers = -1
    if (rank == 0) numbers(1:19:2) = [(i, i = 1, 10)]
    call MPI_Bcast(numbers(1:19:2), 10, MPI_INTEGER, 0, comm, ierr)
    calls(bcasts) = calls(bcasts) + 1
    call expect(all(numbers(1:19:2) == [(i, i = 1, 10)]) .and. all(numbers(2:20:2) == -1), 'bcast of a section')
  end subroutine

  subroutine regular(root)
    integer, intent(in) :: root
    integer :: mine(n), all_of(n, 0:ranks - 1), i, r
    mine = [(100 * rank + i, i = 1, n)]
    all_of = -1
    call MPI_Gather(mine, n, MPI_INTEGER, all_of, n, MPI_INTEGER, root, comm, ierr)
    if (rank == root) call check_all(all_of, 'gather')
    all_of = -1
    if (rank == root) then
      all_of(:, root) = mine
      call MPI_Gather(MPI_IN_PLACE, n, MPI_INTEGER, all_of, n, MPI_INTEGER, root, comm, ierr)
      call check_all(all_of, 'gather in place')
    else
      call MPI_Gather(mine, n, MPI_INTEGER, all_of, n, MPI_INTEGER, root, comm, ierr)
    end if
    calls(gathers) = calls(gathers) + 2

    do r = 0, ranks - 1
      all_of(:, r) = [(100 * r + i, i = 1, n)]
    end do
    mine = -1
    call MPI_Scatter(all_of, n, MPI_INTEGER, mine, n, MPI_INTEGER, root, comm, ierr)
    call expect(all(mine == [(100 * rank + i, i = 1, n)]), 'scatter')
    mine = -1
    if (rank == root) then
      call MPI_Scatter(all_of, n, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, root, comm, ierr)
      call expect(all(mine == -1), 'scatter in place')
    else
      call MPI_Scatter(all_of, n, MPI_INTEGER, mine, n, MPI_INTEGER, root, comm, ierr)
      call expect(all(mine == [(100 * rank + i, i = 1, n)]), 'scatter')
    end if
    calls(scatters) = calls(scatters) + 2

    mine = [(100 * rank + i, i = 1, n)]
    all_of = -1
    call MPI_Allgather(mine, n, MPI_INTEGER, all_of, n, MPI_INTEGER, comm, ierr)
    call check_all(all_of, 'allgather')
    all_of = -1
    all_of(:, rank) = mine
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, n, MPI_INTEGER, comm, ierr)
    call check_all(all_of, 'allgather in place')
    calls(allgathers) = calls(allgathers) + 2
  end subroutine

  subroutine check_all(all_of, what)
    integer, intent(in) :: all_of(n, 0:ranks - 1)
    character(*), intent(in) :: what
    integer :: i, r
    do r = 0, ranks - 1
      call expect(all(all_of(:, r) == [(100 * r + i, i = 1, n)]), what)
    end do
  end subroutine

  ! Rank r has r + 1 numbers, kept two apart.
  subroutine irregular(root)
    integer, intent(in) :: root
    integer :: counts(0:ranks - 1), displs(0:ranks - 1), mine(ranks), total, r
    integer, allocatable :: joined(:)
    total = 0
    do r = 0, ranks - 1
      counts(r) = r + 1
      displs(r) = total
      total = total + r + 3
    end do
    allocate (joined(0:total - 1))
    mine = rank
    joined = -1
    call MPI_Gatherv(mine, rank + 1, MPI_INTEGER, joined, counts, displs, MPI_INTEGER, root, comm, ierr)
    if (rank == root) call check_joined(joined, counts, displs, 'gatherv')
    joined = -1
    if (rank == root) then
      joined(displs(root):displs(root) + root) = root
      call MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, joined, counts, displs, MPI_INTEGER, root, comm, ierr)
      call check_joined(joined, counts, displs, 'gatherv in place')
    else
      call MPI_Gatherv(mine, rank + 1, MPI_INTEGER, joined, counts, displs, MPI_INTEGER, root, comm, ierr)
    end if
    calls(gathervs) = calls(gathervs) + 2

    do r = 0, ranks - 1
      joined(displs(r):displs(r) + r) = r
    end do
    mine = -1
    call MPI_Scatterv(joined, counts, displs, MPI_INTEGER, mine, rank + 1, MPI_INTEGER, root, comm, ierr)
    call expect(all(mine(1:rank + 1) == rank) .and. all(mine(rank + 2:) == -1), 'scatterv')
    mine = -1
    if (rank == root) then
      call MPI_Scatterv(joined, counts, displs, MPI_INTEGER, MPI_IN_PLACE, rank + 1, MPI_INTEGER, root, comm, ierr)
      call expect(all(mine == -1), 'scatterv in place')
    else
      call MPI_Scatterv(joined, counts, displs, MPI_INTEGER, mine, rank + 1, MPI_INTEGER, root, comm, ierr)
      call expect(all(mine(1:rank + 1) == rank), 'scatterv')
    end if
    calls(scattervs) = calls(scattervs) + 2

    mine = rank
    joined = -1
    call MPI_Allgatherv(mine, rank + 1, MPI_INTEGER, joined, counts, displs, MPI_INTEGER, comm, ierr)
    call check_joined(joined, counts, displs, 'allgatherv')
    joined = -1
    joined(displs(rank):displs(rank) + rank) = rank
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, joined, counts, displs, MPI_INTEGER, comm, ierr)
    call check_joined(joined, counts, displs, 'allgatherv in place')
    calls(allgathervs) = calls(allgathervs) + 2
  end subroutine

  subroutine check_joined(joined, counts, displs, what)
    integer, intent(in) :: joined(0:), counts(0:), displs(0:)
    character(*), intent(in) :: what
    integer :: r, next
    do r = 0, ranks - 1
      next = displs(r) + counts(r)
      call expect(all(joined(displs(r):next - 1) == r), what)
      call expect(all(joined(next:next + 1) == -1), what // ': a gap was touched')
    end do
  end subroutine

  subroutine report()
    character(12), parameter :: names(8) = [character(12) :: 'barrier', 'bcast', 'gather', 'gatherv', 'scatter', &
                                            'scatterv', 'allgather', 'allgatherv']
    character(400) :: line
    integer :: i, at
    write (line, '(A,I0,A)') 'RESULT {"rank": ', rank, ', "calls": {'
    do i = 1, 8
      at = len_trim(line) + 1
      write (line(at:), '(4A,I0)') merge('  ', ', ', i == 1), '"', trim(names(i)), '": ', calls(i)
    end do
    write (*, '(A)') trim(line) // '}}'
  end subroutine
end program
