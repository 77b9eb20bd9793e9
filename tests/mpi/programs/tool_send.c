// SPDX-License-Identifier: BSD-3-Clause
// With -DTOOL: a tool that sees MPI_Send and nothing else; with -DTOOL_NEXT as well it goes on by
// dlsym(RTLD_NEXT). Without: a program that sends five messages by the MPI_ name and two by the
// PMPI_ name, which a tool does not see.
//   RESULT {"seen": 5}
#include "robust.h"

#ifdef TOOL
static int seen;
int tool_seen(void) { return seen; }

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  seen++;
#ifdef TOOL_NEXT
  static __typeof__(&PMPI_Send) next;
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "MPI_Send");
  return next(buffer, count, type, peer, tag, comm);
#else
  return PMPI_Send(buffer, count, type, peer, tag, comm);
#endif
}
#else
int main(int argc, char** argv) {
  int (*tool_seen)(void) = NULL;
  start(&argc, &argv, MPI_THREAD_SINGLE);
  *(void**)&tool_seen = dlsym(RTLD_DEFAULT, "tool_seen");
  int data = 0;
  for (int i = 0; i < 7; i++) {
    MPI_Request request;
    MPI_Irecv(&data, 1, MPI_INT, 0, i, MPI_COMM_SELF, &request);
    (i < 5 ? MPI_Send : PMPI_Send)(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(data == i, "message %d is %d", i, data);
  }
  printf("RESULT {\"seen\": %d}\n", tool_seen());
  MPI_Finalize();
  return 0;
}
#endif
