// SPDX-License-Identifier: BSD-3-Clause
// A job that is stopped while its last rank keeps the others waiting. That rank is late to the
// Allreduces, too.
//   stopped HOW FILE   FILE is made when all but the last rank have come to the barrier
//     hang             the last rank sleeps
//     kill, segv       it is killed
//     abort            it calls MPI_Abort
//     _exit            it leaves without MPI_Finalize
//     go               it goes on: the job ends well
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void sleep_s(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

// The other ranks are about to call the barrier: each has made a file.
static void wait_for_others(const char* file, int ranks) {
  char path[4096];
  for (int r = 0; r < ranks - 1; r++) {
    snprintf(path, sizeof path, "%s.%d", file, r);
    while (access(path, F_OK) != 0) sleep_s(0.01);
    unlink(path);
  }
  sleep_s(0.6);
}

static void make(const char* path) {
  FILE* const file = fopen(path, "w");
  if (file != NULL) fclose(file);
}

static void end(const char* how) {
  if (!strcmp(how, "hang")) sleep_s(1000);
  if (!strcmp(how, "kill")) raise(SIGKILL);
  if (!strcmp(how, "abort")) {
    MPI_Abort(MPI_COMM_WORLD, 7);
    sleep_s(1000);  // MPICH's returns before the job ends
  }
  if (!strcmp(how, "_exit")) _exit(0);
  if (!strcmp(how, "segv")) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
}

int main(int argc, char** argv) {
  int rank, ranks;
  double mine = 1, sum;
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int is_late = rank == ranks - 1;
  for (int i = 0; i < 20; i++) {
    if (is_late) sleep_s(0.005);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (is_late) {
    wait_for_others(argv[2], ranks);
    make(argv[2]);
    end(argv[1]);
  } else {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", argv[2], rank);
    make(path);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // the open call
  MPI_Finalize();
  return 0;
}
