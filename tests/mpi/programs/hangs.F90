! SPDX-License-Identifier: BSD-3-Clause
! Three ranks of which one reads what nobody writes: hangs PIPE.
module input
contains
  subroutine read_it(name)
    character(len=*), intent(in) :: name
    character(len=80) :: line
    integer :: unit
    open(newunit=unit, file=name, action='readwrite', access='stream', form='formatted')
    read(unit, '(a)') line  ! hangs: read
    print *, line
  end subroutine
end module

program hangs
  use input
  implicit none
  include 'mpif.h'
  integer :: rank, code
  character(len=200) :: name
  double precision :: value
  call get_command_argument(1, name)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 1) call read_it(trim(name))  ! called: read
  value = rank
  if (rank == 0) then
    call MPI_Recv(value, 1, MPI_DOUBLE_PRECISION, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)  ! hangs: frecv
  end if
  call MPI_Barrier(MPI_COMM_WORLD, code)
  call MPI_Finalize(code)
end program
