// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking collectives.
//   nonblocking random SEED N   N calls of any kind, on MPI_COMM_WORLD and a duplicate. Blocking
//                               calls and messages come in between, and requests end by any wait
//                               or test, together with requests of messages
//   nonblocking ahead           a root waits for others of another communicator, then sends what a
//                               late rank waits for before it makes its call
//   nonblocking held            ranks wait inside the MPI, while others wait for a call
//   nonblocking freed           communicators are freed while calls on them are outstanding
//   nonblocking threads N       two threads with N calls each, on communicators of their own
//   nonblocking refused         a rank's only calls with requests are wrong, and return errors
//   nonblocking errors          wrong arguments, and messages that are too long
// Prints RESULT with the number of wrong values, for each rank.
#include "calls_with_requests.h"

static void random_calls(unsigned seed, int count) {
  MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  for (int i = 0; i < 5; ++i) MPI_Barrier(comms[1]), MPI_Barrier(comms[0]);
  unsigned long long alike = seed, own = seed * 97 + (unsigned)rank;
  for (int k = 0; k < count;) {
    struct Call calls[kMost];
    MPI_Request requests[kMost + 2];
    const int outstanding = 1 + (int)(next(&alike) % (kMost - 1));
    int token = k, got = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Irecv(&got, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[outstanding]);
    for (int j = 0; j < outstanding; ++j, ++k) {
      calls[j] = draw(&alike, k);
      post(&calls[j], comms[next(&alike) % 2]);
      requests[j] = calls[j].request;
      if (next(&alike) % 4 == 0) {
        int mine = rank + k, all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comms[next(&alike) % 2]);
        expect(all == size * (size - 1) / 2 + size * k, "blocking call", k);
      }
      if (next(&own) % 3 == 0) end_some(requests, j + 1, next(&own) % 4, 0);
      if (next(&own) % 16 == 0) usleep(next(&own) % 500);
    }
    MPI_Isend(&token, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[outstanding + 1]);
    for (int turns = (int)(next(&own) % 4); turns > 0; --turns) end_some(requests, outstanding + 2, next(&own), 0);
    end_some(requests, outstanding + 2, next(&own), 1);
    expect(got == token, "message", k);
    for (int j = 0; j < outstanding; ++j) compare(&calls[j]), give_back_room(&calls[j]);
  }
  MPI_Comm_free(&comms[1]);
}

// The others make none at all.
static void refused(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 20; ++i) {
    int mine = rank, all = 0;
    MPI_Request request;
    if (i % 5 == 4 && rank == 1)
      expect(MPI_Ibcast(&mine, -1, MPI_INT, 0, MPI_COMM_WORLD, &request) != MPI_SUCCESS, "refused", i);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(all == size * (size - 1) / 2, "blocking call", i);
  }
}

// ---- Programs that are right, and need the promises of MPI ----

static void ahead(void) {
  MPI_Comm others;
  const int late = size - 1;
  MPI_Comm_split(MPI_COMM_WORLD, rank == late, rank, &others);
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD), MPI_Barrier(others);
  for (int turn = 0; turn < 5; ++turn) {
    int *word = malloc(sizeof(int) * 20000), token = 0;
    MPI_Request request;
    for (int i = 0; i < 20000; ++i) word[i] = rank == 0 ? turn + i : -1;
    if (rank == late) MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibcast(word, 20000, MPI_INT, 0, MPI_COMM_WORLD, &request);
    if (rank != late) {
      int* data = calloc(100000, sizeof(int));
      MPI_Bcast(data, 100000, MPI_INT, 0, others);
      free(data);
    }
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, late, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(word[19999] == turn + 19999, "turn", turn);
    free(word);
  }
  MPI_Comm_free(&others);
}

// Rank 0 is inside the MPI, in calls that only end when the others have come there. These first
// wait for a call that needs rank 0 several times.
static void held(void) {
  MPI_Comm comm, made;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Request requests[4];
    int mine = rank, all = -1, own = -1, *words = malloc(sizeof(int) * 300000), *got = malloc(sizeof(int) * 300000);
    for (int i = 0; i < 300000; ++i) words[i] = i;
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Iallreduce(words, got, 300000, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    MPI_Iallreduce(&mine, &own, 1, MPI_INT, user_op, MPI_COMM_WORLD, &requests[3]);
    if (rank != 0) MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    if (turn == 0) MPI_Comm_dup(comm, &made);
    if (turn == 1) MPI_Comm_split(comm, 0, rank, &made);
    if (turn == 2)
      MPI_Comm_create_group(comm, ({
                              MPI_Group g;
                              MPI_Comm_group(comm, &g);
                              g;
                            }),
                            5, &made);
    MPI_Comm_free(&made);
    if (rank == 0) MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    expect(all == size * (size - 1) / 2 && own == all && got[299999] == size * 299999, "turn", turn);
    free(words);
    free(got);
  }
  MPI_Comm_free(&comm);
}

