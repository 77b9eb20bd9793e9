// SPDX-License-Identifier: BSD-3-Clause
// A type of more runs than the library keeps: Bcast, Scatterv and Gatherv between ranks that use it
// and ranks that use plain bytes of the same signature.
#include "robust.h"

enum { RUNS = (1 << 22) + 3 };  // src/mpi/datatype.hpp: kRunLimit is 1 << 22

static MPI_Datatype every_second_byte(void) {
  MPI_Datatype type;
  MPI_Type_vector(RUNS, 1, 2, MPI_CHAR, &type);
  MPI_Type_commit(&type);
  return type;
}

static void fill_strided(unsigned char* memory, uint64_t seed) {
  for (size_t i = 0; i < RUNS; i++) memory[2 * i] = pattern(seed, i);
}

static void check_strided(const unsigned char* memory, uint64_t seed, const char* what) {
  for (size_t i = 0; i < RUNS; i++) {
    CHECK(memory[2 * i] == pattern(seed, i), "%s: element %zu", what, i);
    CHECK(i + 1 == RUNS || memory[2 * i + 1] == 0xee, "%s: the gap after %zu was touched", what, i);
  }
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Datatype type = every_second_byte();
  unsigned char* strided = malloc(2 * (size_t)RUNS);
  unsigned char* plain = malloc((size_t)RUNS * (size_t)world_size);
  int root = 1 % world_size;
  memset(strided, 0xee, 2 * (size_t)RUNS);

  // From strided to plain, and from plain to strided, by turns.
  if (world_rank == root) fill_strided(strided, 5);
  if (world_rank == 0 && root != 0) {
    MPI_Bcast(plain, RUNS, MPI_CHAR, root, MPI_COMM_WORLD);
    CHECK(mismatch(plain, 5, RUNS) < 0, "bcast to plain bytes");
  } else {
    MPI_Bcast(strided, 1, type, root, MPI_COMM_WORLD);
    check_strided(strided, 5, "bcast");
  }
  printf("RESULT {\"rank\": %d, \"path\": \"%s\"}\n", world_rank, last_path());

  int counts[64], displs[64];
  for (int r = 0; r < world_size; r++) {
    counts[r] = RUNS;
    displs[r] = r * RUNS;
    fill(plain + (size_t)r * RUNS, 7 + (uint64_t)r, RUNS);
  }
  MPI_Scatterv(plain, counts, displs, MPI_CHAR, strided, 1, type, root, MPI_COMM_WORLD);
  check_strided(strided, 7 + (uint64_t)world_rank, "scatterv");
  fill_strided(strided, 40 + (uint64_t)world_rank);
  MPI_Gatherv(strided, 1, type, plain, counts, displs, MPI_CHAR, root, MPI_COMM_WORLD);
  for (int r = 0; world_rank == root && r < world_size; r++)
    CHECK(mismatch(plain + (size_t)r * RUNS, 40 + (uint64_t)r, RUNS) < 0, "gatherv from rank %d", r);
  MPI_Type_free(&type);
  MPI_Finalize();
  return 0;
}
