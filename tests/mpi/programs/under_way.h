// SPDX-License-Identifier: BSD-3-Clause
// What the cases of under_way.c share: an Alltoall whose data may still be to come, and a check of
// every byte.
#pragma once
#include "robust.h"

static size_t each = 2 << 20;
static char *out, *in;
static int turn, early;
static volatile long wrong;

#define REQUIRE(condition)                                                             \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "rank %d, line %d: %s: %m\n", world_rank, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 2);                                                    \
    }                                                                                  \
  } while (0)

static char value(int from, int to, size_t i) { return (char)(from * 7 + to * 13 + (int)(i * 3) + turn); }

static size_t all(void) { return each * (size_t)world_size; }

static void write_out(char* from) {
  ++turn;
  for (int to = 0; to < world_size; ++to) {
    for (size_t i = 0; i < each; ++i) from[(size_t)to * each + i] = value(world_rank, to, i);
  }
}

static void exchange_on(MPI_Comm comm, char* to) {
  write_out(out);
  MPI_Alltoall(out, (int)each, MPI_BYTE, to, (int)each, MPI_BYTE, comm);
  early += is_early();
  memset(out, 0, all());
}
static void exchange(char* to) { exchange_on(MPI_COMM_WORLD, to); }

static int is_right(const char* data, int from, size_t i) {
  return data[(size_t)from * each + i] == value(from, world_rank, i);
}
static void check(const char* data) {
  long bad = 0;
  for (int from = 0; from < world_size; ++from) {
    for (size_t i = 0; i < each; ++i) bad += !is_right(data, from, i);
  }
  wrong += bad;
}
