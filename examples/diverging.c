/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with a mistake that many programs have had. `stretto demo` shows how it is found.
 *
 * Each rank ends its loop when its own error is small. Ranks should add their errors first, because
 * they get there at different times: the rank that is done goes on to Gather, and the others wait
 * for it in Allreduce. Most MPIs then hang. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double relax(double* value, double target) {
  double correction = 0.5 * (target - *value);
  *value += correction;
  return correction > 0 ? correction : -correction;
}

static double solve(int rank) {
  double value = 0, error = 1, total;
  while (error > 1e-6) { /* the mistake: this should be `total` */
    error = relax(&value, 1 + 1000.0 * rank);
    MPI_Allreduce(&error, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  return value;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double value = solve(rank), *values = malloc((size_t)ranks * sizeof *values);
  MPI_Gather(&value, 1, MPI_DOUBLE, values, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("diverging: %d values\n", ranks);
  free(values);
  MPI_Finalize();
  return 0;
}
