// SPDX-License-Identifier: BSD-3-Clause
// Ranks of three that do not meet: source_lines hang | mismatch. With -DLIBRARY it is the library
// that makes the calls, with -DPROGRAM the program that calls it.
#include <mpi.h>
#include <string.h>
#include <unistd.h>

void step(int rank, const char* what);

#ifndef PROGRAM
__attribute__((visibility("default"), noinline)) void step(int rank, const char* what) {
  int value = 1, sum;
  if (strcmp(what, "hang") == 0 && rank == 2) usleep(2500000);
  if (strcmp(what, "mismatch") == 0 && rank == 1) {
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);  // the root's call
  } else {
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // the others' call
  }
  __asm__ volatile("" ::: "memory");  // not the last call: it stays a call
}
#endif

#ifndef LIBRARY
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);  // the last call of the late rank
  step(rank, argv[1]);
  MPI_Finalize();
  return 0;
}
#endif
