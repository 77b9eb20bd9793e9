// SPDX-License-Identifier: BSD-3-Clause
// touch BYTES CALLS: Alltoalls of BYTES for each rank, whose data are all read at once. Rank 0 says
// how many of the calls returned early, and how many of the last five.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank, size, early = 0, early_at_last = 0;
  const int bytes = argc > 2 ? atoi(argv[1]) : 0, calls = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* (*last_path)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "stretto_last_path");
  const size_t all = (size_t)bytes * (size_t)size;
  char *out = malloc(all), *in = malloc(all);
  for (int call = 0; call < calls; ++call) {
    memset(out, rank + call, all);
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    const int is_early = last_path != NULL && strcmp(last_path(), "deferred") == 0;
    early += is_early;
    if (call >= calls - 5) early_at_last += is_early;
    for (size_t i = all; i-- > 0;) {
      if (in[i] != (char)((int)(i / (size_t)bytes) + call)) MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  if (rank == 0) printf("RESULT {\"early\": %d, \"early_at_last\": %d}\n", early, early_at_last);
  free(out);
  free(in);
  MPI_Finalize();
}
