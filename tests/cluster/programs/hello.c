// SPDX-License-Identifier: BSD-3-Clause
// Every rank says where it is. The sum shows that the ranks can reach each other.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  char host[64] = "";
  int rank, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  gethostname(host, sizeof host - 1);
  printf("RESULT {\"rank\": %d, \"host\": \"%s\", \"sum\": %d}\n", rank, host, sum);
  return MPI_Finalize();
}
