// SPDX-License-Identifier: BSD-3-Clause
// Even ranks call the form with MPI_Count, odd ranks the one with int: together they make one call.
//   count_spellings blocking|nonblocking|persistent
//   RESULT {"wrong": 0}, a line for each rank
#include "robust.h"

enum { kMost = 64 };

static int wrong, n, wide, persistent;
static int counts[kMost], displs[kMost], bytes[kMost], out[kMost], in[kMost];
static MPI_Count large[kMost];
static MPI_Aint at[kMost], bytes_at[kMost];
static MPI_Datatype types[kMost];
static MPI_Request request = MPI_REQUEST_NULL;

static void clear(void) {
  for (int i = 0; i < kMost; i++) out[i] = world_rank * 100 + i, in[i] = -1;
}

// Ends the call.
static void expect(const char* call, int entries, const int* right) {
  if (persistent) MPI_Start(&request);
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (persistent) MPI_Request_free(&request);
  int bad = 0;
  for (int i = 0; i < entries; i++) bad += in[i] != right[i];
  if (bad && ++wrong < 5) fprintf(stderr, "rank %d: %s: %d of %d wrong\n", world_rank, call, bad, entries);
  clear();
}

#define CALL(name, wide_arguments, arguments) \
  do {                                        \
    if (wide)                                 \
      MPI_##name##_c wide_arguments;          \
    else                                      \
      MPI_##name arguments;                   \
  } while (0)
#define MORE(...) __VA_OPT__(, ) __VA_ARGS__

#define EVERY(alltoallv, alltoallw, allgatherv, gatherv, scatterv, reduce_scatter, to_all, to_each, to_each_type, ...) \
  CALL(alltoallv, (out, large, at, MPI_INT, in, large, at, MPI_INT, MPI_COMM_WORLD MORE(__VA_ARGS__)),                 \
       (out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD MORE(__VA_ARGS__)));                 \
  expect("alltoallv", n, mine_of_each);                                                                                \
  CALL(alltoallw, (out, large, bytes_at, types, in, large, bytes_at, types, MPI_COMM_WORLD MORE(__VA_ARGS__)),         \
       (out, counts, bytes, types, in, counts, bytes, types, MPI_COMM_WORLD MORE(__VA_ARGS__)));                       \
  expect("alltoallw", n, mine_of_each);                                                                                \
  CALL(allgatherv, (out, 1, MPI_INT, in, large, at, MPI_INT, MPI_COMM_WORLD MORE(__VA_ARGS__)),                        \
       (out, 1, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD MORE(__VA_ARGS__)));                              \
  expect("allgatherv", n, first_of_each);                                                                              \
  CALL(gatherv, (out, 1, MPI_INT, in, large, at, MPI_INT, 1, MPI_COMM_WORLD MORE(__VA_ARGS__)),                        \
       (out, 1, MPI_INT, in, counts, displs, MPI_INT, 1, MPI_COMM_WORLD MORE(__VA_ARGS__)));                           \
  expect("gatherv", world_rank == 1 ? n : 0, first_of_each);                                                           \
  CALL(scatterv, (out, large, at, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD MORE(__VA_ARGS__)),                       \
       (out, counts, displs, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD MORE(__VA_ARGS__)));                           \
  expect("scatterv", 1, &world_rank);                                                                                  \
  CALL(reduce_scatter, (out, in, large, MPI_INT, MPI_SUM, MPI_COMM_WORLD MORE(__VA_ARGS__)),                           \
       (out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD MORE(__VA_ARGS__)));                                         \
  expect("reduce_scatter", 1, &sum);                                                                                   \
  CALL(to_all, (out, 1, MPI_INT, in, large, at, MPI_INT, ring MORE(__VA_ARGS__)),                                      \
       (out, 1, MPI_INT, in, counts, displs, MPI_INT, ring MORE(__VA_ARGS__)));                                        \
  expect("neighbor_allgatherv", 2, first_of_neighbors);                                                                \
  CALL(to_each, (out, large, at, MPI_INT, in, large, at, MPI_INT, ring MORE(__VA_ARGS__)),                             \
       (out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, ring MORE(__VA_ARGS__)));                           \
  expect("neighbor_alltoallv", 2, mine_of_neighbors);                                                                  \
  CALL(to_each_type, (out, large, bytes_at, types, in, large, bytes_at, types, ring MORE(__VA_ARGS__)),                \
       (out, counts, bytes_at, types, in, counts, bytes_at, types, ring MORE(__VA_ARGS__)));                           \
  expect("neighbor_alltoallw", 2, mine_of_neighbors);

static void run(const char* how, MPI_Comm ring) {
  int mine_of_each[kMost], first_of_each[kMost];
  for (int i = 0; i < n; i++) mine_of_each[i] = i * 100 + world_rank, first_of_each[i] = i * 100;
  const int sum = 100 * n * (n - 1) / 2 + n * world_rank;
  const int before = (world_rank + n - 1) % n, behind = (world_rank + 1) % n;
  const int first_of_neighbors[2] = {before * 100, behind * 100};
  const int mine_of_neighbors[2] = {before * 100 + 1, behind * 100};
  if (!strcmp(how, "nonblocking")) {
    EVERY(Ialltoallv, Ialltoallw, Iallgatherv, Igatherv, Iscatterv, Ireduce_scatter, Ineighbor_allgatherv,
          Ineighbor_alltoallv, Ineighbor_alltoallw, &request)
  } else if (!strcmp(how, "persistent")) {
    persistent = 1;
    EVERY(Alltoallv_init, Alltoallw_init, Allgatherv_init, Gatherv_init, Scatterv_init, Reduce_scatter_init,
          Neighbor_allgatherv_init, Neighbor_alltoallv_init, Neighbor_alltoallw_init, MPI_INFO_NULL, &request)
  } else {
    EVERY(Alltoallv, Alltoallw, Allgatherv, Gatherv, Scatterv, Reduce_scatter, Neighbor_allgatherv, Neighbor_alltoallv,
          Neighbor_alltoallw)
  }
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  n = world_size;
  wide = world_rank % 2 == 0;
  for (int i = 0; i < kMost; i++) {
    counts[i] = 1, displs[i] = i, bytes[i] = i * (int)sizeof(int);
    large[i] = 1, at[i] = i, bytes_at[i] = bytes[i];
    types[i] = MPI_INT;
  }
  clear();
  MPI_Comm ring;
  const int period = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &period, 0, &ring);
  for (int i = 0; i < 12; i++) {  // members agree, and meet for calls with requests
    const MPI_Comm comm = i % 2 ? MPI_COMM_WORLD : ring;
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
  }
  run(argc > 1 ? argv[1] : "blocking", ring);
  MPI_Comm_free(&ring);
  printf("RESULT {\"wrong\": %d}\n", wrong);
  MPI_Finalize();
  return 0;
}
