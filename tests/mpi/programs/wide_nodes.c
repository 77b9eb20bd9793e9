// SPDX-License-Identifier: BSD-3-Clause
// A few collectives of many ranks on a few nodes, each with its path, and how long the start took.
//   wide_nodes [CALLS]   so many calls of each kind; the root changes
#include "robust.h"

static char* received;
static int* numbers;

#define RIGHT(condition, what)                                                      \
  if (!(condition)) {                                                               \
    fprintf(stderr, "rank %d, call %d: wrong %s\n", world_rank, call, (what));      \
    MPI_Abort(MPI_COMM_WORLD, 2);                                                   \
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

static void parts(int call, int root) {
  int* const all = (int*)received;
  int mine = 1000 * call + world_rank, got = -1;
  MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, MPI_COMM_WORLD);
  for (int r = 0; r < world_size && world_rank == root; ++r) RIGHT(all[r] == 1000 * call + r, "Gather");
  for (int r = 0; r < world_size; ++r) numbers[r] = 7 * r + call;
  MPI_Scatter(numbers, 1, MPI_INT, &got, 1, MPI_INT, root, MPI_COMM_WORLD);
  RIGHT(got == 7 * world_rank + call, "Scatter");
  MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; ++r) RIGHT(all[r] == 1000 * call + r, "Allgather");
  for (int r = 0; r < world_size; ++r) numbers[r] = world_rank * world_size + r + call;
  MPI_Alltoall(numbers, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int r = 0; r < world_size; ++r) RIGHT(all[r] == r * world_size + world_rank + call, "Alltoall");
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
    printf("RESULT {\"path\": \"%s\", \"init\": %.4f, \"barrier\": %.4f, \"calls\": %.4f}\n", path, slowest[0], slowest[1],
           slowest[2]);
  MPI_Finalize();
  return 0;
}
