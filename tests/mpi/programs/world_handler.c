// SPDX-License-Identifier: BSD-3-Clause
// A program that sets an error handler on MPI_COMM_WORLD alone. Calls with several requests have no
// communicator whose handler hears of an error, and each MPI chooses one.
//
//   world_handler FORM     all, some, testall, testsome
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* form = argc > 1 ? argv[1] : "all";
  int rank = 0, in[100], out[100] = {0}, sum = 0, code = MPI_SUCCESS, class = 0;
  int done = 0, indices[2];
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Datatype pair;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

  // What makes Stretto ask the MPI whether it refuses a call.
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Bcast(in, 1, pair, 0, MPI_COMM_WORLD);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  MPI_Allreduce(&rank, &sum, 1, MPI_BYTE, MPI_SUM, MPI_COMM_WORLD);

  const int peer = rank ^ 1;
  MPI_Irecv(in, 50, MPI_INT, peer, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, 100, MPI_INT, peer, 7, MPI_COMM_WORLD, &requests[1]);
  if (strcmp(form, "all") == 0) code = MPI_Waitall(2, requests, statuses);
  for (int left = 2; strcmp(form, "some") == 0 && left > 0 && code == MPI_SUCCESS; left -= done)
    code = MPI_Waitsome(2, requests, &done, indices, statuses);
  while (strcmp(form, "testall") == 0 && done == 0 && code == MPI_SUCCESS)
    code = MPI_Testall(2, requests, &done, statuses);
  for (int left = 2; strcmp(form, "testsome") == 0 && left > 0 && code == MPI_SUCCESS; left -= done)
    code = MPI_Testsome(2, requests, &done, indices, statuses);
  MPI_Error_class(code, &class);
  printf("RESULT {\"in_status\": %d}\n", class == MPI_ERR_IN_STATUS);
  MPI_Type_free(&pair);
  MPI_Finalize();
  return 0;
}
