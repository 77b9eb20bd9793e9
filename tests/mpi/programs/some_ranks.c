// SPDX-License-Identifier: BSD-3-Clause
// Collectives of a job of which some ranks may lack the library: right data, on whatever way.
//   some_ranks [helpers]    helpers: each rank has children before MPI_Init. One lives on, and
//                           one executes another program
// Prints one RESULT per rank: how many values were wrong, and the path of the last call.
#include <signal.h>
#include <sys/wait.h>

#include "robust.h"

// A child that tools and run-time systems may have: it was forked after the first MPI call.
static pid_t helpers(void) {
  int initialized;
  MPI_Initialized(&initialized);
  const pid_t lives = fork();
  if (lives == 0) {
    for (;;) pause();
  }
  const pid_t executes = fork();
  if (executes == 0) {
    execlp("true", "true", NULL);
    _exit(1);
  }
  waitpid(executes, NULL, 0);
  return lives;
}

int main(int argc, char** argv) {
  int in[12], out[12], wrong = 0;
  const pid_t child = argc > 1 ? helpers() : 0;
  start(&argc, &argv, MPI_THREAD_SINGLE);
  // The program's first call looks like the library's own first exchange: 12 numbers and their
  // minimum.
  for (int i = 0; i < 12; i++) in[i] = 100 + i, out[i] = -1;
  MPI_Allreduce(in, out, 12, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  for (int i = 0; i < 12; i++) wrong += out[i] != 100 + i;
  for (int root = 0; root < world_size; root++) {
    int value = world_rank == root ? 7 + root : -1;
    MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
    wrong += value != 7 + root;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  printf("RESULT {\"rank\": %d, \"size\": %d, \"wrong\": %d, \"path\": \"%s\"}\n", world_rank, world_size, wrong,
         last_path());
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  MPI_Finalize();
  return wrong != 0;
}
