/* SPDX-License-Identifier: BSD-3-Clause */
/* ./app of the pages: takes any arguments, and sums the ranks' numbers 100 times. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, size, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(sum == size * (size - 1) / 2 ? "right" : "wrong");
  MPI_Finalize();
  return sum != size * (size - 1) / 2;
}
