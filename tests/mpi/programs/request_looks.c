// SPDX-License-Identifier: BSD-3-Clause
// Functions that look at a request and do not end it: they tell when the data are there, of
// nonblocking and of persistent collectives, beside requests that are null, inactive, or messages.
//   request_looks all|any|some|one|mpich
//   request_looks cancel             MPI forbids it
//   RESULT {"wrong": 0, "persistent": true}, a line for each rank
// An older MPI lacks some of them. Their references are weak, so the library's are found.
#include "robust.h"

enum { kInts = 1 << 16, kRounds = 6 };

#define WEAK __attribute__((weak))
#if MPI_VERSION * 10 + MPI_SUBVERSION < 41
int MPI_Request_get_status_all(int, const MPI_Request[], int*, MPI_Status*) WEAK;
int MPI_Request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*) WEAK;
int MPI_Request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status*) WEAK;
#endif
int MPIX_Request_is_complete(MPI_Request) WEAK;
int MPIX_Stream_progress(int) WEAK;
int MPI_Bcast_init(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request*) WEAK;

static int wrong;

static void expect(int right, const char* what) {
  if (right) return;
  if (++wrong < 5) fprintf(stderr, "rank %d: %s\n", world_rank, what);
}

// Whether the only active request of four, number 2, is complete.
static int look(const char* form, MPI_Request* requests) {
  MPI_Status status[4];
  int flag = 0, index = -1, found = -1, indices[4] = {-1, -1, -1, -1};
  if (!strcmp(form, "all")) {
    MPI_Request_get_status_all(4, requests, &flag, status);
    return flag;
  }
  if (!strcmp(form, "any")) {
    MPI_Request_get_status_any(4, requests, &index, &flag, status);
    expect(!flag || index == 2, "any names another request");
    return flag;
  }
  if (!strcmp(form, "some")) {
    MPI_Request_get_status_some(4, requests, &found, indices, status);
    expect(found == 0 || (found == 1 && indices[0] == 2), "some names other requests");
    return found == 1;
  }
  if (!strcmp(form, "mpich")) {
    MPIX_Stream_progress(0x3c000000);  // MPIX_STREAM_NULL
    return MPIX_Request_is_complete(requests[2]);
  }
  MPI_Request_get_status(requests[2], &flag, status);
  return flag;
}

// The same when no request is active.
static void look_at_nothing(const char* form, MPI_Request* requests) {
  MPI_Status status[4];
  int flag = -1, index = -1, found = -1, indices[4];
  if (!strcmp(form, "any")) {
    MPI_Request_get_status_any(4, requests, &index, &flag, status);
    expect(flag && index == MPI_UNDEFINED, "any finds an active request");
  } else if (!strcmp(form, "some")) {
    MPI_Request_get_status_some(4, requests, &found, indices, status);
    expect(found == MPI_UNDEFINED, "some finds an active request");
  } else {
    expect(look(form, requests), "a request that is not active is not complete");
  }
}

static void rounds(const char* form, int* data, MPI_Request* requests, int persistent) {
  for (int round = 0; round < kRounds; round++) {
    for (int i = 0; i < kInts; i++) data[i] = world_rank == 0 ? round * 1000 + i : -1;
    if (world_rank == 0) sleep_ms(5);
    if (persistent)
      MPI_Start(&requests[2]);
    else
      MPI_Ibcast(data, kInts, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]);
    while (!look(form, requests)) {  // a job that stays here is ended from outside, with its stacks
    }
    for (int i = 0; i < kInts; i++) {
      if (data[i] == round * 1000 + i) continue;
      expect(0, "complete, and data are missing");
      break;
    }
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    look_at_nothing(form, requests);
  }
}

static void cancel(MPI_Request* request) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Start(request);
  expect(MPI_Cancel(request) != MPI_SUCCESS, "MPI_Cancel of a collective returns no error");
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  static int data[kInts];
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const char* const form = argc > 1 ? argv[1] : "one";
  // Number 0 is null, 1 an inactive receive, 3 an inactive collective if the MPI has such.
  MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Recv_init(data, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 3; i++) {  // members agree, and meet for calls with requests
    MPI_Ibcast(data, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  const int has_persistent = MPI_Bcast_init != NULL && host_function("PMPI_Bcast_init") != NULL;
  if (has_persistent) MPI_Bcast_init(data, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
  if (strcmp(form, "cancel")) rounds(form, data, requests, 0);
  if (has_persistent) {
    MPI_Bcast_init(data, kInts, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    if (!strcmp(form, "cancel")) cancel(&requests[2]);
    if (strcmp(form, "cancel")) rounds(form, data, requests, 1);
    MPI_Request_free(&requests[2]);
    MPI_Request_free(&requests[3]);
  }
  MPI_Request_free(&requests[1]);
  printf("RESULT {\"wrong\": %d, \"persistent\": %s}\n", wrong, has_persistent ? "true" : "false");
  MPI_Finalize();
  return 0;
}
