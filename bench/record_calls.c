// SPDX-License-Identifier: BSD-3-Clause
// What short calls of one rank take: nanoseconds a call, the least of some rounds, as JSON.
// dev/record_calls.py runs it with a recording and without.
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { kTurns = 100000, kRounds = 9 };

static void iprobe(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static void messages(void) {
  static char out[64], in[64];
  MPI_Request some[2];
  MPI_Irecv(in, sizeof in, MPI_BYTE, 0, 1, MPI_COMM_SELF, &some[0]);
  MPI_Isend(out, sizeof out, MPI_BYTE, 0, 1, MPI_COMM_SELF, &some[1]);
  MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
}

static void allreduce(void) {
  static double mine = 1, sum;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}

static double least(void (*turn)(void), int calls) {
  double found = 1e9;
  for (int round = 0; round < kRounds; round++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < kTurns; i++) turn();
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    if (ns / kTurns / calls < found) found = ns / kTurns / calls;
  }
  return found;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  printf("{\"Iprobe\": %.1f, \"Irecv, Isend, Waitall\": %.1f, \"Allreduce\": %.1f}\n", least(iprobe, 1),
         least(messages, 3), least(allreduce, 1));
  MPI_Finalize();
  return 0;
}
