// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives.
//   persistent random SEED N   N starts of requests of any kind. Each rank has its own order of
//                              starts. Other calls, and persistent messages, come in between
//   persistent freed           communicator, datatype and operation are freed before the starts
//   persistent errors          wrong arguments, starts of active requests, late errors
// Prints RESULT with the number of wrong values, for each rank.
#include "calls_with_requests.h"

enum { kRequests = 8, kAll = kRequests + 3 };

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

static void shuffle(int* order, int n, unsigned long long* state) {
  for (int i = 0; i < n; ++i) order[i] = i;
  for (int i = n - 1; i > 0; --i) {
    const int j = (int)(next(state) % (unsigned)(i + 1)), one = order[i];
    order[i] = order[j];
    order[j] = one;
  }
}

// Starts those of `requests` that are wanted, in this rank's own order.
static void start_some(MPI_Request* requests, const int* wanted, unsigned long long* own) {
  int order[kAll], places[kAll], n = 0;
  MPI_Request some[kAll];
  shuffle(order, kRequests + 2, own);
  if (next(own) % 2) {
    for (int i = 0; i < kRequests + 2; ++i) {
      if (!wanted[order[i]]) continue;
      places[n] = order[i];
      some[n++] = requests[order[i]];
    }
    MPI_Startall(n, some);
    for (int i = 0; i < n; ++i) requests[places[i]] = some[i];
    return;
  }
  for (int i = 0; i < kRequests + 2; ++i) {
    if (!wanted[order[i]]) continue;
    MPI_Start(&requests[order[i]]);
    if (next(own) % 3 == 0) end_some(requests, kAll, next(own) % 4, 0);
  }
}

static void one_round(struct Call* calls, MPI_Request* requests, int k, unsigned long long* alike,
                      unsigned long long* own, MPI_Comm comm, int* token, const int* got) {
  int wanted[kAll];
  struct Call between = draw(alike, k);
  for (int j = 0; j < kRequests; ++j) wanted[j] = next(alike) % 4 != 0;
  wanted[kRequests] = wanted[kRequests + 1] = 1;
  for (int j = 0; j < kRequests; ++j) fill(&calls[j], k + j);
  *token = k;
  post(&between, comm);
  requests[kRequests + 2] = between.request;
  start_some(requests, wanted, own);
  int mine = rank, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm);
  expect(all == size * (size - 1) / 2, "blocking call", k);
  for (int turns = (int)(next(own) % 4); turns > 0; --turns) end_some(requests, kAll, next(own), 0);
  end_some(requests, kAll, next(own), 1);
  expect(*got == k, "message", k);
  for (int j = 0; j < kRequests; ++j) {
    int flag = 0;
    if (wanted[j]) compare(&calls[j]);
    expect(requests[j] != MPI_REQUEST_NULL, "handle", j);
    MPI_Test(&requests[j], &flag, MPI_STATUS_IGNORE);
    expect(flag, "inactive request", j);
  }
  expect(requests[kRequests + 2] == MPI_REQUEST_NULL, "handle", kRequests);
  compare(&between);
  give_back_room(&between);
}

static void random_starts(unsigned seed, int count) {
  MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  for (int i = 0; i < 5; ++i) MPI_Barrier(comms[1]), MPI_Barrier(comms[0]);
  unsigned long long alike = seed, own = seed * 97 + (unsigned)rank;
  for (int k = 0; k < count;) {
    struct Call calls[kRequests];
    MPI_Request requests[kAll];
    int token = -1, got = -1;
    for (int j = 0; j < kRequests; ++j) {
      calls[j] = draw(&alike, k);
      make_room(&calls[j]);
      make(&calls[j], comms[next(&alike) % 2], 1);
      requests[j] = calls[j].request;
    }
    MPI_Recv_init(&got, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &requests[kRequests]);
    MPI_Send_init(&token, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &requests[kRequests + 1]);
    for (int round = 0; round < 4; ++round, k += kRequests)
      one_round(calls, requests, k, &alike, &own, comms[next(&alike) % 2], &token, &got);
    for (int j = 0; j < kRequests + 2; ++j) {
      MPI_Request_free(&requests[j]);
      expect(requests[j] == MPI_REQUEST_NULL, "freed handle", j);
    }
    for (int j = 0; j < kRequests; ++j) give_back_room(&calls[j]);
  }
  MPI_Comm_free(&comms[1]);
}

