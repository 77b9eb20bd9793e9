// SPDX-License-Identifier: BSD-3-Clause
// endless FILE [bcast|allreduce|barrier]: calls of 64 KiB without end, from and to all ranks in
// turn. FILE appears when all ranks are in these calls.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static double in[8192], out[8192];

int main(int argc, char** argv) {
  int rank, size;
  const char* const op = argc > 2 ? argv[2] : "allreduce";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0;; ++round) {
    if (strcmp(op, "allreduce") == 0) MPI_Allreduce(in, out, 8192, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(op, "bcast") == 0) MPI_Bcast(in, 8192, MPI_DOUBLE, round % size, MPI_COMM_WORLD);
    if (strcmp(op, "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
    if (round == 10 * size && rank == 0) fclose(fopen(argv[1], "w"));
  }
}
