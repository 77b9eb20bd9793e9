// SPDX-License-Identifier: BSD-3-Clause
// Sends that are cancelled after a collective in which their rank has waited for a late one.
//   cancelled_sends TURNS
// RESULT {"cancelled": 0, "sent": 24}, of rank 0
#include "robust.h"

enum { kLengths = 4 };
static const int kBytes[kLengths] = {1, 100, 10000, 1000000};

// The receive is posted late, so that a long send is still under way when it is cancelled.
static int send_and_cancel(const char* data, int bytes, int target) {
  MPI_Request request;
  MPI_Status status;
  int cancelled = 0;
  MPI_Isend(data, bytes, MPI_BYTE, target, 1, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  MPI_Send(&cancelled, 1, MPI_INT, target, 2, MPI_COMM_WORLD);
  return cancelled;
}

static void receive(char* data, int bytes, uint64_t seed) {
  MPI_Request request;
  int cancelled = 0;
  sleep_ms(5);
  memset(data, 0, (size_t)bytes);
  MPI_Irecv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(&cancelled, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (cancelled) MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(cancelled || mismatch(data, seed, (size_t)bytes) < 0, "wrong data in %d bytes", bytes);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const int turns = atoi(argv[1]), last = world_size - 1;
  char* const data = malloc((size_t)kBytes[kLengths - 1]);
  int count[2] = {0, 0};
  for (int i = 0; i < 5; i++) MPI_Barrier(MPI_COMM_WORLD);  // the members agree
  for (int turn = 0; turn < turns; turn++) {
    for (int k = 0; k < kLengths; k++) {
      if (world_rank == last) sleep_ms(3);
      MPI_Barrier(MPI_COMM_WORLD);
      fill(data, (uint64_t)turn, (size_t)kBytes[k]);
      if (world_rank == 0) count[send_and_cancel(data, kBytes[k], last)]++;
      if (world_rank == last) receive(data, kBytes[k], (uint64_t)turn);
    }
  }
  if (world_rank == 0) printf("RESULT {\"cancelled\": %d, \"sent\": %d}\n", count[1], count[0]);
  free(data);
  MPI_Finalize();
  return 0;
}
