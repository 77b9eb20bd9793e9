// SPDX-License-Identifier: BSD-3-Clause
// Several threads per rank, each with communicators of its own, are in collectives at the same
// time. Threads start at other moments on other ranks. Two more threads create, use and free
// communicators (one after another per parent).
//   thread_many [threads [rounds]]
#include <pthread.h>

#include "robust.h"

typedef struct {
  int id, rounds, churn;
  MPI_Comm comm;
  const char* path;
} Worker;

static void work(MPI_Comm comm, unsigned* random, int id, int round) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  static const size_t kSizes[] = {0, 4, 90, 3000, 70000, 300000};
  size_t bytes = kSizes[(id + round) % 6];
  uint64_t seed = (uint64_t)id * 1000 + (uint64_t)round;
  int root = (id + round) % size;
  char* b = malloc(bytes * (size_t)size + 1);
  if (rand_r(random) % 4 == 0) usleep((useconds_t)(rand_r(random) % 300));
  switch (round % 4) {
    case 0:
      if (rank == root) fill(b, seed, bytes);
      MPI_Bcast(b, (int)bytes, MPI_BYTE, root, comm);
      CHECK(mismatch(b, seed, bytes) < 0, "thread %d round %d: bcast of %zu", id, round, bytes);
      break;
    case 1:
      fill(b + bytes * (size_t)rank, seed + (uint64_t)rank, bytes);
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, b, (int)bytes, MPI_BYTE, comm);
      for (int r = 0; r < size; r++)
        CHECK(mismatch(b + bytes * (size_t)r, seed + (uint64_t)r, bytes) < 0, "thread %d round %d: allgather", id,
              round);
      break;
    case 2: {
      char* mine = malloc(bytes + 1);
      fill(mine, seed + (uint64_t)rank, bytes);
      MPI_Gather(mine, (int)bytes, MPI_BYTE, b, (int)bytes, MPI_BYTE, root, comm);
      for (int r = 0; rank == root && r < size; r++)
        CHECK(mismatch(b + bytes * (size_t)r, seed + (uint64_t)r, bytes) < 0, "thread %d round %d: gather", id, round);
      memset(mine, 0, bytes);
      MPI_Scatter(b, (int)bytes, MPI_BYTE, mine, (int)bytes, MPI_BYTE, root, comm);
      CHECK(mismatch(mine, seed + (uint64_t)rank, bytes) < 0, "thread %d round %d: scatter", id, round);
      free(mine);
      break;
    }
    default: MPI_Barrier(comm);
  }
  free(b);
}

static void* run(void* argument) {
  Worker* w = argument;
  unsigned random = (unsigned)(world_rank * 7919 + w->id);
  for (int round = 0; round < w->rounds; round++) {
    MPI_Comm comm = w->comm;
    if (w->churn) MPI_Comm_split(w->comm, 0, world_rank, &comm);
    work(comm, &random, w->id, round);
    w->path = last_path();
    if (w->churn) MPI_Comm_free(&comm);
  }
  return NULL;
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_MULTIPLE);
  int threads = argc > 1 ? atoi(argv[1]) : 4, rounds = argc > 2 ? atoi(argv[2]) : 200;
  Worker w[32];
  pthread_t id[32];
  for (int t = 0; t < threads; t++) {
    w[t] = (Worker){t, rounds, t % 4 == 3, MPI_COMM_NULL, "none"};
    MPI_Comm_dup(MPI_COMM_WORLD, &w[t].comm);
  }
  for (int t = 0; t < threads; t++) {
    int first = (t + world_rank) % threads;  // another order on every rank
    pthread_create(&id[first], NULL, run, &w[first]);
  }
  for (int t = 0; t < threads; t++) pthread_join(id[t], NULL);
  if (world_rank == 0) printf("RESULT {\"path\": \"%s\"}\n", w[0].path);
  for (int t = 0; t < threads; t++) MPI_Comm_free(&w[t].comm);
  MPI_Finalize();
  return 0;
}
