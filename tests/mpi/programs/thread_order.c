// SPDX-License-Identifier: BSD-3-Clause
// Two communicators, two orders. Rank 0 broadcasts on X and on Y from two threads at the same time.
// Rank 1 takes Y first and then X, in one thread. Whatever X's Bcast holds of rank 0's memory, Y's
// must get through.
#include <pthread.h>

#include "robust.h"

enum { kBytes = 6 << 20, kRounds = 20 };
static MPI_Comm x, y;
static char *x_buffer, *y_buffer;
static const char* x_path = "none";

static void* x_thread(void* round) {
  MPI_Bcast(x_buffer, kBytes, MPI_BYTE, 0, x);
  x_path = last_path();
  return round;
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_MULTIPLE);
  MPI_Comm_dup(MPI_COMM_WORLD, &x);
  MPI_Comm_dup(MPI_COMM_WORLD, &y);
  x_buffer = malloc(kBytes), y_buffer = malloc(kBytes);
  MPI_Barrier(x);
  MPI_Barrier(y);
  for (uint64_t round = 0; round < kRounds; round++) {
    memset(x_buffer, 0, kBytes), memset(y_buffer, 0, kBytes);
    if (world_rank == 0) {
      fill(x_buffer, 2 * round, kBytes), fill(y_buffer, 2 * round + 1, kBytes);
      pthread_t thread;
      pthread_create(&thread, NULL, x_thread, NULL);
      if (round % 2) sleep_ms(3);  // X has filled what it can before Y begins
      MPI_Bcast(y_buffer, kBytes, MPI_BYTE, 0, y);
      pthread_join(thread, NULL);
    } else {
      MPI_Bcast(y_buffer, kBytes, MPI_BYTE, 0, y);
      MPI_Bcast(x_buffer, kBytes, MPI_BYTE, 0, x);
    }
    CHECK(mismatch(x_buffer, 2 * round, kBytes) < 0, "X in round %d", (int)round);
    CHECK(mismatch(y_buffer, 2 * round + 1, kBytes) < 0, "Y in round %d", (int)round);
  }
  if (world_rank == 0) printf("RESULT {\"path\": \"%s\"}\n", x_path);
  MPI_Comm_free(&x);
  MPI_Comm_free(&y);
  MPI_Finalize();
  return 0;
}
