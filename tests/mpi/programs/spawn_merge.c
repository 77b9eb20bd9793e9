// SPDX-License-Identifier: BSD-3-Clause
// The job spawns two children of the same program, merges with them and works on the merged
// communicator.
#include "robust.h"

static void use(MPI_Comm comm, uint64_t seed) {
  int rank, size;
  static char big[50000];
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int root = 0; root < size; root++) {
    if (rank == root) fill(big, seed + (uint64_t)root, sizeof big);
    MPI_Bcast(big, (int)sizeof big, MPI_BYTE, root, comm);
    CHECK(mismatch(big, seed + (uint64_t)root, sizeof big) < 0, "wrong data from %d", root);
    int mine = rank * 3, all[64];
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
    for (int r = 0; r < size; r++) CHECK(all[r] == 3 * r, "allgather");
    MPI_Barrier(comm);
  }
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm parent, inter, merged;
  MPI_Comm_get_parent(&parent);
  use(MPI_COMM_WORLD, 10);
  int child = parent != MPI_COMM_NULL;
  if (child)
    inter = parent;
  else
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  MPI_Intercomm_merge(inter, child, &merged);
  int size;
  MPI_Comm_size(merged, &size);
  use(merged, 100);
  const char* path = last_path();
  if (world_rank == 0)
    printf("RESULT {\"child\": %d, \"size\": %d, \"path\": \"%s\"}\n", child, size, path), fflush(stdout);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&inter);
  use(MPI_COMM_WORLD, 20);
  MPI_Finalize();
  return 0;
}
