/* SPDX-License-Identifier: BSD-3-Clause */
/* PageRank of a directed graph by power iteration: an ordinary MPI program, which knows nothing of Stretto.
 *
 *   pagerank [--matrix FILE.mtx | --vertices N --degree D --seed S] [--topics K] [--tolerance T] [--json FILE]
 *
 * Rank 0 makes or reads the graph and scatters its rows, so many to each rank that all hold about the same number of
 * edges; rows of a power-law graph are of very different length, so ranks get different numbers of rows. One iteration
 * multiplies the rank's rows with the whole vector, which an Allgatherv puts together from all ranks' pieces. With
 * --topics K the vector is found K times, each time for surfers who start at other vertices (personalised PageRank).
 *
 * The same number of ranks gives the same bits, whatever MPI does below: sums over ranks are taken in rank order. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sparse.h"

static const double kDamping = 0.85;

struct options {
  const char *matrix, *json;
  int vertices, degree, topics, max_iterations;
  uint64_t seed;
  double tolerance;
};

/* What a rank holds: rows first_row .. first_row + rows - 1. */
struct part {
  int vertices, rows, first_row;
  int *row_counts, *row_starts; /* of every rank */
  int* row_edges;               /* edges of each of my rows */
  int* source;                  /* their sources, row after row */
  int* out_degree;              /* of my vertices */
};

/* COLLECTIVES is the sum of all but COMPUTE. */
enum phase { DISTRIBUTE, EXCHANGE, NORM, COMPUTE, COLLECT, COLLECTIVES, PHASES };
static const char* const kPhaseNames[PHASES] = {"distribute", "exchange", "norm", "compute", "collect", "collectives"};
static double phase_seconds[PHASES];
static int rank, size;

static void stop(const char* text) {
  fprintf(stderr, "pagerank: %s\n", text);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void* allocate(size_t count, size_t bytes) {
  void* memory = calloc(count ? count : 1, bytes);
  if (!memory) stop("out of memory");
  return memory;
}

/* ---- options ---- */

static long whole(const char* name, const char* text, long least, long most) {
  char* end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (end == text || *end || errno || value < least || value > most) {
    if (rank == 0)
      fprintf(stderr, "pagerank: %s needs a whole number from %ld to %ld, not '%s'\n", name, least, most, text);
    MPI_Finalize();
    exit(2);
  }
  return value;
}

static void usage(const char* wrong) {
  if (rank == 0) {
    fprintf(stderr, "pagerank: unknown option or missing value: %s\n", wrong);
    fprintf(stderr,
            "usage: pagerank [--matrix FILE.mtx | --vertices N --degree D --seed S] [--topics K] "
            "[--tolerance T] [--iterations MAX] [--json FILE]\n");
  }
  MPI_Finalize();
  exit(2);
}

static struct options parse(int argc, char** argv) {
  struct options o = {
      .vertices = 50000, .degree = 8, .topics = 8, .max_iterations = 200, .seed = 1, .tolerance = 1e-10};
  for (int i = 1; i < argc; i += 2) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value) usage(name);
    if (!strcmp(name, "--matrix"))
      o.matrix = value;
    else if (!strcmp(name, "--json"))
      o.json = value;
    else if (!strcmp(name, "--vertices"))
      o.vertices = (int)whole(name, value, 1, INT_MAX - 1);
    else if (!strcmp(name, "--degree"))
      o.degree = (int)whole(name, value, 0, 100000);
    else if (!strcmp(name, "--topics"))
      o.topics = (int)whole(name, value, 1, 100000);
    else if (!strcmp(name, "--iterations"))
      o.max_iterations = (int)whole(name, value, 1, INT_MAX);
    else if (!strcmp(name, "--seed"))
      o.seed = (uint64_t)whole(name, value, 0, LONG_MAX);
    else if (!strcmp(name, "--tolerance"))
      o.tolerance = strtod(value, NULL);
    else
      usage(name);
  }
  return o;
}

/* ---- the graph, on rank 0, and its distribution ---- */

static int load(const struct options* o, struct incoming* matrix, char* error) {
  struct edges graph;
  int failed = o->matrix ? edges_read_matrix_market(&graph, o->matrix, error)
                         : edges_power_law(&graph, o->vertices, o->degree, o->seed, error);
  if (failed) return -1;
  failed = incoming_from_edges(matrix, &graph, error);
  edges_free(&graph);
  return failed;
}

/* Cuts the rows into one run per rank of about equal weight; a row weighs its edges and one for itself. */
static void balance(const struct incoming* matrix, int* row_starts) {
  int n = matrix->vertices, row = 0;
  int64_t whole_weight = matrix->start[n] + n;
  for (int r = 0; r < size; r++) {
    row_starts[r] = row;
    while (row < n && (matrix->start[row] + row) * (int64_t)size < whole_weight * (r + 1)) row++;
  }
}

