// SPDX-License-Identifier: BSD-3-Clause
// One Bcast of 2237 bytes from rank 0. It is so long that memcpy copies it.
#include "robust.h"

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  static unsigned char data[2237];
  if (world_rank == 0) fill(data, 1, sizeof data);
  MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_WORLD);
  printf("RESULT {\"rank\": %d, \"right\": %s}\n", world_rank, mismatch(data, 1, sizeof data) < 0 ? "true" : "false");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
