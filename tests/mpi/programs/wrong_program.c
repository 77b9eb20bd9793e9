// SPDX-License-Identifier: BSD-3-Clause
// Programs that do what MPI forbids, or that stall: wrong_program KIND. The last rank is the odd
// one out.
//   late        comes 4 s late to the second Barrier (no error, only slow)
//   collective  calls Bcast where the others call Barrier
//   killed      is killed before a Barrier; the others print the class of the error they get, and
//               after how long
//   lost        is killed before the second of two Alltoalls of 1 MiB a block; likewise
//   exits       leaves without MPI_Finalize before a Barrier; likewise
//   finalizes   calls MPI_Finalize before a Barrier; likewise
//   elsewhere   waits in a Barrier of a duplicate, while the others wait in one of MPI_COMM_WORLD;
//               gives up after 6 s
//   computes    computes for ever after the first Barrier of MPI_COMM_WORLD, while the others wait
//               for its data in a Bcast
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave(const char* kind) {
  if (strcmp(kind, "killed") == 0 || strcmp(kind, "lost") == 0) kill(getpid(), SIGKILL);
  if (strcmp(kind, "exits") == 0) _exit(0);
  alarm(20);  // hosts wait for each other here
  MPI_Finalize();
  exit(0);
}

static int long_alltoall(int size) {
  const int block = 1 << 20;
  char* const send = calloc(size, block);
  char* const receive = calloc(size, block);
  const int code = MPI_Alltoall(send, block, MPI_BYTE, receive, block, MPI_BYTE, MPI_COMM_WORLD);
  volatile char sum = 0;
  for (long i = 0; i < (long)size * block; i += 4096) sum += receive[i];
  free(send);
  free(receive);
  return code;
}

static void wait_for_who_has_left(const char* kind, int rank, int size) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const double began = MPI_Wtime();
  const int code = strcmp(kind, "lost") == 0 ? long_alltoall(size) : MPI_Barrier(MPI_COMM_WORLD);
  int class = -1, length = 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &length);
  printf("RESULT {\"rank\": %d, \"other\": %d, \"text\": \"%s\", \"seconds\": %.2f}\n", rank, class == MPI_ERR_OTHER,
         text, MPI_Wtime() - began);
  fflush(stdout);
  if (strcmp(kind, "finalizes") == 0) leave(kind);
  usleep(300000);  // launchers end all ranks with the first
  _exit(0);        // MPI_Finalize would wait for the rank that has left
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* kind = argc > 1 ? argv[1] : "";
  const int odd = rank == size - 1;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(other);
  MPI_Barrier(MPI_COMM_WORLD);
  char bytes[8] = {0};
  if (strcmp(kind, "late") == 0) {
    if (odd) sleep(4);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(kind, "collective") == 0) {
    if (odd)
      MPI_Bcast(bytes, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
    else
      MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(kind, "killed") == 0 || strcmp(kind, "lost") == 0 || strcmp(kind, "exits") == 0 ||
             strcmp(kind, "finalizes") == 0) {
    if (strcmp(kind, "lost") == 0) {
      long_alltoall(size);
      MPI_Barrier(MPI_COMM_WORLD);  // all have all data
    }
    if (odd) leave(kind);
    wait_for_who_has_left(kind, rank, size);
  } else if (strcmp(kind, "elsewhere") == 0) {
    alarm(6);  // nothing else ends this
    MPI_Barrier(odd ? other : MPI_COMM_WORLD);
  } else if (strcmp(kind, "computes") == 0) {
    volatile unsigned long steps = 0;
    while (odd) steps++;
    MPI_Bcast(bytes, 8, MPI_BYTE, size - 1, MPI_COMM_WORLD);
  } else {
    fprintf(stderr, "wrong_program: unknown kind '%s'\n", kind);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_free(&other);
  printf("RESULT {\"rank\": %d}\n", rank);
  MPI_Finalize();
  return 0;
}
