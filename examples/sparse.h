/* SPDX-License-Identifier: BSD-3-Clause */
/* Directed graphs and their sparse matrices: generated with a power-law degree distribution, or read from a Matrix
 * Market file. No MPI in here. Functions return 0, or -1 with a sentence in `error`. */
#ifndef STRETTO_EXAMPLES_SPARSE_H
#define STRETTO_EXAMPLES_SPARSE_H
#include <stdint.h>

enum { SPARSE_ERROR_BYTES = 512 };

/* Edge e leads from vertex from[e] to vertex to[e]. */
struct edges {
  int vertices;
  int64_t count, capacity;
  int *from, *to;
};

/* Row r holds the sources of the edges that lead to vertex r, at source[start[r]] up to source[start[r + 1]]. */
struct incoming {
  int vertices;
  int64_t* start;
  int* source;
  int* out_degree; /* of every vertex */
};

/* `vertices` vertices, `degree` outgoing edges each on average; few vertices attract most edges. The same arguments
 * give the same graph everywhere. */
int edges_power_law(struct edges* graph, int vertices, int degree, uint64_t seed, char error[SPARSE_ERROR_BYTES]);

/* A square coordinate matrix of any real type (values are read and ignored): entry (i, j) is an edge from i to j;
 * symmetric files mean both directions. Errors name the line. */
int edges_read_matrix_market(struct edges* graph, const char* path, char error[SPARSE_ERROR_BYTES]);

int incoming_from_edges(struct incoming* matrix, const struct edges* graph, char error[SPARSE_ERROR_BYTES]);

void edges_free(struct edges* graph);
void incoming_free(struct incoming* matrix);

#endif