static void pair_sum(void* in, void* inout, int* n, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  expect(bytes == 2 * (int)sizeof(int), "type of the operation", bytes);
  for (int i = 0; i < 2 * *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void freed(void) {
  for (int turn = 0; turn < 20; ++turn) {
    MPI_Comm comm;
    MPI_Op op;
    MPI_Datatype two;
    MPI_Request requests[5];
    int mine = rank, all = -1, pair[2] = {rank, turn}, got[2] = {-1, -1}, scanned[2] = {-1, -1};
    int sent[64], received[64], counts[32], displs[32];
    MPI_Datatype types[32];
    int* words = malloc(sizeof(int) * 50000);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 5; ++i) MPI_Barrier(comm);
    for (int i = 0; i < 50000; ++i) words[i] = rank == 0 ? i : -1;
    MPI_Ibcast(words, 50000, MPI_INT, 0, comm, &requests[0]);
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Op_create(pair_sum, 0, &op);
    MPI_Type_contiguous(2, MPI_INT, &two);
    MPI_Type_commit(&two);
    MPI_Iallreduce(pair, got, 1, two, op, comm, &requests[2]);
    MPI_Iscan(pair, scanned, 1, two, op, comm, &requests[3]);
    for (int p = 0; p < size; ++p) {
      counts[p] = 1;
      displs[p] = 2 * p * (int)sizeof(int);
      types[p] = two;
      sent[2 * p] = rank;
      sent[2 * p + 1] = turn + p;
    }
    MPI_Ialltoallw(sent, counts, displs, types, received, counts, displs, types, comm, &requests[4]);
    MPI_Op_free(&op);
    MPI_Type_free(&two);
    MPI_Comm_free(&comm);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    for (int p = 0; p < size; ++p) expect(received[2 * p] == p && received[2 * p + 1] == turn + rank, "pair of", p);
    expect(got[0] == size * (size - 1) / 2 && got[1] == turn * size, "sum of pairs", turn);
    expect(scanned[0] == rank * (rank + 1) / 2 && scanned[1] == turn * (rank + 1), "scan of pairs", turn);
    expect(all == size * (size - 1) / 2 && words[49999] == 49999, "turn", turn);
    free(words);
  }
}

static int thread_calls;
static void* sums(void* comm) {
  for (int k = 0; k < thread_calls; ++k) {
    MPI_Request requests[2];
    int mine = rank + k, all = -1, least = -1;
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, *(MPI_Comm*)comm, &requests[0]);
    MPI_Iallreduce(&mine, &least, 1, MPI_INT, MPI_MIN, *(MPI_Comm*)comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (all != size * (size - 1) / 2 + size * k || least != k) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void threads(int count) {
  MPI_Comm comms[2];
  pthread_t thread;
  thread_calls = count;
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int b = 0; b < 5; ++b) MPI_Barrier(comms[i]);
  }
  pthread_create(&thread, NULL, sums, &comms[0]);
  sums(&comms[1]);
  pthread_join(thread, NULL);
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
}

static int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static int heard;
static void hear(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  heard = class_of(*code);
}

static void errors(void) {
  int words[32] = {0}, one = 1, two[2] = {1, 1};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  expect(class_of(MPI_Ibcast(words, -1, MPI_INT, 0, MPI_COMM_WORLD, &request)) == MPI_ERR_COUNT, "count", 0);
  expect(class_of(MPI_Ibcast(words, 1, MPI_INT, size, MPI_COMM_WORLD, &request)) == MPI_ERR_ROOT, "root", 0);
  expect(class_of(MPI_Iallreduce(&one, words, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request)) == MPI_ERR_COUNT,
         "count", 1);
  expect(request == MPI_REQUEST_NULL, "request", 0);
  // A receiver that has room for less: its call fails, and the next one is right.
  int code = MPI_Igatherv(two, 2, MPI_INT, words, (int[8]){2, 1, 2, 2, 2, 2, 2, 2}, (int[8]){0, 2, 4, 6, 8, 10, 12, 14},
                          MPI_INT, 0, MPI_COMM_WORLD, &request);
  expect(code == MPI_SUCCESS, "posting", 0);
  heard = MPI_SUCCESS;
  code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(rank == 0 ? class_of(code) == MPI_ERR_TRUNCATE : code == MPI_SUCCESS, "truncation", code);
  expect(heard == (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "class in the handler", heard);
  int all = 0;
  MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(all == size, "call after errors", all);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) {
  const char* what = argv[1];
  int level = strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
  MPI_Init_thread(&argc, &argv, level, &level);
  random_begin();
  if (level == MPI_THREAD_SINGLE) caller = pthread_self();
  if (!strcmp(what, "random")) random_calls((unsigned)atoi(argv[2]), atoi(argv[3]));
  if (!strcmp(what, "ahead")) ahead();
  if (!strcmp(what, "held")) held();
  if (!strcmp(what, "freed")) freed();
  if (!strcmp(what, "threads")) threads(atoi(argv[2]));
  if (!strcmp(what, "errors")) errors();
  if (!strcmp(what, "refused")) refused();
  random_end();
  printf("RESULT {\"rank\": %d, \"wrong\": %d}\n", rank, wrong);
  MPI_Finalize();
  return 0;
}
