// SPDX-License-Identifier: BSD-3-Clause
// Many epochs of sessions, one after another. Each has a communicator, calls, and a datatype.
//   session_cycles EPOCHS
// RESULT {"epochs": 50, "wrong": 0, "path": "inline"}
#include "robust.h"

static int epoch(int number) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Datatype odd;
  int wrong = 0, one = 1, sum = 0, words[200];
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "epoch", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_rank(comm, &world_rank);
  MPI_Comm_size(comm, &world_size);
  for (int i = 0; i < 6; i++) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Type_vector(100, 1, 2, MPI_INT, &odd);
  MPI_Type_commit(&odd);
  for (int turn = 0; turn < 3; turn++) {
    for (int i = 0; i < 200; i++) words[i] = world_rank == 0 ? number + turn + i : -1;
    MPI_Bcast(words, 1, odd, 0, comm);
    for (int i = 0; i < 200; i += 2) wrong += words[i] != number + turn + i;
  }
  MPI_Type_free(&odd);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  return wrong + (sum != world_size);
}

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? atoi(argv[1]) : 10;
  int wrong = 0;
  for (int k = 0; k < epochs; k++) wrong += epoch(k);
  printf("RESULT {\"epochs\": %d, \"wrong\": %d, \"path\": \"%s\"}\n", epochs, wrong, last_path());
  return 0;
}
