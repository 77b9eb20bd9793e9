/* SPDX-License-Identifier: BSD-3-Clause
 * A job to be looked at: `late SECONDS` works on, then the last rank comes so much later than the others to an Allreduce (and to a
 * Barrier of its own half after that); `busy SECONDS` calls collectives of several kinds all the time; `split` is late on a communicator on which
 * no rank has called anything before. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void rest(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static void work_on(MPI_Comm comm, int calls) {
  static double data[32768], sum[32768];
  for (int i = 0; i < calls; i++) {
    MPI_Barrier(comm);
    MPI_Bcast(data, 32768, MPI_DOUBLE, i % 2, comm);
    MPI_Allreduce(data, sum, 8, MPI_DOUBLE, MPI_SUM, comm);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double seconds = atof(argv[2]);
  const int late = rank == size - 1;
  work_on(MPI_COMM_WORLD, 100);
  if (strcmp(argv[1], "busy") == 0) {
    const double end = MPI_Wtime() + seconds;
    for (int go_on = 1; go_on;) {
      work_on(MPI_COMM_WORLD, 100);
      if (late) rest(0.002);
      go_on = MPI_Wtime() < end;
      MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  } else {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (strcmp(argv[1], "split") == 0) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    double one = 1, sum = 0;
    if (comm != MPI_COMM_WORLD) MPI_Barrier(comm); /* it is made at the first call: which all come to */
    if (late) rest(seconds);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
