/* SPDX-License-Identifier: BSD-3-Clause
 * A program that uses the MPI of HEADER. With -DUSER=user it is a function of a library.
 */
#include HEADER

#include <stdio.h>

#ifndef USER
#define USER main
#endif

int USER(void) {
  int rank = -1, size = -1, sum = 0, right;
  MPI_Init(0, 0);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int one = 1, word = rank == 0 ? 42 : 0;
  MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  right = sum == size && word == 42;
  printf("RESULT {\"right\": %s}\n", right ? "true" : "false");
  fflush(stdout);
  MPI_Finalize();
  return !right;
}
