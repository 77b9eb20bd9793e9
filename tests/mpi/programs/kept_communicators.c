// SPDX-License-Identifier: BSD-3-Clause
// Keeps duplicates of MPI_COMM_WORLD and uses each several times. Rank 0 prints by how much the
// memory of all ranks has grown: PSS, in KiB.  Usage: kept_communicators COUNT
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kUses = 8 };  // the members agree by their fifth

static double pss_kib(void) {
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) return 0;
  char line[256];
  double kib = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "Pss:", 4) == 0) kib = atof(line + 4);
  }
  fclose(file);
  return kib;
}

static double of_all(void) {
  double mine, all = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  mine = pss_kib();
  MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
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
  const double before = of_all();
  MPI_Comm* const comms = malloc((size_t)count * sizeof *comms);
  if (comms == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < count; ++i) MPI_Comm_dup(MPI_COMM_WORLD, comms + i);
  for (int k = 0; k < kUses; ++k) {
    for (int i = 0; i < count; ++i) use(comms[i]);
  }
  const double after = of_all();
  if (rank == 0) printf("RESULT {\"grown_kib\": %.0f}\n", after - before);
  for (int i = 0; i < count; ++i) MPI_Comm_free(comms + i);
  free(comms);
  MPI_Finalize();
  return 0;
}
