// SPDX-License-Identifier: BSD-3-Clause
// What each way of ending requests says of a receive that has failed, that is cancelled, or that is
// right: an ordinary or a persistent one, alone, beside a send, or beside a nonblocking collective.
// All are complete before the wait. Rank 0 prints a row for each case:
//   RESULT {"waitall, persistent, truncated, beside a collective, handler":
//           "code IN_STATUS, status TRUNCATE, others SUCCESS, told once of IN_STATUS"}
#include "robust.h"

enum Form { kWait, kTest, kWaitany, kTestany, kWaitsome, kTestsome, kWaitall, kTestall, kForms };
static const char* const kFormNames[] = {"wait",     "test",     "waitany", "testany",
                                         "waitsome", "testsome", "waitall", "testall"};
enum Fault { kRight, kTruncated, kCancelled, kFaults };
static const char* const kFaultNames[] = {"right", "truncated", "cancelled"};
enum Beside { kAlone, kSend, kCollective, kBesides };
static const char* const kBesideNames[] = {"alone", "beside a send", "beside a collective"};
enum { kUntouched = 4711, kMost = 2 };

static MPI_Comm comm;
static int told, told_of;

static int class_of(int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  return class;
}

static void hear(MPI_Comm* which, int* code, ...) {
  (void)which;
  told++;
  told_of = class_of(*code);
}

static const char* name_of(int code) {
  if (code == kUntouched) return "untouched";
  const int class = class_of(code);
  if (class == MPI_SUCCESS) return "SUCCESS";
  if (class == MPI_ERR_TRUNCATE) return "TRUNCATE";
  if (class == MPI_ERR_IN_STATUS) return "IN_STATUS";
  if (class == MPI_ERR_PENDING) return "PENDING";
  return "another";
}

// ---- The ways ----

struct Ends {
  int codes[kMost];  // of the call that has ended each request
  MPI_Status statuses[kMost];
};

static MPI_Status fresh(void) {
  MPI_Status status;
  memset(&status, 0, sizeof status);
  status.MPI_ERROR = kUntouched;
  return status;
}

static void end_each(enum Form form, int count, MPI_Request* requests, struct Ends* ends) {
  for (int i = 0; i < count; i++) {
    int flag = 0;
    if (form == kWait) ends->codes[i] = MPI_Wait(&requests[i], &ends->statuses[i]);
    while (form == kTest && !flag) ends->codes[i] = MPI_Test(&requests[i], &flag, &ends->statuses[i]);
  }
}

static void end_any(enum Form form, int count, MPI_Request* requests, struct Ends* ends) {
  for (int left = count; left > 0; left--) {
    int index = -1, flag = 0, code = MPI_SUCCESS;
    MPI_Status status = fresh();
    if (form == kWaitany) code = MPI_Waitany(count, requests, &index, &status);
    while (form == kTestany && !flag) code = MPI_Testany(count, requests, &index, &flag, &status);
    CHECK(index >= 0 && index < count, "index %d", index);
    ends->codes[index] = code;
    ends->statuses[index] = status;
  }
}

static void end_some(enum Form form, int count, MPI_Request* requests, struct Ends* ends) {
  for (int left = count; left > 0;) {
    int done = 0, indices[kMost], code = MPI_SUCCESS;
    MPI_Status some[kMost] = {fresh(), fresh()};
    if (form == kWaitsome) code = MPI_Waitsome(count, requests, &done, indices, some);
    while (form == kTestsome && done == 0) code = MPI_Testsome(count, requests, &done, indices, some);
    CHECK(done > 0 && done <= left, "done %d", done);
    for (int i = 0; i < done; i++) ends->codes[indices[i]] = code, ends->statuses[indices[i]] = some[i];
    left -= done;
  }
}

static void end_all(enum Form form, int count, MPI_Request* requests, struct Ends* ends) {
  int flag = 0, code = MPI_SUCCESS;
  if (form == kWaitall) code = MPI_Waitall(count, requests, ends->statuses);
  while (form == kTestall && !flag) code = MPI_Testall(count, requests, &flag, ends->statuses);
  for (int i = 0; i < count; i++) ends->codes[i] = code;
}

