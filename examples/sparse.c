/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "sparse.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(char* error) {
  snprintf(error, SPARSE_ERROR_BYTES, "out of memory");
  return -1;
}

static int edges_add(struct edges* graph, int from, int to) {
  if (graph->count == graph->capacity) {
    int64_t capacity = graph->capacity ? graph->capacity * 2 : 1024;
    int* bigger_from = realloc(graph->from, (size_t)capacity * sizeof(int));
    if (bigger_from) graph->from = bigger_from;
    int* bigger_to = realloc(graph->to, (size_t)capacity * sizeof(int));
    if (bigger_to) graph->to = bigger_to;
    if (!bigger_from || !bigger_to) return -1;
    graph->capacity = capacity;
  }
  graph->from[graph->count] = from;
  graph->to[graph->count] = to;
  graph->count++;
  return 0;
}

void edges_free(struct edges* graph) {
  free(graph->from);
  free(graph->to);
  memset(graph, 0, sizeof *graph);
}

void incoming_free(struct incoming* matrix) {
  free(matrix->start);
  free(matrix->source);
  free(matrix->out_degree);
  memset(matrix, 0, sizeof *matrix);
}

/* ---- generated ---- */

/* xorshift64*: small, and the same on every machine. */
static uint64_t next_random(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

static double uniform(uint64_t* state) { return (double)(next_random(state) >> 11) * 0x1p-53; }

/* Rank k of n with probability that falls as k^(-2/3): the cube of a uniform number needs no pow(). */
static int popular(uint64_t* state, int n) {
  double u = uniform(state);
  return (int)(u * u * u * n);
}

/* A permutation of 0..n-1, so that popular vertices do not all come first but are spread unevenly over the rows. */
static int* shuffled(int n, uint64_t* state) {
  int* order = malloc((size_t)n * sizeof(int));
  if (!order) return NULL;
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int j = (int)(next_random(state) % (uint64_t)(i + 1));
    int swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
  return order;
}

int edges_power_law(struct edges* graph, int vertices, int degree, uint64_t seed, char error[SPARSE_ERROR_BYTES]) {
  memset(graph, 0, sizeof *graph);
  if (vertices < 1 || degree < 0) {
    snprintf(error, SPARSE_ERROR_BYTES, "a graph needs at least one vertex and no negative degree");
    return -1;
  }
  graph->vertices = vertices;
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  int* name = shuffled(vertices, &state);
  if (!name) return out_of_memory(error);
  int failed = 0;
  for (int64_t e = 0; e < (int64_t)vertices * degree && !failed; e++) {
    /* Sources are skewed too: half of the edges leave from popular vertices, so some vertices have no way out. */
    int from = e & 1 ? popular(&state, vertices) : (int)(uniform(&state) * vertices);
    failed = edges_add(graph, name[from], name[popular(&state, vertices)]);
  }
  free(name);
  if (failed) {
    edges_free(graph);
    return out_of_memory(error);
  }
  return 0;
}

/* ---- Matrix Market ---- */

struct reader {
  FILE* file;
  const char* path;
  char* line;
  size_t capacity;
  int64_t number; /* of the line last read, from 1 */
  char* error;
};

static int reader_fail(struct reader* r, const char* what) {
  snprintf(r->error, SPARSE_ERROR_BYTES, "%.300s: line %lld: %s", r->path, (long long)r->number, what);
  return -1;
}

/* 1: a line, without its end; 0: end of file; -1: error. */
static int reader_line(struct reader* r) {
  errno = 0;
  ssize_t length = getline(&r->line, &r->capacity, r->file);
  if (length < 0 && errno) return reader_fail(r, strerror(errno));
  if (length < 0) return 0;
  r->number++;
  if (strlen(r->line) != (size_t)length) return reader_fail(r, "a NUL byte: this is not a text file");
  while (length > 0 && isspace((unsigned char)r->line[length - 1])) r->line[--length] = 0;
  return 1;
}

/* The next line that is neither a comment nor blank. */
static int reader_data_line(struct reader* r) {
  for (;;) {
    int got = reader_line(r);
    if (got <= 0) return got;
    const char* text = r->line + strspn(r->line, " \t");
    if (*text && *text != '%') return 1;
  }
}

/* Takes one whole number off the front of *text. */
static int take_number(char** text, long long* value) {
  char* end;
  errno = 0;
  *value = strtoll(*text, &end, 10);
  if (end == *text || errno || (*end && !isspace((unsigned char)*end))) return -1;
  *text = end;
  return 0;
}

static int take_value(char** text) {
  char* end;
  (void)strtod(*text, &end);
  if (end == *text || (*end && !isspace((unsigned char)*end))) return -1;
  *text = end;
  return 0;
}

static int at_end(const char* text) { return text[strspn(text, " \t")] == 0; }

static int is_one_of(const char* word, const char* const* list) {
  for (; *list; list++)
    if (!strcasecmp(word, *list)) return 1;
  return 0;
}

struct header {
  int has_values, both_directions;
};

static int read_header(struct reader* r, struct header* header) {
  static const char* const fields[] = {"real", "double", "integer", "pattern", NULL};
  static const char* const symmetries[] = {"general", "symmetric", "skew-symmetric", NULL};
  char word[5][32];
  int got = reader_line(r);
  if (got < 0) return -1;
  if (got == 0) {
    r->number = 1;
    return reader_fail(r, "the file is empty");
  }
  int words = sscanf(r->line, "%31s %31s %31s %31s %31s", word[0], word[1], word[2], word[3], word[4]);
  if (words < 1 || strcasecmp(word[0], "%%MatrixMarket"))
    return reader_fail(r, "not a Matrix Market file: it does not begin with %%MatrixMarket");
  if (words < 5) return reader_fail(r, "the header needs: %%MatrixMarket matrix coordinate FIELD SYMMETRY");
  if (strcasecmp(word[1], "matrix") || strcasecmp(word[2], "coordinate"))
    return reader_fail(r, "only 'matrix coordinate' (a sparse matrix) can be read");
  if (!is_one_of(word[3], fields)) return reader_fail(r, "the field must be real, double, integer or pattern");
  if (!is_one_of(word[4], symmetries))
    return reader_fail(r, "the symmetry must be general, symmetric or skew-symmetric");
  header->has_values = strcasecmp(word[3], "pattern") != 0;
  header->both_directions = strcasecmp(word[4], "general") != 0;
  return 0;
}

static int read_size(struct reader* r, struct edges* graph, long long* entries) {
  long long rows, columns;
  int got = reader_data_line(r);
  if (got < 0) return -1;
  if (got == 0) return reader_fail(r, "the file ends before the line with the matrix's size");
  char* text = r->line;
  if (take_number(&text, &rows) || take_number(&text, &columns) || take_number(&text, entries) || !at_end(text))
    return reader_fail(r, "expected three whole numbers: rows, columns, entries");
  if (rows != columns) return reader_fail(r, "the matrix is not square");
  if (rows < 1 || rows >= INT_MAX) return reader_fail(r, "the number of rows is not between 1 and 2^31 - 2");
  if (*entries < 0) return reader_fail(r, "the number of entries is negative");
  graph->vertices = (int)rows;
  return 0;
}

static int read_entry(struct reader* r, const struct header* header, struct edges* graph) {
  long long row, column;
  char* text = r->line;
  if (take_number(&text, &row) || take_number(&text, &column))
    return reader_fail(r, "expected a row and a column, both whole numbers");
  if (row < 1 || row > graph->vertices) return reader_fail(r, "the row is outside the matrix");
  if (column < 1 || column > graph->vertices) return reader_fail(r, "the column is outside the matrix");
  if (header->has_values && take_value(&text)) return reader_fail(r, "expected a value after row and column");
  if (!at_end(text)) return reader_fail(r, "something follows the entry");
  if (edges_add(graph, (int)row - 1, (int)column - 1)) return out_of_memory(r->error);
  if (header->both_directions && row != column && edges_add(graph, (int)column - 1, (int)row - 1))
    return out_of_memory(r->error);
  return 0;
}

/* What the size line promises is believed only as lines arrive: a wrong number costs no memory. */
static int read_entries(struct reader* r, const struct header* header, struct edges* graph, long long entries) {
  for (long long seen = 0;; seen++) {
    int got = reader_data_line(r);
    if (got < 0) return -1;
    if (got == 0 && seen == entries) return 0;
    if (got == 0) {
      char what[120];
      snprintf(what, sizeof what, "the file ends after %lld of %lld entries", seen, entries);
      return reader_fail(r, what);
    }
    if (seen == entries) return reader_fail(r, "more entries than the size line promises");
    if (read_entry(r, header, graph)) return -1;
  }
}

int edges_read_matrix_market(struct edges* graph, const char* path, char error[SPARSE_ERROR_BYTES]) {
  memset(graph, 0, sizeof *graph);
  struct reader r = {.file = fopen(path, "r"), .path = path, .error = error};
  if (!r.file) {
    snprintf(error, SPARSE_ERROR_BYTES, "%.300s: %s", path, strerror(errno));
    return -1;
  }
  struct header header;
  long long entries = 0;
  int failed = read_header(&r, &header) || read_size(&r, graph, &entries) || read_entries(&r, &header, graph, entries);
  free(r.line);
  fclose(r.file);
  if (failed) edges_free(graph);
  return failed ? -1 : 0;
}

/* ---- rows ---- */

int incoming_from_edges(struct incoming* matrix, const struct edges* graph, char error[SPARSE_ERROR_BYTES]) {
  size_t n = (size_t)graph->vertices;
  matrix->vertices = graph->vertices;
  matrix->start = calloc(n + 1, sizeof(int64_t));
  matrix->source = malloc((size_t)(graph->count ? graph->count : 1) * sizeof(int));
  matrix->out_degree = calloc(n, sizeof(int));
  int64_t* next = calloc(n + 1, sizeof(int64_t));
  if (!matrix->start || !matrix->source || !matrix->out_degree || !next) {
    free(next);
    incoming_free(matrix);
    return out_of_memory(error);
  }
  for (int64_t e = 0; e < graph->count; e++) {
    matrix->start[graph->to[e] + 1]++;
    matrix->out_degree[graph->from[e]]++;
  }
  for (size_t r = 0; r < n; r++) matrix->start[r + 1] += matrix->start[r];
  memcpy(next, matrix->start, (n + 1) * sizeof(int64_t));
  for (int64_t e = 0; e < graph->count; e++) matrix->source[next[graph->to[e]]++] = graph->from[e];
  free(next);
  return 0;
}
