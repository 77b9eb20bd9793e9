// SPDX-License-Identifier: BSD-3-Clause
// sendrecv FROM TO BYTES TIMES: messages, each acknowledged by an empty one. Prints the shortest
// time of both as the sender sees it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, from, to;

static double message(char* buffer, int bytes) {
  const double begin = MPI_Wtime();
  if (rank == from) {
    MPI_Send(buffer, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == to) {
    MPI_Recv(buffer, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, from, 1, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  from = atoi(argv[1]);
  to = atoi(argv[2]);
  const int bytes = atoi(argv[3]), times = atoi(argv[4]);
  char* buffer = malloc(bytes);
  memset(buffer, rank, bytes);
  message(buffer, 1);  // makes the connection
  double shortest = 1e9;
  for (int i = 0; i < times; ++i) {
    const double seconds = message(buffer, bytes);
    if (seconds < shortest) shortest = seconds;
  }
  if (rank == from) printf("RESULT {\"seconds\": %.6f}\n", shortest);
  free(buffer);
  return MPI_Finalize();
}
