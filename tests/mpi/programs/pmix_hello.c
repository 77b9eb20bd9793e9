/* SPDX-License-Identifier: BSD-3-Clause
 * Every rank prints rank:size. A collective adds up the size.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, one = 1, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&one, &size, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d:%d\n", rank, size);
  return MPI_Finalize();
}
