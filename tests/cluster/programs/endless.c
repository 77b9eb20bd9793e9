// SPDX-License-Identifier: BSD-3-Clause
// Allreduces of 64 KiB without end; the file named by the argument appears when all ranks are at it.
#include <mpi.h>
#include <stdio.h>

static double in[8192], out[8192];

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0;; ++round) {
    MPI_Allreduce(in, out, 8192, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (round == 10 && rank == 0) fclose(fopen(argv[1], "w"));
  }
}
