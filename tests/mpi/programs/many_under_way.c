// SPDX-License-Identifier: BSD-3-Clause
// One long Ialltoall on each of many communicators is under way at once, or one persistent Alltoall
// for each of many buffers. Ranks start them in different orders. Every value is checked.
//   many_under_way (nonblocking|persistent) CALLS
#include "robust.h"

enum { kWords = 20000, kRounds = 3 };

static int word(int call, int round, int from, int to, int i) {
  return (((call * 7 + round) * 13 + from) * 11 + to) * kWords + i;
}

#if MPI_VERSION < 4 && !(defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)  // no persistent collectives
#define MPI_Alltoall_init(...) CHECK(0, "MPI_Alltoall_init is missing")
#endif

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const int calls = atoi(argv[2]), persistent = !strcmp(argv[1], "persistent"), size = world_size;
  const size_t bytes = sizeof(int) * kWords * (size_t)size;
  MPI_Comm* comms = malloc(sizeof *comms * (size_t)calls);
  MPI_Request* requests = malloc(sizeof *requests * (size_t)calls);
  int **send = malloc(sizeof *send * (size_t)calls), **receive = malloc(sizeof *receive * (size_t)calls);
  for (int c = 0; c < calls; c++) {
    send[c] = malloc(bytes);
    receive[c] = malloc(bytes);
    comms[c] = MPI_COMM_WORLD;
    if (!persistent) MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    for (int i = 0; i < 3; i++) MPI_Barrier(comms[c]);
    MPI_Ibarrier(comms[c], &requests[c]);
    MPI_Wait(&requests[c], MPI_STATUS_IGNORE);
    MPI_Barrier(comms[c]);
    if (persistent)
      MPI_Alltoall_init(send[c], kWords, MPI_INT, receive[c], kWords, MPI_INT, comms[c], MPI_INFO_NULL, &requests[c]);
  }
  for (int round = 0; round < kRounds; round++) {
    for (int k = 0; k < calls; k++) {
      const int c = (k * (world_rank % 2 ? calls - 1 : 1) + world_rank) % calls;
      for (int to = 0; to < size; to++)
        for (int i = 0; i < kWords; i++) send[c][to * kWords + i] = word(c, round, world_rank, to, i);
      memset(receive[c], 0xff, bytes);
      if (persistent)
        MPI_Start(&requests[c]);
      else
        MPI_Ialltoall(send[c], kWords, MPI_INT, receive[c], kWords, MPI_INT, comms[c], &requests[c]);
    }
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
    for (int c = 0; c < calls; c++)
      for (int from = 0; from < size; from++)
        for (int i = 0; i < kWords; i++)
          CHECK(receive[c][from * kWords + i] == word(c, round, from, world_rank, i), "call %d round %d: word %d of %d",
                c, round, i, from);
  }
  for (int c = 0; c < calls; c++) {
    if (persistent) MPI_Request_free(&requests[c]);
    if (!persistent) MPI_Comm_free(&comms[c]);
    free(send[c]);
    free(receive[c]);
  }
  free(comms);
  free(requests);
  free(send);
  free(receive);
  printf("RESULT {\"wrong\": 0}\n");
  MPI_Finalize();
  return 0;
}
