// SPDX-License-Identifier: BSD-3-Clause
// Some ranks make many short rooted calls before the others make the first. The others wait for a
// message that is sent after these calls. MPI promises nothing here, and many programs rely on it.
//   ahead N...
#include "robust.h"

enum { kMost = 16, kForms = 4 };
static const char* const kNames[kForms] = {"bcast", "scatter", "gather", "reduce"};

static void once(MPI_Comm comm, int form, int root, int k) {
  int one = 10 * k + world_rank, all[kMost], sum = -1, right = 1;
  for (int r = 0; r < world_size; r++) all[r] = form == 1 && world_rank == root ? 10 * k + r : -1;
  if (form == 0) {
    MPI_Bcast(&one, 1, MPI_INT, root, comm);
    right = one == 10 * k + root;
  } else if (form == 1) {
    one = -1;
    MPI_Scatter(all, 1, MPI_INT, &one, 1, MPI_INT, root, comm);
    right = one == 10 * k + world_rank;
  } else if (form == 2) {
    MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, root, comm);
    for (int r = 0; r < world_size && world_rank == root; r++) right = right && all[r] == 10 * k + r;
  } else {
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, root, comm);
    right = world_rank != root || sum == world_size * 10 * k + world_size * (world_size - 1) / 2;
  }
  CHECK(right, "wrong data in %s %d", kNames[form], k);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 8; i++) MPI_Barrier(comm);
  for (int a = 1; a < argc; a++) {
    const int calls = atoi(argv[a]);
    for (int form = 0; form < kForms; form++) {
      const int root = (a + form) % world_size, writes = (form < 2) == (world_rank == root);
      int word = 0;
      for (int r = 0; r < world_size && !writes; r++) {
        if ((form < 2) == (r == root)) MPI_Recv(&word, 1, MPI_INT, r, form, comm, MPI_STATUS_IGNORE);
      }
      for (int k = 0; k < calls; k++) once(comm, form, root, k);
      for (int r = 0; r < world_size && writes; r++) {
        if ((form < 2) != (r == root)) MPI_Send(&word, 1, MPI_INT, r, form, comm);
      }
      MPI_Barrier(comm);
    }
  }
  printf("RESULT {\"rank\": %d, \"path\": \"%s\"}\n", world_rank, last_path());
  fflush(stdout);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
