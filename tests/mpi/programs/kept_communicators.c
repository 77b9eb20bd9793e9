// SPDX-License-Identifier: BSD-3-Clause
// Keeps duplicates of MPI_COMM_WORLD and uses each several times. Rank 0 prints by how much the
// memory of all ranks has grown, PSS and page tables, in KiB, what page tables they have at last,
// and how long the first uses took.  Usage: kept_communicators COUNT
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kUses = 8 };  // the members agree by their fifth

typedef struct {
  double pss_kib, tables_kib;
} Memory;

static double number_in(const char* path, const char* name) {
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  char line[256];
  double number = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) number = atof(line + strlen(name));
  }
  fclose(file);
  return number;
}

static Memory of_all(void) {
  Memory mine, all = {0, 0};
  MPI_Barrier(MPI_COMM_WORLD);
  mine.pss_kib = number_in("/proc/self/smaps_rollup", "Pss:");
  mine.tables_kib = number_in("/proc/self/status", "VmPTE:");
  MPI_Reduce(&mine, &all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  return all;
}

static void use(MPI_Comm comm) {
  double one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int count = argc > 1 ? atoi(argv[1]) : 100;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kUses; ++i) use(MPI_COMM_WORLD);
  (void)of_all();
  const Memory before = of_all();
  MPI_Comm* const comms = malloc((size_t)count * sizeof *comms);
  if (comms == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < count; ++i) MPI_Comm_dup(MPI_COMM_WORLD, comms + i);
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int k = 0; k < kUses; ++k) {
    for (int i = 0; i < count; ++i) use(comms[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double used_s = MPI_Wtime() - began;
  const Memory after = of_all();
  if (rank == 0) {
    printf("RESULT {\"pss_kib\": %.0f, \"tables_kib\": %.0f, \"tables_at_last_kib\": %.0f, \"used_s\": %.3f}\n",
           after.pss_kib - before.pss_kib, after.tables_kib - before.tables_kib, after.tables_kib, used_s);
  }
  for (int i = 0; i < count; ++i) MPI_Comm_free(comms + i);
  free(comms);
  MPI_Finalize();
  return 0;
}
