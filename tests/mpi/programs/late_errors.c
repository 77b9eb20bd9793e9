// SPDX-License-Identifier: BSD-3-Clause
// Errors of nonblocking collectives that only a wait or test finds: what each of them returns,
// what is in the statuses, and who is told.
//   late_errors truncation   rank 0 has too little room in an Igatherv
//   late_errors once         the same once, and from then on every call fails, on every rank
//   late_errors gone         the last rank frees the communicator and makes no call on it
// Prints RESULT with the number of wrong values, for each rank.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum Way { kWait, kTest, kWaitall, kTestall, kWaitsome, kTestsome, kWaitany, kTestany, kWays };

static int rank, size, wrong;

static void expect(int right, const char* what, int way, int value) {
  if (right) return;
  if (++wrong < 9) fprintf(stderr, "rank %d of %d: way %d: %s: %d is wrong\n", rank, size, way, what, value);
}

static int class_of(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static int told, told_of, told_others;
static void hear(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  told++;
  told_of = class_of(*code);
}
static void hear_others(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  told_others++;
}

// Ends both requests, and returns what the second one's code or status says. `several`: what the
// call returned, if it has statuses.
static int end_both(enum Way way, MPI_Request* requests, MPI_Status* statuses, int* several) {
  int code = MPI_SUCCESS, flag = 0, done = 0, all = 0, index = 0, indices[2], found[2];
  MPI_Status some[2];
  *several = MPI_SUCCESS;
  if (way == kWait || way == kTest || way == kWaitany || way == kTestany) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  switch (way) {
    case kWait: return MPI_Wait(&requests[1], &statuses[1]);
    case kTest:
      while (!flag) code = MPI_Test(&requests[1], &flag, &statuses[1]);
      return code;
    case kWaitany: return MPI_Waitany(2, requests, &index, &statuses[1]);
    case kTestany:
      while (!flag) code = MPI_Testany(2, requests, &index, &flag, &statuses[1]);
      return code;
    case kWaitall:
      *several = MPI_Waitall(2, requests, statuses);
      return *several == MPI_SUCCESS ? MPI_SUCCESS : statuses[1].MPI_ERROR;
    case kTestall:
      while (!flag) *several = MPI_Testall(2, requests, &flag, statuses);
      return *several == MPI_SUCCESS ? MPI_SUCCESS : statuses[1].MPI_ERROR;
    default: break;
  }
  while (all < 2) {
    for (int i = 0; i < 2; ++i) some[i].MPI_ERROR = -5;
    code = way == kWaitsome ? MPI_Waitsome(2, requests, &done, indices, some)
                            : MPI_Testsome(2, requests, &done, indices, some);
    for (int i = 0; i < done; ++i) found[indices[i]] = code == MPI_SUCCESS ? MPI_SUCCESS : some[i].MPI_ERROR;
    if (code != MPI_SUCCESS) *several = code;
    all += done;
  }
  statuses[0].MPI_ERROR = found[0];
  return found[1];
}

static void judge(enum Way way, int code, int several, const MPI_Status* statuses, int wanted) {
  const int failed = wanted != MPI_SUCCESS, has_statuses = way >= kWaitall && way <= kTestsome;
  expect(class_of(code) == wanted, "class", way, class_of(code));
  expect(told == failed, "calls of the handler", way, told);
  expect(!failed || told_of == wanted, "class in the handler", way, told_of);
  expect(told_others == 0, "calls of another handler", way, told_others);
  if (!has_statuses) return;
  expect(several == (failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS), "code", way, several);
  if (failed) expect(statuses[0].MPI_ERROR == MPI_SUCCESS, "status", way, statuses[0].MPI_ERROR);
}

static void truncation(MPI_Comm comm, enum Way way) {
  int two[2] = {rank, rank}, words[64], counts[16], displs[16], several;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  for (int p = 0; p < size; ++p) counts[p] = p == 1 ? 1 : 2, displs[p] = 2 * p;
  statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = -5;
  told = told_others = 0;
  MPI_Ibarrier(comm, &requests[0]);
  MPI_Igatherv(two, 2, MPI_INT, words, counts, displs, MPI_INT, 0, comm, &requests[1]);
  const int code = end_both(way, requests, statuses, &several);
  expect(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "handles", way, 0);
  judge(way, code, several, statuses, rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

static void once(MPI_Comm comm) {
  int two[2] = {rank, rank}, words[64], counts[16], displs[16], failed = 0;
  MPI_Request request;
  for (int p = 0; p < size; ++p) counts[p] = p == size - 1 ? 1 : 2, displs[p] = 2 * p;
  MPI_Igatherv(two, 2, MPI_INT, words, counts, displs, MPI_INT, 0, comm, &request);
  int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) expect(class_of(code) == MPI_ERR_TRUNCATE, "class", 0, class_of(code));
  for (int turn = 0; turn < 8; ++turn) {  // what is under way may still succeed
    MPI_Ibarrier(comm, &request);
    failed = MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  }
  expect(failed && told_others == 0, "calls after the error", 0, told_others);
}

static void gone(MPI_Comm comm) {
  MPI_Request request;
  told = told_others = 0;
  if (rank == size - 1) return;
  MPI_Ibarrier(comm, &request);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(class_of(code) == MPI_ERR_OTHER, "class", 0, class_of(code));
  expect(told == 1 && told_others == 0, "calls of the handler", 0, told);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Errhandler mine, others;
  MPI_Comm comm;
  MPI_Comm_create_errhandler(hear, &mine);
  MPI_Comm_create_errhandler(hear_others, &others);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, mine);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, others);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, others);
  for (int i = 0; i < 5; ++i) MPI_Barrier(comm);
  if (!strcmp(argv[1], "truncation"))
    for (int i = 0; i < 3 * kWays; ++i) truncation(comm, (enum Way)(i % kWays));
  if (!strcmp(argv[1], "once")) once(comm);
  if (!strcmp(argv[1], "gone")) gone(comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&mine);
  MPI_Errhandler_free(&others);
  printf("RESULT {\"rank\": %d, \"wrong\": %d}\n", rank, wrong);
  MPI_Finalize();
  return 0;
}