static void end(enum Form form, int count, MPI_Request* requests, struct Ends* ends) {
  for (int i = 0; i < kMost; i++) ends->codes[i] = kUntouched, ends->statuses[i] = fresh();
  if (form <= kTest)
    end_each(form, count, requests, ends);
  else if (form <= kTestany)
    end_any(form, count, requests, ends);
  else if (form <= kTestsome)
    end_some(form, count, requests, ends);
  else
    end_all(form, count, requests, ends);
}

// ---- The cases ----

static void send_faults(enum Fault fault, enum Beside beside) {
  char data[64] = {0};
  int mine = 1, sum;
  MPI_Request request;
  if (world_rank == 1) {
    if (fault != kCancelled) MPI_Send(data, fault == kTruncated ? 64 : 8, MPI_BYTE, 0, 1, comm);
    MPI_Send(data, 1, MPI_BYTE, 0, 2, comm);
    if (beside == kSend) MPI_Recv(data, 8, MPI_BYTE, 0, 3, comm, MPI_STATUS_IGNORE);
  }
  if (beside != kCollective) return;
  MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void say(enum Form form, int persistent, enum Fault fault, enum Beside beside, int has_handler) {
  char in[8], out[8] = {0}, row[300];
  int mine = 1, sum = 0, count = 0, cancelled = 0;
  MPI_Request requests[kMost];
  if (beside == kSend) MPI_Isend(out, 8, MPI_BYTE, 1, 3, comm, &requests[count++]);
  if (beside == kCollective) MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[count++]);
  MPI_Request* const subject = &requests[count];
  if (persistent) {
    MPI_Recv_init(in, 8, MPI_BYTE, 1, 1, comm, subject);
    MPI_Start(subject);
  } else {
    MPI_Irecv(in, 8, MPI_BYTE, 1, 1, comm, subject);
  }
  MPI_Recv(out, 1, MPI_BYTE, 1, 2, comm, MPI_STATUS_IGNORE);  // comes after what the subject gets
  if (fault == kCancelled) MPI_Cancel(subject);
  for (int flag = 0; count == 1 && !flag;) MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
  told = told_of = 0;
  struct Ends ends;
  end(form, count + 1, requests, &ends);

  int at = sprintf(row, "code %s", name_of(ends.codes[count]));
  if (form >= kWaitsome) {
    at += sprintf(row + at, ", status %s", name_of(ends.statuses[count].MPI_ERROR));
    if (count == 1) at += sprintf(row + at, ", other %s", name_of(ends.statuses[0].MPI_ERROR));
  } else if (count == 1) {
    at += sprintf(row + at, ", other %s", name_of(ends.codes[0]));
  }
  if (fault == kCancelled) {
    MPI_Test_cancelled(&ends.statuses[count], &cancelled);
    at += sprintf(row + at, ", %s", cancelled ? "cancelled" : "not cancelled");
  }
  if (persistent && *subject == MPI_REQUEST_NULL) at += sprintf(row + at, ", no request any more");  // Open MPI 4
  if (told) sprintf(row + at, ", told %d of %s", told, name_of(told_of));
  printf("RESULT {\"%s, %s, %s, %s, %s\": \"%s\"}\n", kFormNames[form], persistent ? "persistent" : "ordinary",
         kFaultNames[fault], kBesideNames[beside], has_handler ? "handler" : "return", row);
  CHECK(beside != kCollective || sum == world_size, "sum %d", sum);
  if (persistent && *subject != MPI_REQUEST_NULL) MPI_Request_free(subject);
  for (int i = 0; i <= count; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);  // if it has been left
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 5; i++) MPI_Barrier(comm);  // the members agree
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(hear, &handler);
  for (int has_handler = 0; has_handler < 2; has_handler++) {
    const MPI_Comm comms[] = {comm, MPI_COMM_WORLD, MPI_COMM_SELF};
    for (int i = 0; i < 3; i++) MPI_Comm_set_errhandler(comms[i], has_handler ? handler : MPI_ERRORS_RETURN);
    for (int k = 0; k < kForms * 2 * kFaults * kBesides; k++) {
      const enum Form form = k % kForms;
      const enum Fault fault = k / kForms / 2 % kFaults;
      const enum Beside beside = k / kForms / 2 / kFaults;
      MPI_Barrier(comm);
      if (world_rank == 0)
        say(form, k / kForms % 2, fault, beside, has_handler);
      else
        send_faults(fault, beside);
    }
  }
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
