/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads each Matrix Market file named and prints what came of it: no MPI, so that it may run under sanitizers and
 * often. */
#include <stdio.h>

#include "sparse.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    struct edges graph;
    struct incoming matrix = {0};
    char error[SPARSE_ERROR_BYTES];
    if (edges_read_matrix_market(&graph, argv[i], error) || incoming_from_edges(&matrix, &graph, error)) {
      printf("error %s\n", error);
      continue;
    }
    unsigned long long sum = 0;
    for (int v = 0; v < matrix.vertices; v++)
      for (long long e = matrix.start[v]; e < matrix.start[v + 1]; e++)
        sum = sum * 31 + (unsigned long long)matrix.source[e] * 7 + (unsigned long long)v;
    printf("ok %d %lld %llu\n", graph.vertices, (long long)graph.count, sum);
    edges_free(&graph);
    incoming_free(&matrix);
  }
  return 0;
}
