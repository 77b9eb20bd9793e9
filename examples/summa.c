/* SPDX-License-Identifier: BSD-3-Clause */
/* A product of two square matrices by SUMMA (van de Geijn and Watts, 1997): an ordinary MPI program,
 * which knows nothing of Stretto.
 *
 *   summa [--size N] [--panel K] [--repeat R] [--seed S]
 *
 * Ranks form a grid. Each holds one block of A, of B and of C = A B. In each step the owners of K
 * columns of A broadcast them along the rows of the grid, the owners of the same K rows of B along
 * its columns, and each rank adds the product of the two panels to its block of C.
 *
 * The elements are small whole numbers, so all sums are exact: any number of ranks gives the same
 * bits. The product is checked by Freivalds' method: C x = A (B x) for a vector x of signs. */
#include <string.h>

#include "support.h"

static const char kUsage[] = "[--size N] [--panel K] [--repeat R] [--seed S]";

/* A panel goes as strips of so many columns of A, or rows of B: a strip is used up before the next. */
enum { STRIP = 32 };

struct options {
  int n, panel, repeat;
  uint64_t seed;
};

/* The elements of an axis that one row or column of the grid holds. */
struct part {
  int begin, count;
};

struct grid {
  int rows, columns, row, column;
  MPI_Comm along_row, along_column; /* ranks in them are columns and rows of the grid */
};

static double bcast_seconds;

/* ---- who holds what ---- */

static struct grid make_grid(void) {
  int dims[2] = {0, 0};
  MPI_Dims_create(size, 2, dims);
  struct grid g = {.rows = dims[1], .columns = dims[0]};
  g.row = rank / g.columns, g.column = rank % g.columns;
  MPI_Comm_split(MPI_COMM_WORLD, g.row, g.column, &g.along_row);
  MPI_Comm_split(MPI_COMM_WORLD, g.column, g.row, &g.along_column);
  return g;
}

static struct part part_of(int n, int parts, int which) {
  int begin = (int)((long)n * which / parts), end = (int)((long)n * (which + 1) / parts);
  return (struct part){begin, end - begin};
}

static int owner_of(int n, int parts, int element) {
  int which = 0;
  while (element >= part_of(n, parts, which).begin + part_of(n, parts, which).count) which++;
  return which;
}

/* A whole number from -8 to 7. */
static double element(uint64_t seed, int matrix, int i, int j) {
  return (double)(mix(mix(seed * 2 + (uint64_t)matrix) ^ ((uint64_t)i << 32 | (uint32_t)j)) >> 60) - 8;
}

static void fill(double* block, uint64_t seed, int matrix, struct part rows, struct part columns) {
  for (int i = 0; i < rows.count; i++)
    for (int j = 0; j < columns.count; j++)
      block[(size_t)i * columns.count + j] = element(seed, matrix, rows.begin + i, columns.begin + j);
}

/* ---- the product ---- */

static int least(int a, int b) { return a < b ? a : b; }

static void broadcast(double* panel, size_t count, int root, MPI_Comm comm) {
  double begin = MPI_Wtime();
  MPI_Bcast(panel, (int)count, MPI_DOUBLE, root, comm);
  bcast_seconds += MPI_Wtime() - begin;
}

/* Columns `first` to `first + width - 1` of a block of A, strip after strip, each of them row after row. */
static void pack(double* panel, const double* block, struct part rows, struct part columns, int first, int width) {
  for (int k = 0; k < width; k += STRIP)
    for (int i = 0; i < rows.count; i++) {
      const double* from = block + (size_t)i * columns.count + (first - columns.begin) + k;
      for (int strip = least(STRIP, width - k), each = 0; each < strip; each++) *panel++ = from[each];
    }
}

