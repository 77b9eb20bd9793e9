// SPDX-License-Identifier: BSD-3-Clause
// A program in which the last rank comes late to each Allreduce of sweep(): it begins its own part
// only when all others are about to call, and that part takes a while. Other collectives follow, to
// which nobody comes late on purpose; with an argument there are none.
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 8, PART_MS = 30, NORMS = 40, MOST_RANKS = 64, MOST_BYTES = 16384 };

static void wait_for_the_others(int rank, int size) {
  char word = 0;
  if (rank < size - 1) {
    MPI_Send(&word, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
    return;
  }
  for (int r = 0; r < size - 1; r++) MPI_Recv(&word, 1, MPI_CHAR, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const struct timespec part = {0, PART_MS * 1000000L};
  nanosleep(&part, NULL);
}

static double sweep(double mine) {
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // the late call
  return sum;
}

static void transpose(int bytes) {
  static char from[MOST_RANKS * MOST_BYTES], to[MOST_RANKS * MOST_BYTES];
  MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static double norm(double mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return mine;
}

int main(int argc, char** argv) {
  int rank, size, blocks[64] = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > MOST_RANKS) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < ROUNDS; i++) {
    wait_for_the_others(rank, size);
    (void)sweep(rank);
    if (argc > 1) continue;  // that alone
    for (int n = 0; n < NORMS; n++) (void)norm(rank);
    for (int bytes = 1024; bytes <= MOST_BYTES; bytes *= 4) transpose(bytes);
    MPI_Bcast(blocks, 64, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