static struct part distribute(const struct incoming* matrix, int vertices) {
  struct part p = {.vertices = vertices};
  p.row_starts = allocate((size_t)size, sizeof(int));
  p.row_counts = allocate((size_t)size, sizeof(int));
  if (rank == 0) balance(matrix, p.row_starts);
  MPI_Bcast(p.row_starts, size, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; r < size; r++) p.row_counts[r] = (r + 1 < size ? p.row_starts[r + 1] : vertices) - p.row_starts[r];
  p.rows = p.row_counts[rank];
  p.first_row = p.row_starts[rank];

  int *row_edges = NULL, *edge_counts = NULL, *edge_starts = NULL;
  if (rank == 0) {
    if (matrix->start[vertices] > INT_MAX) stop("more than 2^31 - 1 edges");
    row_edges = allocate((size_t)vertices, sizeof(int));
    edge_counts = allocate((size_t)size, sizeof(int));
    edge_starts = allocate((size_t)size, sizeof(int));
    for (int r = 0; r < vertices; r++) row_edges[r] = (int)(matrix->start[r + 1] - matrix->start[r]);
    for (int r = 0; r < size; r++) {
      edge_starts[r] = (int)matrix->start[p.row_starts[r]];
      edge_counts[r] = (int)matrix->start[p.row_starts[r] + p.row_counts[r]] - edge_starts[r];
    }
  }
  p.row_edges = allocate((size_t)p.rows, sizeof(int));
  p.out_degree = allocate((size_t)p.rows, sizeof(int));
  MPI_Scatterv(row_edges, p.row_counts, p.row_starts, MPI_INT, p.row_edges, p.rows, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Scatterv(rank == 0 ? matrix->out_degree : NULL, p.row_counts, p.row_starts, MPI_INT, p.out_degree, p.rows,
               MPI_INT, 0, MPI_COMM_WORLD);
  int edges = 0;
  for (int r = 0; r < p.rows; r++) edges += p.row_edges[r];
  p.source = allocate((size_t)edges, sizeof(int));
  MPI_Scatterv(rank == 0 ? matrix->source : NULL, edge_counts, edge_starts, MPI_INT, p.source, edges, MPI_INT, 0,
               MPI_COMM_WORLD);
  free(row_edges);
  free(edge_counts);
  free(edge_starts);
  return p;
}

/* ---- the iteration ---- */

/* Adds one number per rank in rank order: the same bits on every rank, run after run. */
static void sums_in_rank_order(const double mine[2], double sums[2], double* all) {
  MPI_Allgather(mine, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, MPI_COMM_WORLD);
  sums[0] = sums[1] = 0;
  for (int r = 0; r < size; r++) {
    sums[0] += all[2 * r];
    sums[1] += all[2 * r + 1];
  }
}

/* Topic 0 starts anywhere; topic t at the vertices that a hash picks, one of sixteen. */
static int starts_at(int vertex, int topic) {
  return topic == 0 || (((uint32_t)vertex * 2654435761u ^ (uint32_t)topic * 2246822519u) >> 28) == 0;
}

static int count_starts(int vertices, int topic) {
  int count = 0;
  for (int v = 0; v < vertices; v++) count += starts_at(v, topic);
  return count;
}

struct vectors {
  double* mine;   /* rank values of my vertices */
  double* share;  /* mine, divided by the out-degree: what each edge carries */
  double* shares; /* of all vertices */
  double* all;    /* scratch: two numbers per rank */
};

/* One step for my rows. Returns my part of the change. */
static double multiply(const struct part* p, struct vectors* v, int topic, double start_value, double dangling) {
  double change = 0;
  const int* source = p->source;
  for (int r = 0; r < p->rows; r++) {
    double sum = 0;
    for (int e = 0; e < p->row_edges[r]; e++) sum += v->shares[source[e]];
    source += p->row_edges[r];
    double teleport = starts_at(p->first_row + r, topic) ? start_value : 0;
    double value = kDamping * (sum + dangling * teleport) + (1 - kDamping) * teleport;
    change += fabs(value - v->mine[r]);
    v->mine[r] = value;
  }
  return change;
}

/* What every edge of my vertices carries; returns the value held by vertices without a way out. */
static double spread(const struct part* p, struct vectors* v) {
  double dangling = 0;
  for (int r = 0; r < p->rows; r++) {
    if (p->out_degree[r])
      v->share[r] = v->mine[r] / p->out_degree[r];
    else
      v->share[r] = 0, dangling += v->mine[r];
  }
  return dangling;
}

static int solve(const struct part* p, struct vectors* v, const struct options* o, int topic) {
  int starts = count_starts(p->vertices, topic), iteration = 0;
  double start_value = starts ? 1.0 / starts : 0, sums[2] = {0, 0}, change = 0;
  for (int r = 0; r < p->rows; r++) v->mine[r] = starts_at(p->first_row + r, topic) ? start_value : 0;
  do {
    double t0 = MPI_Wtime();
    double partial[2] = {change, spread(p, v)};
    double t1 = MPI_Wtime();
    sums_in_rank_order(partial, sums, v->all);
    double t2 = MPI_Wtime();
    if (iteration > 0 && sums[0] < o->tolerance) break;
    MPI_Allgatherv(v->share, p->rows, MPI_DOUBLE, v->shares, p->row_counts, p->row_starts, MPI_DOUBLE, MPI_COMM_WORLD);
    double t3 = MPI_Wtime();
    change = multiply(p, v, topic, start_value, sums[1]);
    double t4 = MPI_Wtime();
    phase_seconds[COMPUTE] += (t1 - t0) + (t4 - t3);
    phase_seconds[NORM] += t2 - t1;
    phase_seconds[EXCHANGE] += t3 - t2;
  } while (++iteration < o->max_iterations);
  return iteration;
}

/* ---- the result ---- */

static uint64_t checksum(uint64_t hash, const void* data, size_t bytes) {
  const unsigned char* byte = data;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
  return hash;
}

static void print_top(const double* values, int n) {
  int shown[5], count = 0;
  for (; count < 5 && count < n; count++) {
    int best = -1;
    for (int v = 0; v < n; v++) {
      int taken = 0;
      for (int k = 0; k < count; k++) taken |= shown[k] == v;
      if (!taken && (best < 0 || values[v] > values[best])) best = v;
    }
    shown[count] = best;
    printf("  %d. vertex %-9d %.9f\n", count + 1, best, values[best]);
  }
}

static void report(const struct options* o, const struct part* p, int64_t edges, int iterations, uint64_t hash,
                   double total, const double seconds[PHASES]) {
  printf("vertices %d, edges %lld, ranks %d, topics %d, iterations %d\n", p->vertices, (long long)edges, size,
         o->topics, iterations);
  printf("checksum %016llx\n", (unsigned long long)hash);
  printf("seconds %.6f", total);
  for (int i = 0; i < PHASES; i++) printf("%s %s %.6f", i ? "," : ":", kPhaseNames[i], seconds[i]);
  printf("\n");
  if (!o->json) return;
  FILE* file = fopen(o->json, "w");
  if (!file) stop("cannot write the --json file");
  fprintf(file,
          "{\"vertices\": %d, \"edges\": %lld, \"ranks\": %d, \"topics\": %d, \"iterations\": %d, "
          "\"checksum\": \"%016llx\", \"seconds\": {\"total\": %.9f",
          p->vertices, (long long)edges, size, o->topics, iterations, (unsigned long long)hash, total);
  for (int i = 0; i < PHASES; i++) fprintf(file, ", \"%s\": %.9f", kPhaseNames[i], seconds[i]);
  fprintf(file, "}}\n");
  fclose(file);
}

/* Solves all topics and gathers each vector on rank 0. */
static void run(const struct options* o, const struct part* p, int64_t edges, double begin) {
  struct vectors v = {allocate((size_t)p->rows, sizeof(double)), allocate((size_t)p->rows, sizeof(double)),
                      allocate((size_t)p->vertices, sizeof(double)), allocate((size_t)size * 2, sizeof(double))};
  double* result = rank == 0 ? allocate((size_t)p->vertices, sizeof(double)) : NULL;
  uint64_t hash = UINT64_C(14695981039346656037);
  int iterations = 0;
  for (int topic = 0; topic < o->topics; topic++) {
    iterations += solve(p, &v, o, topic);
    double t = MPI_Wtime();
    MPI_Gatherv(v.mine, p->rows, MPI_DOUBLE, result, p->row_counts, p->row_starts, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    phase_seconds[COLLECT] += MPI_Wtime() - t;
    if (rank == 0) hash = checksum(hash, result, (size_t)p->vertices * sizeof(double));
    if (rank == 0 && topic == 0) {
      printf("highest PageRank:\n");
      print_top(result, p->vertices);
    }
  }
  double total = MPI_Wtime() - begin, slowest, seconds[PHASES];
  for (int i = 0; i < COLLECTIVES; i++) phase_seconds[COLLECTIVES] += i == COMPUTE ? 0 : phase_seconds[i];
  MPI_Reduce(phase_seconds, seconds, PHASES, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&total, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) report(o, p, edges, iterations, hash, slowest, seconds);
  free(v.mine), free(v.share), free(v.shares), free(v.all), free(result);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct options o = parse(argc, argv);

  struct incoming matrix = {0};
  char error[SPARSE_ERROR_BYTES];
  int64_t shape[2] = {0, 0}; /* vertices, edges; no vertices: rank 0 could not load the graph */
  if (rank == 0) {
    if (load(&o, &matrix, error))
      fprintf(stderr, "pagerank: %s\n", error);
    else
      shape[0] = matrix.vertices, shape[1] = matrix.start[matrix.vertices];
  }
  MPI_Bcast(shape, 2, MPI_INT64_T, 0, MPI_COMM_WORLD);
  if (shape[0] == 0) {
    MPI_Finalize();
    return 2;
  }
  MPI_Barrier(MPI_COMM_WORLD);  // all ranks begin to measure together
  double begin = MPI_Wtime();
  struct part p = distribute(&matrix, (int)shape[0]);
  phase_seconds[DISTRIBUTE] = MPI_Wtime() - begin;
  run(&o, &p, shape[1], begin);
  incoming_free(&matrix);
  free(p.row_counts), free(p.row_starts), free(p.row_edges), free(p.source), free(p.out_degree);
  MPI_Finalize();
  return 0;
}
