// SPDX-License-Identifier: BSD-3-Clause
// Programs that do what MPI forbids, or that stall: wrong_program KIND. The last rank is the odd one out.
//   late        comes 4 s late to the second Barrier (no error, only slow)
//   collective  calls Bcast where the others call Barrier
//   elsewhere   waits in a Barrier of a duplicate, while the others wait in one of MPI_COMM_WORLD; gives up after 6 s
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* kind = argc > 1 ? argv[1] : "";
  const int odd = rank == size - 1;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(other);
  MPI_Barrier(MPI_COMM_WORLD);
  char bytes[8] = {0};
  if (strcmp(kind, "late") == 0) {
    if (odd) sleep(4);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(kind, "collective") == 0) {
    if (odd) MPI_Bcast(bytes, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
    else MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(kind, "elsewhere") == 0) {
    alarm(6);  // nobody else ends this
    MPI_Barrier(odd ? other : MPI_COMM_WORLD);
  } else {
    fprintf(stderr, "wrong_program: unknown kind '%s'\n", kind);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_free(&other);
  printf("RESULT {\"rank\": %d}\n", rank);
  MPI_Finalize();
  return 0;
}
