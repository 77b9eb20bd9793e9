! SPDX-License-Identifier: BSD-3-Clause
! Ranks of three that do not meet: source_lines hang | mismatch.
module solver
#if BINDING == 3
  use mpi_f08
#else
  use mpi
#endif
  implicit none
contains
  subroutine step(rank, what)
    integer, intent(in) :: rank
    character(len=*), intent(in) :: what
    integer :: value, total, code
    value = 1
    if (what == "hang" .and. rank == 2) call sleep(3)
    if (what == "mismatch" .and. rank == 1) then
      call MPI_Bcast(value, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, code)  ! the root's call
    else
      call MPI_Allreduce(value, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)  ! the others' call
    end if
  end subroutine step
end module solver

program lines
  use solver
  implicit none
  integer :: rank, code
  character(len=20) :: what
  call get_command_argument(1, what)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Barrier(MPI_COMM_WORLD, code)
  call step(rank, trim(what))
  call MPI_Finalize(code)
end program lines