static void freed(void) {
  for (int turn = 0; turn < 5; ++turn) {
    MPI_Comm comm;
    MPI_Op op;
    MPI_Datatype three;
    MPI_Request requests[3];
    int words[300], mine[3], all[3], sent[48], received[48], counts[16], displs[16];
    MPI_Datatype types[16];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 5; ++i) MPI_Barrier(comm);
    MPI_Op_create(user_sum, 0, &op);
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_commit(&three);
    MPI_Bcast_init(words, 100, three, turn % size, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(mine, all, 3, MPI_INT, op, comm, MPI_INFO_NULL, &requests[1]);
    for (int p = 0; p < size; ++p) counts[p] = 1, displs[p] = 3 * p * (int)sizeof(int), types[p] = three;
    MPI_Alltoallw_init(sent, counts, displs, types, received, counts, displs, types, comm, MPI_INFO_NULL, &requests[2]);
    MPI_Comm_free(&comm);
    MPI_Type_free(&three);
    MPI_Op_free(&op);
    expect(comm == MPI_COMM_NULL && three == MPI_DATATYPE_NULL && op == MPI_OP_NULL, "handles", turn);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 300; ++i) words[i] = rank == turn % size ? round + i : -1;
      for (int i = 0; i < 3; ++i) mine[i] = rank + i, all[i] = -1;
      for (int i = 0; i < 3 * size; ++i) sent[i] = rank * 1000 + round * 100 + i, received[i] = -1;
      MPI_Startall(3, requests);
      MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
      for (int i = 0; i < 3 * size; ++i)
        expect(received[i] == i / 3 * 1000 + round * 100 + 3 * rank + i % 3, "element of an Alltoallw", i);
      expect(words[299] == round + 299 && all[2] == size * (size - 1) / 2 + 2 * size, "round", round);
    }
    for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
  }
}

static int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static void errors(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  int two[2] = {rank, rank}, words[64] = {0}, counts[16], displs[16];
  for (int p = 0; p < size; ++p) counts[p] = p == 1 ? 1 : 2, displs[p] = 2 * p;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  expect(class_of(MPI_Bcast_init(words, -1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request)) == MPI_ERR_COUNT,
         "count", 0);
  MPI_Gatherv_init(two, 2, MPI_INT, words, counts, displs, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 3; ++round) {
    counts[1] = round == 1 ? 2 : 1;  // MPI forbids it. Stretto reads them at each start
    expect(MPI_Start(&request) == MPI_SUCCESS, "start", round);
    expect(class_of(MPI_Start(&request)) == MPI_ERR_REQUEST, "second start", round);
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE), late = rank == 0 && round != 1;
    expect(class_of(code) == (late ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "wait", round);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "wait for nothing", round);
  }
  MPI_Request_free(&request);
}

#else
static void random_starts(unsigned seed, int count) { (void)(seed + (unsigned)count); }
static void freed(void) {}
static void errors(void) {}
#endif

int main(int argc, char** argv) {
  const char* what = argv[1];
  MPI_Init(&argc, &argv);
  caller = pthread_self();
  random_begin();
  if (!strcmp(what, "random")) random_starts((unsigned)atoi(argv[2]), atoi(argv[3]));
  if (!strcmp(what, "freed")) freed();
  if (!strcmp(what, "errors")) errors();
  random_end();
  printf("RESULT {\"rank\": %d, \"wrong\": %d, \"persistent\": %d}\n", rank, wrong, kHasPersistent);
  MPI_Finalize();
  return 0;
}
