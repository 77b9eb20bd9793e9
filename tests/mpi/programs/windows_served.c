// SPDX-License-Identifier: BSD-3-Clause
// A rank that waits in a Barrier serves one-sided calls. Rank 0 locks rank 1's window, puts, gets
// or accumulates, and unlocks, again and again. All others wait in our Barrier or in the host's
// own, by turns.
//   windows_served put|get|accumulate [calls [repetitions]]
// Prints RESULT with the shortest time of each and the path that ours took.
#include "robust.h"

enum { kDoubles = 4096 };
static double origin[kDoubles], memory[kDoubles];
static MPI_Win window;
static const char* kind;
static int calls;

static void serve_me(int doubles) {
  for (int i = 0; i < calls; i++) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    if (!strcmp(kind, "put")) MPI_Put(origin, doubles, MPI_DOUBLE, 1, 0, doubles, MPI_DOUBLE, window);
    if (!strcmp(kind, "get")) MPI_Get(origin, doubles, MPI_DOUBLE, 1, 0, doubles, MPI_DOUBLE, window);
    if (!strcmp(kind, "accumulate"))
      MPI_Accumulate(origin, doubles, MPI_DOUBLE, 1, 0, doubles, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_unlock(1, window);
  }
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  kind = argc > 1 ? argv[1] : "put";
  calls = argc > 2 ? atoi(argv[2]) : 300;
  int repetitions = argc > 3 ? atoi(argv[3]) : 5;
  int (*host_barrier)(MPI_Comm);
  *(void**)&host_barrier = host_function("PMPI_Barrier");
  CHECK(host_barrier, "the host's function");
  for (int i = 0; i < kDoubles; i++) origin[i] = 1;
  MPI_Win_create(memory, sizeof memory, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  double shortest[2] = {1e9, 1e9};
  const char* path = "none";
  for (int n = -1; n < repetitions; n++)
    for (int ours = 0; ours < 2; ours++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double began = now_s();
      if (world_rank == 0)
        for (int doubles = 1; doubles <= kDoubles; doubles *= 16) serve_me(doubles);
      double took = now_s() - began;
      if (ours)
        MPI_Barrier(MPI_COMM_WORLD);
      else
        host_barrier(MPI_COMM_WORLD);
      if (ours) path = last_path();
      if (n >= 0 && took < shortest[ours]) shortest[ours] = took;
    }
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window);
  if (world_rank == 1 && !strcmp(kind, "accumulate"))
    CHECK(memory[0] == 4.0 * 2 * calls * (repetitions + 1) && memory[kDoubles - 1] == 2.0 * calls * (repetitions + 1),
          "%f %f", memory[0], memory[kDoubles - 1]);
  if (world_rank == 1 && !strcmp(kind, "put"))
    CHECK(memory[0] == 1 && memory[kDoubles - 1] == 1, "%f %f", memory[0], memory[kDoubles - 1]);
  MPI_Win_unlock(world_rank, window);
  if (world_rank == 0)
    printf("RESULT {\"ours_s\": %.6f, \"host_s\": %.6f, \"path\": \"%s\"}\n", shortest[1], shortest[0], path);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
