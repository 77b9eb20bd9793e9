// SPDX-License-Identifier: BSD-3-Clause
// A profiling tool as PMPI tools are: it counts the program's calls and prints the count at
// MPI_Finalize. It goes on by the PMPI_ name (Score-P, mpiP), or with -DTOOL_NEXT by
// dlsym(RTLD_NEXT) (Darshan).
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#ifdef TOOL_NEXT
#define GO_ON(name, ...) ((__typeof__(&PMPI_##name))next("PMPI_" #name))(__VA_ARGS__)
static void* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) fprintf(stderr, "tool: no %s behind me\n", name);
  return found;
}
#else
#define GO_ON(name, ...) PMPI_##name(__VA_ARGS__)
#endif

static long barriers, bcasts, gathervs, scattervs, allgathers, allgathervs, reductions;

int MPI_Barrier(MPI_Comm c) {
  barriers++;
  return GO_ON(Barrier, c);
}
int MPI_Bcast(void* b, int n, MPI_Datatype t, int root, MPI_Comm c) {
  bcasts++;
  return GO_ON(Bcast, b, n, t, root, c);
}
int MPI_Gatherv(const void* s, int n, MPI_Datatype t, void* r, const int* counts, const int* displs, MPI_Datatype u,
                int root, MPI_Comm c) {
  gathervs++;
  return GO_ON(Gatherv, s, n, t, r, counts, displs, u, root, c);
}
int MPI_Scatterv(const void* s, const int* counts, const int* displs, MPI_Datatype t, void* r, int n, MPI_Datatype u,
                 int root, MPI_Comm c) {
  scattervs++;
  return GO_ON(Scatterv, s, counts, displs, t, r, n, u, root, c);
}
int MPI_Allgather(const void* s, int n, MPI_Datatype t, void* r, int m, MPI_Datatype u, MPI_Comm c) {
  allgathers++;
  return GO_ON(Allgather, s, n, t, r, m, u, c);
}
int MPI_Allgatherv(const void* s, int n, MPI_Datatype t, void* r, const int* counts, const int* displs, MPI_Datatype u,
                   MPI_Comm c) {
  allgathervs++;
  return GO_ON(Allgatherv, s, n, t, r, counts, displs, u, c);
}
int MPI_Allreduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  reductions++;
  return GO_ON(Allreduce, s, r, n, t, op, c);
}
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf(
      "TOOL {\"rank\": %d, \"barrier\": %ld, \"bcast\": %ld, \"gatherv\": %ld, \"scatterv\": %ld, \"allgather\": %ld, "
      "\"allgatherv\": %ld, \"allreduce\": %ld}\n",
      rank, barriers, bcasts, gathervs, scattervs, allgathers, allgathervs, reductions);
  fflush(stdout);
  return GO_ON(Finalize);
}
