/* SPDX-License-Identifier: BSD-3-Clause */
/* other_calls FILE: calls that are no collectives. Rank 0 sends 50 ms late, and all ranks go round in one window, one
 * file and one new communicator. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, value = 7, got = 0, *memory;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 4; ++i) {
    if (rank == 0) {
      usleep(50000);
      for (int to = 1; to < size; ++to) MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
    } else {
      MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  MPI_Win window;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_fence(0, window);
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, rank * (MPI_Offset)sizeof value, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_free(&copy);
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
