// SPDX-License-Identifier: BSD-3-Clause
// The _c (large-count) forms of every collective of ours: counts and displacements of 8 bytes,
// large-count datatypes. Each rank prints how often it made which call. `large_count_calls huge`
// broadcasts and scatters more than 2^31 elements.
#include "robust.h"

enum { BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, OPERATIONS };
static const char* const names[OPERATIONS] = {"barrier", "bcast",    "gather",    "gatherv",
                                              "scatter", "scatterv", "allgather", "allgatherv"};
static int calls[OPERATIONS];

#define COUNTED(operation, call)                          \
  do {                                                    \
    CHECK((call) == MPI_SUCCESS, "%s", names[operation]); \
    calls[operation]++;                                   \
  } while (0)

static void check(const void* at, uint64_t seed, size_t bytes, const char* what) {
  long bad = mismatch(at, seed, bytes);
  CHECK(bad < 0, "%s: byte %ld is wrong", what, bad);
}

static void regular(size_t bytes, int root) {
  char* mine = malloc(bytes);
  char* all = malloc(bytes * (size_t)world_size);
  MPI_Count n = (MPI_Count)bytes;
  if (world_rank == root) fill(mine, 1, bytes);
  COUNTED(BCAST, MPI_Bcast_c(mine, n, MPI_BYTE, root, MPI_COMM_WORLD));
  check(mine, 1, bytes, "bcast");
  fill(mine, 10 + (uint64_t)world_rank, bytes);
  COUNTED(GATHER, MPI_Gather_c(mine, n, MPI_BYTE, all, n, MPI_BYTE, root, MPI_COMM_WORLD));
  for (int r = 0; world_rank == root && r < world_size; r++)
    check(all + (size_t)r * bytes, 10 + (uint64_t)r, bytes, "gather");
  for (int r = 0; r < world_size; r++) fill(all + (size_t)r * bytes, 20 + (uint64_t)r, bytes);
  COUNTED(SCATTER, MPI_Scatter_c(all, n, MPI_BYTE, mine, n, MPI_BYTE, root, MPI_COMM_WORLD));
  check(mine, 20 + (uint64_t)world_rank, bytes, "scatter");
  memset(all, 0, bytes * (size_t)world_size);
  memcpy(all + (size_t)world_rank * bytes, mine, bytes);
  COUNTED(ALLGATHER, MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_BYTE, MPI_COMM_WORLD));
  for (int r = 0; r < world_size; r++) check(all + (size_t)r * bytes, 20 + (uint64_t)r, bytes, "allgather");
  free(mine);
  free(all);
}

// Rank r has r + 1 units. Blocks lie in reverse order, a unit apart.
static void irregular(size_t unit, int root) {
  MPI_Count counts[64];
  MPI_Aint displs[64];
  size_t total = 0;
  for (int r = world_size - 1; r >= 0; r--) {
    counts[r] = (MPI_Count)((size_t)(r + 1) * unit);
    displs[r] = (MPI_Aint)total;
    total += (size_t)(r + 2) * unit;
  }
  size_t bytes = (size_t)counts[world_rank];
  char* mine = malloc(bytes);
  unsigned char* all = malloc(total);
  fill(mine, 30 + (uint64_t)world_rank, bytes);
  memset(all, 0xee, total);
  MPI_Count n = (MPI_Count)bytes;
  COUNTED(GATHERV, MPI_Gatherv_c(mine, n, MPI_BYTE, all, counts, displs, MPI_BYTE, root, MPI_COMM_WORLD));
  for (int r = 0; world_rank == root && r < world_size; r++) {
    check(all + displs[r], 30 + (uint64_t)r, (size_t)counts[r], "gatherv");
    CHECK(all[displs[r] + counts[r]] == 0xee, "gatherv: the gap after rank %d was touched", r);
  }
  for (int r = 0; r < world_size; r++) fill(all + displs[r], 40 + (uint64_t)r, (size_t)counts[r]);
  COUNTED(SCATTERV, MPI_Scatterv_c(all, counts, displs, MPI_BYTE, mine, n, MPI_BYTE, root, MPI_COMM_WORLD));
  check(mine, 40 + (uint64_t)world_rank, bytes, "scatterv");
  memset(all, 0xee, total);
  COUNTED(ALLGATHERV, MPI_Allgatherv_c(mine, n, MPI_BYTE, all, counts, displs, MPI_BYTE, MPI_COMM_WORLD));
  for (int r = 0; r < world_size; r++) {
    check(all + displs[r], 40 + (uint64_t)r, (size_t)counts[r], "allgatherv");
    CHECK(all[displs[r] + counts[r]] == 0xee, "allgatherv: the gap after rank %d was touched", r);
  }
  free(mine);
  free(all);
}

// A type made by a large-count constructor, received as plain ints.
static void derived(int root) {
  MPI_Datatype type;
  int strided[3 * 50], plain[100];
  MPI_Type_vector_c(50, 2, 3, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < 150; i++) strided[i] = i;
  if (world_rank == root) {
    COUNTED(BCAST, MPI_Bcast_c(strided, 1, type, root, MPI_COMM_WORLD));
  } else {
    COUNTED(BCAST, MPI_Bcast_c(plain, 100, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < 100; i++) CHECK(plain[i] == i / 2 * 3 + i % 2, "bcast of a vector: int %d is %d", i, plain[i]);
  }
  MPI_Type_free(&type);
}

// More elements than an int counts. A truncated count would lose the tail.
static void huge(void) {
  const size_t bytes = ((size_t)1 << 31) + 4099;
  char* memory = malloc(bytes);
  CHECK(memory, "no memory for %zu bytes", bytes);
  const size_t marks[] = {0, 1000, ((size_t)1 << 31) - 1, (size_t)1 << 31, bytes - 1};
  memset(memory, world_rank == 0 ? 1 : 0, bytes);
  for (int i = 0; world_rank == 0 && i < 5; i++) memory[marks[i]] = (char)(50 + i);
  COUNTED(BCAST, MPI_Bcast_c(memory, (MPI_Count)bytes, MPI_CHAR, 0, MPI_COMM_WORLD));
  for (int i = 0; i < 5; i++) CHECK(memory[marks[i]] == (char)(50 + i), "byte %zu is %d", marks[i], memory[marks[i]]);
  size_t ones = 0;
  for (size_t i = 0; i < bytes; i++) ones += memory[i] == 1;
  CHECK(ones == bytes - 5, "%zu bytes arrived, not %zu", ones, bytes - 5);
  free(memory);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  COUNTED(BARRIER, MPI_Barrier(MPI_COMM_WORLD));
  if (argc > 1 && !strcmp(argv[1], "huge")) {
    huge();
  } else {
    for (int root = 0; root < world_size; root++) {
      regular(1, root);
      regular(300000, root);
      irregular(3, root);
      irregular(70001, root);
      derived(root);
    }
  }
  char line[500];
  int at = snprintf(line, sizeof line, "RESULT {\"rank\": %d, \"calls\": {", world_rank);
  for (int i = 0; i < OPERATIONS; i++)
    at += snprintf(line + at, sizeof line - (size_t)at, "%s\"%s\": %d", i ? ", " : "", names[i], calls[i]);
  printf("%s}}\n", line);
  MPI_Finalize();
  return 0;
}
