// SPDX-License-Identifier: BSD-3-Clause
// Every collective of the library, sizes from nothing to several rings, all roots, every byte
// checked.
//   options_check [rounds [largest block in bytes [color modulus]]]
// Prints one RESULT per rank: the path of the last call of each operation at the largest size.
#include "robust.h"

static MPI_Comm comm;
static int rank, size;

typedef struct {
  int *counts, *displs;
  size_t total;
} Layouts;

// Uneven blocks with a gap of three bytes after each.
static Layouts layouts(size_t bytes, int uneven) {
  Layouts l = {malloc(sizeof(int) * size), malloc(sizeof(int) * size), 0};
  for (int r = 0; r < size; r++) {
    l.counts[r] = (int)(uneven ? bytes * (size_t)(r % 3) / 2 : bytes);
    l.displs[r] = (int)l.total;
    l.total += (size_t)l.counts[r] + (uneven ? 3 : 0);
  }
  return l;
}

static uint64_t seed(int round, int origin, int target) { return 1000003ull * round + 1009ull * origin + target + 17; }

static void expect(const unsigned char* b, uint64_t s, size_t bytes, const char* op, int root) {
  long at = mismatch(b, s, bytes);
  CHECK(at < 0, "%s of %zu bytes from root %d wrong at byte %ld", op, bytes, root, at);
}

static void check_bcast(int round, size_t bytes, int root) {
  unsigned char* b = calloc(bytes + 1, 1);
  if (rank == root) fill(b, seed(round, root, 0), bytes);
  CHECK(MPI_Bcast(b, (int)bytes, MPI_BYTE, root, comm) == MPI_SUCCESS, "bcast");
  expect(b, seed(round, root, 0), bytes, "bcast", root);
  CHECK(b[bytes] == 0, "bcast wrote past the end");
  free(b);
}

static void check_rooted(int round, size_t bytes, int root, int uneven) {
  Layouts l = layouts(bytes, uneven);
  unsigned char* all = calloc(l.total + 1, 1);
  unsigned char* mine = calloc((size_t)l.counts[rank] + 1, 1);
  if (rank == root)
    for (int r = 0; r < size; r++) fill(all + l.displs[r], seed(round, root, r), (size_t)l.counts[r]);
  int e = uneven ? MPI_Scatterv(all, l.counts, l.displs, MPI_BYTE, mine, l.counts[rank], MPI_BYTE, root, comm)
                 : MPI_Scatter(all, (int)bytes, MPI_BYTE, mine, (int)bytes, MPI_BYTE, root, comm);
  CHECK(e == MPI_SUCCESS, "scatter");
  expect(mine, seed(round, root, rank), (size_t)l.counts[rank], uneven ? "scatterv" : "scatter", root);

  memset(all, 0xee, l.total);
  fill(mine, seed(round, rank, 5), (size_t)l.counts[rank]);
  e = uneven ? MPI_Gatherv(mine, l.counts[rank], MPI_BYTE, all, l.counts, l.displs, MPI_BYTE, root, comm)
             : MPI_Gather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, root, comm);
  CHECK(e == MPI_SUCCESS, "gather");
  for (int r = 0; rank == root && r < size; r++) {
    expect(all + l.displs[r], seed(round, r, 5), (size_t)l.counts[r], uneven ? "gatherv" : "gather", root);
    if (uneven) CHECK(all[l.displs[r] + l.counts[r]] == 0xee, "gatherv wrote into the gap after block %d", r);
  }
  free(all), free(mine), free(l.counts), free(l.displs);
}

static void check_allgather(int round, size_t bytes, int uneven) {
  Layouts l = layouts(bytes, uneven);
  unsigned char* all = malloc(l.total + 1);
  unsigned char* mine = malloc((size_t)l.counts[rank] + 1);
  memset(all, 0xee, l.total + 1);
  fill(mine, seed(round, rank, 7), (size_t)l.counts[rank]);
  int e = uneven ? MPI_Allgatherv(mine, l.counts[rank], MPI_BYTE, all, l.counts, l.displs, MPI_BYTE, comm)
                 : MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm);
  CHECK(e == MPI_SUCCESS, "allgather");
  for (int r = 0; r < size; r++) {
    expect(all + l.displs[r], seed(round, r, 7), (size_t)l.counts[r], uneven ? "allgatherv" : "allgather", r);
    if (uneven) CHECK(all[l.displs[r] + l.counts[r]] == 0xee, "allgatherv wrote into the gap after block %d", r);
  }
  free(all), free(mine), free(l.counts), free(l.displs);
}

static void check_host_owned(int round) {
  long mine = rank + 1 + round, sum = 0;
  CHECK(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm) == MPI_SUCCESS, "allreduce");
  CHECK(sum == (long)size * (size + 1) / 2 + (long)size * round, "allreduce gave %ld", sum);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  int rounds = argc > 1 ? atoi(argv[1]) : 3;
  size_t largest = argc > 2 ? (size_t)atol(argv[2]) : 300000;
  int modulus = argc > 3 ? atoi(argv[3]) : 1;
  comm = MPI_COMM_WORLD;
  if (modulus > 1) MPI_Comm_split(MPI_COMM_WORLD, world_rank % modulus, world_rank, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  static const size_t kSizes[] = {0, 1, 8, 100, 4000, 40000};
  const char *barrier = "", *bcast = "", *rooted = "", *vector = "", *allgather = "", *allgatherv = "";
  double began = now_s();
  for (int round = 0; round < rounds; round++)
    for (size_t s = 0; s <= sizeof kSizes / sizeof *kSizes; s++) {
      size_t bytes = s < sizeof kSizes / sizeof *kSizes ? kSizes[s] : largest;
      int root = (round + (int)s) % size;
      MPI_Barrier(comm), barrier = last_path();
      check_bcast(round, bytes, root), bcast = last_path();
      check_rooted(round, bytes, root, 0), rooted = last_path();
      check_rooted(round, bytes, root, 1), vector = last_path();
      check_allgather(round, bytes, 0), allgather = last_path();
      check_allgather(round, bytes, 1), allgatherv = last_path();
      check_host_owned(round);
    }
  printf(
      "RESULT {\"rank\": %d, \"size\": %d, \"seconds\": %.6f, \"barrier\": \"%s\", \"bcast\": \"%s\", \"gather\": "
      "\"%s\", "
      "\"gatherv\": \"%s\", \"allgather\": \"%s\", \"allgatherv\": \"%s\"}\n",
      world_rank, size, now_s() - began, barrier, bcast, rooted, vector, allgather, allgatherv);
  fflush(stdout);
  if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
