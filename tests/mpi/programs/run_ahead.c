// SPDX-License-Identifier: BSD-3-Clause
// Collectives of a communicator before its members have agreed on what serves it.
//   run_ahead ahead N       the root makes N Bcasts on a duplicate and then sends; the others
//                           receive first: unsafe by the standard, and common
//   run_ahead served N      N Allreduces on a duplicate, N on MPI_COMM_WORLD
//   run_ahead rooted N      N Bcasts on a duplicate, from each rank in turn
//   run_ahead refused N     the last rank makes three calls that the MPI refuses; then N Allreduces
//   run_ahead truncated N   the last rank's buffer is too short for the first Bcast; then N
//                           Allreduces
//   run_ahead several N     N duplicates, used in turns
//   run_ahead threads N     two threads, each with N Allreduces on a duplicate of its own
// Prints RESULT with the number of wrong values, for each rank.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, n, wrong;

static void sum(MPI_Comm comm, int k) {
  int mine = rank + k, all = -1;
  if (MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS || all != size * (size - 1) / 2 + size * k)
    ++wrong;
}

static void from(MPI_Comm comm, int root, int k) {
  int word = rank == root ? 1000 * root + k : -1;
  if (MPI_Bcast(&word, 1, MPI_INT, root, comm) != MPI_SUCCESS || word != 1000 * root + k) ++wrong;
}

static void ahead(MPI_Comm comm) {
  int x = 5;
  if (rank == 0) {
    for (int k = 0; k < n; ++k) from(comm, 0, k);
    for (int r = 1; r < size; ++r) MPI_Send(&x, 1, MPI_INT, r, 1, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = 0; k < n; ++k) from(comm, 0, k);
  }
}

static void refused(MPI_Comm comm) {
  int word = 0, all = 0;
  for (int k = 0; k < 3 && rank == size - 1; ++k) {
    const int code = k == 0 ? MPI_Allreduce(&word, &all, -1, MPI_INT, MPI_SUM, comm)
                            : MPI_Bcast(&word, 1, MPI_INT, k == 1 ? size : -5, comm);
    if (code == MPI_SUCCESS) ++wrong;
  }
}

static void truncated(MPI_Comm comm) {
  int words[8] = {0};
  MPI_Bcast(words, rank == size - 1 ? 4 : 8, MPI_INT, 0, comm);  // an error there, on most MPIs
}

static void* sums(void* comm) {
  for (int k = 0; k < n; ++k) sum(*(MPI_Comm*)comm, k);
  return NULL;
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "served";
  const int threads = strcmp(what, "threads") == 0;
  int provided = 0;
  n = argc > 2 ? atoi(argv[2]) : 10;
  alarm(20);
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm comm, other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (strcmp(what, "ahead") == 0) ahead(comm);
  if (strcmp(what, "refused") == 0) refused(comm);
  if (strcmp(what, "truncated") == 0) truncated(comm);
  if (strcmp(what, "rooted") == 0) {
    for (int k = 0; k < n; ++k) from(comm, k % size, k);
  } else if (threads && provided == MPI_THREAD_MULTIPLE) {
    pthread_t thread;
    pthread_create(&thread, NULL, sums, &other);
    sums(&comm);
    pthread_join(thread, NULL);
  } else if (strcmp(what, "several") == 0) {
    MPI_Comm many[64];
    for (int c = 0; c < n && c < 64; ++c) MPI_Comm_dup(c % 2 ? comm : MPI_COMM_WORLD, &many[c]);
    for (int k = 0; k < 6; ++k) {
      for (int c = 0; c < n && c < 64; ++c) from(many[c], (c + k) % size, k), sum(many[c], k);
    }
    for (int c = 0; c < n && c < 64; ++c) MPI_Comm_free(&many[c]);
  } else {
    for (int k = 0; k < n && strcmp(what, "ahead") != 0; ++k) sum(comm, k);
    for (int k = 0; k < n && strcmp(what, "served") == 0; ++k) sum(MPI_COMM_WORLD, k);
  }
  printf("RESULT {\"rank\": %d, \"wrong\": %d, \"threads\": %d}\n", rank, wrong, provided == MPI_THREAD_MULTIPLE);
  fflush(stdout);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
  MPI_Finalize();
  return 0;
}
