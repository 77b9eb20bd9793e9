// SPDX-License-Identifier: BSD-3-Clause
// Ranks that end at a bad moment.
//   crash_end kill   RANK   a thread of the rank kills it while it and its peers are in collectives
//   crash_end wait   RANK   the rank is killed while its peers are blocked in one collective that
//                           it never enters
//   crash_end abort  RANK   the rank calls MPI_Abort while its peers are blocked in a collective
//   crash_end exit   RANK   every rank leaves by exit(0), without MPI_Finalize
//   crash_end _exit  RANK   by _exit(0)
//   crash_end one    RANK   one rank returns from main without MPI_Finalize, its peers finalize
#include <pthread.h>
#include <signal.h>

#include "robust.h"

static void* killer(void* unused) {
  (void)unused;
  sleep_ms(60);
  kill(getpid(), SIGKILL);
  return NULL;
}

static void collectives_forever(void) {
  static char big[3 << 20], blocks[8 << 20];
  for (int n = 0;; n++) {
    MPI_Bcast(big, sizeof big, MPI_BYTE, n % world_size, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allgather(big, 70000, MPI_BYTE, blocks, 70000, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Gather(big, 70000, MPI_BYTE, blocks, 70000, MPI_BYTE, n % world_size, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const char* how = argv[1];
  int victim = world_rank == atoi(argv[2]);
  long word = world_rank;
  for (int n = 0; n < 3; n++) MPI_Bcast(&word, 1, MPI_LONG, n % world_size, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) printf("RESULT {\"path\": \"%s\"}\n", last_path()), fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);

  pthread_t thread;
  if (!strcmp(how, "kill")) {
    if (victim) pthread_create(&thread, NULL, killer, NULL);
    collectives_forever();
  } else if (!strcmp(how, "wait") || !strcmp(how, "abort")) {
    if (victim) {
      sleep_ms(60);
      if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 5);
      kill(getpid(), SIGKILL);
    }
    // The dead rank is the root of a call that never comes.
    MPI_Bcast(&word, 1, MPI_LONG, atoi(argv[2]), MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    fprintf(stderr, "rank %d: the collective came back without its root\n", world_rank);
    return 9;
  } else if (!strcmp(how, "exit")) {
    exit(0);
  } else if (!strcmp(how, "_exit")) {
    _exit(0);
  } else if (victim) {
    return 0;
  }
  MPI_Finalize();
  return 0;
}
