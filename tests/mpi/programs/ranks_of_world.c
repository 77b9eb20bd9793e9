// SPDX-License-Identifier: BSD-3-Clause
// ranks_of_world: communicators whose ranks are those of MPI_COMM_WORLD in other orders: reversed,
// dealt in turn, every other, mixed up, parts. Each is used until its members have agreed, and
// after that. Prints RESULT with the number of wrong values, on rank 0.
#include <mpi.h>
#include <stdio.h>

static int wrong;

static void use(int color, int key) {
  MPI_Comm comm;
  int world, rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int k = 0; k < 3; ++k) {
    int mine = world + k, below = -1, all[512];
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
    for (int r = 0; r < size; ++r) wrong += all[r] < k || (r == rank && all[r] != mine);
    MPI_Scan(&mine, &below, 1, MPI_INT, MPI_SUM, comm);
    for (int r = 0; r <= rank; ++r) below -= all[r];
    wrong += below != 0;
  }
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  int rank, size, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  use(0, rank);
  use(0, -rank);
  use(0, rank % 3);
  use(rank % 2, rank);
  use(0, rank * 7919 % 1009);
  use(rank < 3 ? MPI_UNDEFINED : 0, rank);
  MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("RESULT {\"wrong\": %d}\n", sum);
  MPI_Finalize();
  return 0;
}
