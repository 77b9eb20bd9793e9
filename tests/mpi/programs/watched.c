/* SPDX-License-Identifier: BSD-3-Clause
 * A job for an observer, until it is told to end.
 *   late FILE    works a little; then the last rank comes to an Allreduce only when FILE is there
 *   split FILE   likewise, on a communicator with the ranks in reverse order
 *   busy FILE    calls collectives of several kinds all the time
 * After 90 seconds it ends in any case. A number behind FILE gives the rounds of work before (100).
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void rest(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static double began;

static int told_to_end(const char* file) { return access(file, F_OK) == 0 || MPI_Wtime() - began > 90; }

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
  began = MPI_Wtime();
  const int late = rank == size - 1;
  work_on(MPI_COMM_WORLD, argc > 3 ? atoi(argv[3]) : 100);
  if (strcmp(argv[1], "busy") == 0) {
    for (int go_on = 1; go_on;) {
      work_on(MPI_COMM_WORLD, 100);
      if (late) rest(0.002);
      go_on = !told_to_end(argv[2]);
      MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
  } else {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (strcmp(argv[1], "split") == 0) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    double one = 1, sum = 0;
    if (comm != MPI_COMM_WORLD) MPI_Barrier(comm); /* the first call makes it: all ranks come */
    while (late && !told_to_end(argv[2])) rest(0.01);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
