// SPDX-License-Identifier: BSD-3-Clause
// Barriers of more ranks than there are processors, after a wait so long that ranks nap. Ours and
// the host's own take turns.
//   many_waiters [calls]
// Prints RESULT with the median time of a call of each, and the path that ours took.
#include "robust.h"

static int ascending(const void* a, const void* b) { return (*(double*)a > *(double*)b) - (*(double*)a < *(double*)b); }

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  enum { kMost = 1000 };
  int calls = argc > 1 ? atoi(argv[1]) : 20;
  CHECK(calls <= kMost, "at most %d calls", kMost);
  static double times[2][kMost];
  int (*host_barrier)(MPI_Comm);
  *(void**)&host_barrier = host_function("PMPI_Barrier");
  CHECK(host_barrier, "the host's function");
  const char* path = "none";
  for (int turn = 0; turn < 2; turn++) {
    MPI_Barrier(MPI_COMM_WORLD);
    host_barrier(MPI_COMM_WORLD);
    if (world_rank == 0) sleep_ms(30);
    for (int i = 0; i < calls; i++) {
      double began = now_s();
      if (turn)
        MPI_Barrier(MPI_COMM_WORLD);
      else
        host_barrier(MPI_COMM_WORLD);
      times[turn][i] = now_s() - began;
    }
    if (turn) path = last_path();
  }
  for (int turn = 0; turn < 2; turn++) qsort(times[turn], (size_t)calls, sizeof(double), ascending);
  if (world_rank == 0)
    printf("RESULT {\"ours_s\": %.6f, \"host_s\": %.6f, \"path\": \"%s\"}\n", times[1][calls / 2], times[0][calls / 2],
           path);
  MPI_Finalize();
  return 0;
}
