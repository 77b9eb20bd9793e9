/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeated products of a triangular matrix with a vector: triangle [blocks|turns [ROWS [STEPS]]]
 *
 * Row i has i + 1 numbers, which are computed when they are needed. Ranks get a block of rows each, so the last rank
 * has most to do; or they take rows in turn, and all have as much. After each step Allreduce gives the whole vector to
 * all ranks. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double product_of_row(const double* x, int row) {
  double sum = 0;
  for (int column = 0; column <= row; column++) sum += x[column] / (1 + row - column);
  return sum;
}

/* The product of my rows, 0 elsewhere. */
static void multiply(const double* x, double* y, int first, int last, int stride, int rows) {
  memset(y, 0, (size_t)rows * sizeof *y);
  for (int row = first; row < last; row += stride) y[row] = product_of_row(x, row);
}

static void normalise(double* y, int rows) {
  double largest = 0;
  for (int i = 0; i < rows; i++) largest = fmax(largest, fabs(y[i]));
  for (int i = 0; i < rows; i++) y[i] /= largest;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* rows_by = argc > 1 ? argv[1] : "blocks";
  const int rows = argc > 2 ? atoi(argv[2]) : 2000, steps = argc > 3 ? atoi(argv[3]) : 300;
  const int by_turns = !strcmp(rows_by, "turns");
  if ((!by_turns && strcmp(rows_by, "blocks")) || rows < 1 || steps < 1) {
    if (rank == 0) fprintf(stderr, "usage: triangle [blocks|turns [ROWS [STEPS]]]\n");
    MPI_Finalize();
    return 2;
  }
  const int first = by_turns ? rank : (int)((long)rows * rank / ranks);
  const int last = by_turns ? rows : (int)((long)rows * (rank + 1) / ranks);
  double *x = malloc((size_t)rows * sizeof *x), *y = malloc((size_t)rows * sizeof *y);
  for (int i = 0; i < rows; i++) x[i] = 1;

  double begin = MPI_Wtime();
  for (int step = 0; step < steps; step++) {
    multiply(x, y, first, last, by_turns ? ranks : 1, rows);
    MPI_Allreduce(MPI_IN_PLACE, y, rows, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    normalise(y, rows);
    double* const product = y;
    y = x, x = product;
  }
  double seconds = MPI_Wtime() - begin;

  int right = 1; /* y is the vector before the last step: all of its product again, on each rank */
  double* again = malloc((size_t)rows * sizeof *again);
  multiply(y, again, 0, rows, 1, rows);
  normalise(again, rows);
  for (int i = 0; i < rows; i++) right = right && fabs(again[i] - x[i]) < 1e-9;
  if (rank == 0)
    printf("triangle: %d rows by %s, %d steps, %d ranks: %s, %.3f s\n", rows, rows_by, steps, ranks,
           right ? "right" : "wrong", seconds);
  free(x), free(y), free(again);
  MPI_Finalize();
  return !right;
}