/* c += a b, where a has m rows and b has `strip` rows and n columns. */
static void multiply_strip(double* restrict c, const double* a, const double* b, int m, int n, int strip) {
  for (int i = 0; i < m; i++, c += n, a += strip) {
    int k = 0;
    for (; k + 4 <= strip; k += 4) {
      const double *b0 = b + (size_t)k * n, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n;
      const double a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
      for (int j = 0; j < n; j++) c[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
    }
    for (; k < strip; k++)
      for (int j = 0; j < n; j++) c[j] += a[k] * b[(size_t)k * n + j];
  }
}

struct blocks {
  struct part rows, columns;             /* of C */
  struct part a_columns, b_rows;         /* A has the rows of C, B its columns */
  double *a, *b, *c, *a_panel, *b_panel; /* blocks, and what is broadcast */
};

static struct blocks make_blocks(const struct grid* g, const struct options* o) {
  struct blocks s = {.rows = part_of(o->n, g->rows, g->row), .columns = part_of(o->n, g->columns, g->column)};
  s.a_columns = s.columns, s.b_rows = s.rows;
  const size_t count = (size_t)s.rows.count * s.columns.count;
  s.a = allocate(count, sizeof *s.a), s.b = allocate(count, sizeof *s.b), s.c = allocate(count, sizeof *s.c);
  s.a_panel = allocate((size_t)s.rows.count * o->panel, sizeof *s.a_panel);
  s.b_panel = allocate((size_t)s.columns.count * o->panel, sizeof *s.b_panel);
  fill(s.a, o->seed, 0, s.rows, s.a_columns);
  fill(s.b, o->seed, 1, s.b_rows, s.columns);
  return s;
}

static void free_blocks(struct blocks* s) { free(s->a), free(s->b), free(s->c), free(s->a_panel), free(s->b_panel); }

static void multiply(const struct grid* g, const struct options* o, struct blocks* s) {
  memset(s->c, 0, (size_t)s->rows.count * s->columns.count * sizeof *s->c);
  for (int first = 0, width; first < o->n; first += width) {
    const int column = owner_of(o->n, g->columns, first), row = owner_of(o->n, g->rows, first);
    const struct part of_a = part_of(o->n, g->columns, column), of_b = part_of(o->n, g->rows, row);
    width = least(o->panel, least(of_a.begin + of_a.count, of_b.begin + of_b.count) - first);
    double* b_panel = s->b_panel;
    if (g->column == column) pack(s->a_panel, s->a, s->rows, s->a_columns, first, width);
    if (g->row == row) b_panel = s->b + (size_t)(first - s->b_rows.begin) * s->columns.count;
    broadcast(s->a_panel, (size_t)s->rows.count * width, column, g->along_row);
    broadcast(b_panel, (size_t)s->columns.count * width, row, g->along_column);
    for (int k = 0; k < width; k += STRIP)
      multiply_strip(s->c, s->a_panel + (size_t)k * s->rows.count, b_panel + (size_t)k * s->columns.count,
                     s->rows.count, s->columns.count, least(STRIP, width - k));
  }
}

/* ---- is it right? ---- */

/* Of this rank's rows, summed along a row of the grid: block times x, of which this rank's columns count. */
static void times(const double* block, struct part rows, struct part columns, const double* x, double* y,
                  MPI_Comm along_row) {
  for (int i = 0; i < rows.count; i++) {
    y[i] = 0;
    for (int j = 0; j < columns.count; j++) y[i] += block[(size_t)i * columns.count + j] * x[columns.begin + j];
  }
  MPI_Allreduce(MPI_IN_PLACE, y, rows.count, MPI_DOUBLE, MPI_SUM, along_row);
}

static void check(const struct grid* g, const struct options* o, const struct blocks* s) {
  double* x = allocate((size_t)o->n, sizeof *x);
  double* bx = allocate((size_t)o->n, sizeof *bx);
  double* abx = allocate((size_t)s->rows.count, sizeof *abx);
  double* cx = allocate((size_t)s->rows.count, sizeof *cx);
  for (int i = 0; i < o->n; i++) x[i] = mix(o->seed + (uint64_t)i) & 1 ? 1 : -1;
  times(s->b, s->b_rows, s->columns, x, bx + s->b_rows.begin, g->along_row);
  MPI_Allreduce(MPI_IN_PLACE, bx, o->n, MPI_DOUBLE, MPI_SUM, g->along_column);
  times(s->a, s->rows, s->a_columns, bx, abx, g->along_row);
  times(s->c, s->rows, s->columns, x, cx, g->along_row);
  end_if_wrong(memcmp(abx, cx, (size_t)s->rows.count * sizeof *cx) != 0, "C x is not A (B x)");
  free(x), free(bx), free(abx), free(cx);
}

static uint64_t checksum(const struct blocks* s, int n) {
  uint64_t sum = 0;
  for (int i = 0; i < s->rows.count; i++)
    for (int j = 0; j < s->columns.count; j++) {
      int64_t value = (int64_t)s->c[(size_t)i * s->columns.count + j];
      uint64_t place = (uint64_t)(s->rows.begin + i) * (uint64_t)n + (uint64_t)(s->columns.begin + j);
      sum += mix(mix((uint64_t)value) ^ place);
    }
  return sum_over_ranks(sum);
}

/* ---- the run ---- */

static struct options parse(int argc, char** argv) {
  long n = 300, panel = 64, repeat = 2, seed = 1;
  const struct whole_option known[] = {{"--size", 1, 30000, &n},
                                       {"--panel", 1, 30000, &panel},
                                       {"--repeat", 1, 1000000, &repeat},
                                       {"--seed", 0, 1000000000, &seed}};
  parse_whole_options(known, sizeof known / sizeof *known, argc, argv, kUsage);
  return (struct options){(int)n, (int)panel, (int)repeat, (uint64_t)seed};
}

int main(int argc, char** argv) {
  program_name = "summa";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const struct options o = parse(argc, argv);
  struct grid g = make_grid();
  struct blocks s = make_blocks(&g, &o);
  double seconds = 0;
  for (int i = 0; i < o.repeat; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    multiply(&g, &o, &s);
    seconds += MPI_Wtime() - begin;
    check(&g, &o, &s);
  }
  uint64_t sum = checksum(&s, o.n);
  double mine[2] = {seconds / o.repeat, bcast_seconds / o.repeat}, slowest[2];
  MPI_Reduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("size %d, panel %d, ranks %d, grid %dx%d, products %d\n", o.n, o.panel, size, g.rows, g.columns, o.repeat);
    printf("checksum %016llx\n", (unsigned long long)sum);
    printf("seconds per product %.6f, of which in Bcast %.6f\n", slowest[0], slowest[1]);
  }
  free_blocks(&s);
  MPI_Comm_free(&g.along_row), MPI_Comm_free(&g.along_column);
  MPI_Finalize();
  return 0;
}
