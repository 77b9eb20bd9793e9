// SPDX-License-Identifier: BSD-3-Clause
// Collectives of each kind that an option may demand to serve in a certain way: demands [window].
// With `window`, a window of MPI lives meanwhile.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win window = MPI_WIN_NULL;
  char* memory;
  if (argc > 1) MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  const int block = 1 << 20;
  char* const send = calloc(size, block);
  char* const receive = calloc(size, block);
  int wrong = 0;
  for (int i = 1; i <= 6; i++) {
    send[0] = (char)i;
    MPI_Alltoall(send, block, MPI_BYTE, receive, block, MPI_BYTE, MPI_COMM_WORLD);
    if (rank == 0) wrong += receive[0] != i;
    int number = rank == 0 ? i : 0, sum = 0;
    MPI_Request request;
    MPI_Ibcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != i * size;
  }
  if (window != MPI_WIN_NULL) MPI_Win_free(&window);
  free(send);
  free(receive);
  printf("RESULT {\"rank\": %d, \"wrong\": %d}\n", rank, wrong);
  MPI_Finalize();
  return 0;
}
