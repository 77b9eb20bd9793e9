// SPDX-License-Identifier: BSD-3-Clause
// sendrecv FROM TO BYTES: one message, acknowledged by an empty one; the time of both as the sender sees it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int from = atoi(argv[1]), to = atoi(argv[2]), bytes = atoi(argv[3]);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* buffer = malloc(bytes);
  memset(buffer, rank, bytes);
  // Connections are made by a first message.
  for (int length = 1; length <= bytes; length += bytes - 1) {
    const double begin = MPI_Wtime();
    if (rank == from) {
      MPI_Send(buffer, length, MPI_BYTE, to, 0, MPI_COMM_WORLD);
      MPI_Recv(NULL, 0, MPI_BYTE, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (length == bytes) printf("RESULT {\"seconds\": %.6f}\n", MPI_Wtime() - begin);
    } else if (rank == to) {
      MPI_Recv(buffer, length, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(NULL, 0, MPI_BYTE, from, 1, MPI_COMM_WORLD);
    }
  }
  free(buffer);
  return MPI_Finalize();
}
