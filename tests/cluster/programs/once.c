// SPDX-License-Identifier: BSD-3-Clause
// once bcast|reduce|allreduce BYTES ROOT [CALLS]: one call of that many bytes of doubles, checked.
// Calls of one element come first, one or CALLS of them, to make the connections.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, root;

static double call(const char* op, int count, double* in, double* out) {
  for (int i = 0; i < count; i++) in[i] = rank + i % 1000;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if (strcmp(op, "bcast") == 0) MPI_Bcast(in, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
  if (strcmp(op, "reduce") == 0) MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  if (strcmp(op, "allreduce") == 0) MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - begin;
  const int sums = strcmp(op, "bcast") != 0, has = sums ? strcmp(op, "allreduce") == 0 || rank == root : 1;
  for (int i = 0; i < count && has; i++) {
    const double wanted = sums ? size * (i % 1000) + size * (size - 1) / 2.0 : root + i % 1000;
    if ((sums ? out : in)[i] != wanted) {
      fprintf(stderr, "%s: rank %d, element %d is wrong\n", op, rank, i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  return seconds;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = atoi(argv[2]) / (int)sizeof(double);
  root = atoi(argv[3]);
  double* in = malloc(count * sizeof(double));
  double* out = malloc(count * sizeof(double));
  for (int i = 0; i < (argc > 4 ? atoi(argv[4]) : 1); i++) call(argv[1], 1, in, out);
  const double seconds = call(argv[1], count, in, out);
  double slowest;
  MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("RESULT {\"seconds\": %.6f}\n", slowest);
  free(in);
  free(out);
  return MPI_Finalize();
}
