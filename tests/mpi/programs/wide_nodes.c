// SPDX-License-Identifier: BSD-3-Clause
// A few collectives of many ranks on a few nodes, each with its path, and how long the start took.
//   wide_nodes [CALLS]   so many calls of each kind; the root changes
#include "robust.h"

static char* received;
static int* numbers;

#define RIGHT(condition, what)                                                 \
  if (!(condition)) {                                                          \
    fprintf(stderr, "rank %d, call %d: wrong %s\n", world_rank, call, (what)); \
    MPI_Abort(MPI_COMM_WORLD, 2);                                              \
  }

static void bcast(int call, int root, int bytes) {
  memset(received, world_rank == root ? call + 1 : 0, (size_t)bytes);
  MPI_Bcast(received, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
  for (int i = 0; i < bytes; ++i) RIGHT(received[i] == (char)(call + 1), "Bcast");
}

static void reduce(int call, int root, int count) {
  int* const sums = (int*)received;
  for (int i = 0; i < count; ++i) numbers[i] = world_rank + call + i;
  MPI_Reduce(numbers, sums, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  const int ranks = world_size * (world_size - 1) / 2;
  for (int i = 0; i < count && world_rank == root; ++i) RIGHT(sums[i] == ranks + world_size * (call + i), "Reduce");
  MPI_Allreduce(numbers, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) RIGHT(sums[i] == ranks + world_size * (call + i), "Allreduce");
}

enum { kPart = 16 };  // ints

static int part(int call, int from, int to, int i) { return 1000 * call + 100 * from + 10 * to + i; }

// Whether the part from each rank to `to` is in its place.
static void expect_parts(int call, const int* all, int to, const char* what) {
  for (int r = 0; r < world_size; ++r) {
    for (int i = 0; i < kPart; ++i) RIGHT(all[r * kPart + i] == part(call, r, to, i), what);
  }
}

static void parts(int call, int root) {
  int mine[kPart], got[kPart], *const all = (int*)received;
  for (int i = 0; i < kPart; ++i) mine[i] = part(call, world_rank, 0, i);
  MPI_Gather(mine, kPart, MPI_INT, all, kPart, MPI_INT, root, MPI_COMM_WORLD);
  if (world_rank == root) expect_parts(call, all, 0, "Gather");
  for (int i = 0; i < kPart * world_size; ++i) numbers[i] = part(call, root, i / kPart, i % kPart);
  MPI_Scatter(numbers, kPart, MPI_INT, got, kPart, MPI_INT, root, MPI_COMM_WORLD);
  for (int i = 0; i < kPart; ++i) RIGHT(got[i] == part(call, root, world_rank, i), "Scatter");
  MPI_Allgather(mine, kPart, MPI_INT, all, kPart, MPI_INT, MPI_COMM_WORLD);
  expect_parts(call, all, 0, "Allgather");
  for (int i = 0; i < kPart * world_size; ++i) numbers[i] = part(call, world_rank, i / kPart, i % kPart);
  MPI_Alltoall(numbers, kPart / 4, MPI_INT, all, kPart / 4, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; ++r)
    RIGHT(all[r * kPart / 4] == part(call, r, world_rank / 4, world_rank % 4 * kPart / 4), "Alltoall");
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 1;
  const double begin = now_s();
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const double begun = now_s() - begin;
  received = calloc(1 << 16, sizeof *numbers);
  numbers = calloc(1 << 16, sizeof *numbers);
  const double first = now_s();
  MPI_Barrier(MPI_COMM_WORLD);
  const double barrier = now_s() - first;
  for (int call = 0; call < calls; ++call) {
    const int root = 40 * call % world_size;
    bcast(call, root, call % 2 ? 20000 : 8);
    reduce(call, root, call % 2 ? 5000 : 2);
    parts(call, root);
  }
  const char* const path = last_path();
  double slowest[3] = {begun, barrier, now_s() - first};
  MPI_Allreduce(MPI_IN_PLACE, slowest, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (world_rank == 0)
    printf("RESULT {\"path\": \"%s\", \"init\": %.4f, \"barrier\": %.4f, \"calls\": %.4f}\n", path, slowest[0],
           slowest[1], slowest[2]);
  MPI_Finalize();
  return 0;
}
