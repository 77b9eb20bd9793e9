/* SPDX-License-Identifier: BSD-3-Clause */
/* Conjugate gradients for Poisson's equation on a square: cg [GRID]
 *
 * Each rank has some rows of the grid. An iteration exchanges border rows with both neighbours, and
 * sums two dot products by Allreduce. The right side is made from a known solution, so that the
 * program can check what it finds. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks, n, rows, first; /* rows of the grid: all, mine, and where mine begin */

/* A vector has the rows before and behind ours, and a zero on each side of a row. */
static double* at(double* v, int row, int column) { return v + (size_t)(row + 1) * (n + 2) + column + 1; }

static double* vector(void) { return calloc((size_t)(rows + 2) * (n + 2), sizeof(double)); }

static double dot(double* a, double* b) {
  double sum = 0;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < n; j++) sum += *at(a, i, j) * *at(b, i, j);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

/* a = a * s + b * t */
static void combine(double* a, double s, double* b, double t) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < n; j++) *at(a, i, j) = s * *at(a, i, j) + t * *at(b, i, j);
}

/* out = A v: four times a point, less its four neighbours */
static void apply(double* out, double* v) {
  int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(at(v, 0, 0), n, MPI_DOUBLE, above, 0, at(v, rows, 0), n, MPI_DOUBLE, below, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(at(v, rows - 1, 0), n, MPI_DOUBLE, below, 1, at(v, -1, 0), n, MPI_DOUBLE, above, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < n; j++)
      *at(out, i, j) = 4 * *at(v, i, j) - *at(v, i - 1, j) - *at(v, i + 1, j) - *at(v, i, j - 1) - *at(v, i, j + 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  n = argc > 1 ? atoi(argv[1]) : 128;
  if (n < ranks) {
    if (rank == 0) fprintf(stderr, "cg: GRID is a number of rows, at least one for each rank\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  first = (int)((long)n * rank / ranks);
  rows = (int)((long)n * (rank + 1) / ranks) - first;

  double *known = vector(), *x = vector(), *residual = vector(), *direction = vector(), *image = vector();
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < n; j++) *at(known, i, j) = sin(0.1 * (first + i)) + cos(0.3 * j);
  apply(residual, known); /* the right side, which is the residual of x = 0 */

  double begin = MPI_Wtime();
  combine(direction, 0, residual, 1);
  double squared = dot(residual, residual), enough = 1e-20 * squared;
  for (int k = 0; k < 10 * n && squared > enough; k++) {
    apply(image, direction);
    double step = squared / dot(direction, image), before = squared;
    combine(x, 1, direction, step);
    combine(residual, 1, image, -step);
    squared = dot(residual, residual);
    combine(direction, squared / before, residual, 1);
  }
  double seconds = MPI_Wtime() - begin;

  combine(x, 1, known, -1);
  int right = sqrt(dot(x, x)) < 1e-6 * sqrt(dot(known, known));
  if (rank == 0) printf("cg: %d x %d points, %d ranks: %s, %.3f s\n", n, n, ranks, right ? "right" : "wrong", seconds);
  free(known), free(x), free(residual), free(direction), free(image);
  MPI_Finalize();
  return !right;
}
