// SPDX-License-Identifier: BSD-3-Clause
// Calls in which a program waits.
//   waits all       what each call of each rank returned: code, status, handler. It is the same
//                   with Stretto and without, in every way of waiting.
//                   RESULT {"rank": 0, "said": ["recv: 0 source 3 tag 7 bytes 8 error 4711", ...]}
//   waits sleeps    which part of a wait of 150 ms takes processor time
//                   RESULT {"rank": 1, "share": {"recv": 0.04, ...}}
//   waits threads   several threads of each rank wait at once
//   waits ring N    RESULT {"us": 5.0}: a Sendrecv of 8 bytes in a ring, N times
#include <pthread.h>
#include <stdarg.h>
#include <sys/resource.h>

#include "robust.h"

enum { kUntouched = 4711, kLong = 200000 };

static char said[200000];
static size_t said_bytes;
static int handled, handled_class;
static MPI_Comm handled_comm, comm;

__attribute__((format(printf, 1, 2))) static void say(const char* format, ...) {
  char text[400];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  CHECK(said_bytes + sizeof text < sizeof said, "too much to say");
  said_bytes += (size_t)sprintf(said + said_bytes, "%s\"%s\"", said_bytes ? ", " : "", text);
}

static int class_of(int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  return class;
}

static void on_error(MPI_Comm* which, int* code, ...) {
  handled++;
  handled_comm = *which;
  handled_class = class_of(*code);
}

static MPI_Status fresh(void) {
  MPI_Status status;
  memset(&status, 0, sizeof status);
  status.MPI_SOURCE = status.MPI_TAG = status.MPI_ERROR = kUntouched;
  return status;
}

// An error of a wait leaves more open: the message of a receive that failed is not looked at.
static void tell(const char* what, int code, const MPI_Status* status) {
  int bytes = -1, cancelled = -1;
  char text[200] = "";
  if (status != NULL && code == MPI_SUCCESS) {
    MPI_Get_count(status, MPI_BYTE, &bytes);
    MPI_Test_cancelled(status, &cancelled);
    if (!cancelled) {
      snprintf(text, sizeof text, " source %d tag %d bytes %d", status->MPI_SOURCE, status->MPI_TAG, bytes);
    }
    snprintf(text + strlen(text), 60, " error %d cancelled %d", status->MPI_ERROR, cancelled);
  }
  if (handled != 0) {
    const char* const whose = handled_comm == comm ? "its" : handled_comm == MPI_COMM_WORLD ? "world's" : "another";
    snprintf(text + strlen(text), 60, " handled by %s handler %d times: %d", whose, handled, handled_class);
  }
  say("%s: %d%s", what, class_of(code), text);
  handled = 0;
}

static int before(void) { return (world_rank + world_size - 1) % world_size; }
static int after(void) { return (world_rank + 1) % world_size; }

// ---- Messages ----

static char out[kLong], in[kLong];

static void check_in(int from, size_t bytes, int seed) {
  for (size_t i = 0; i < bytes; i++) CHECK(in[i] == (char)pattern((uint64_t)(from * 100 + seed), i), "byte %zu", i);
}

static void ring(void) {
  const int lengths[] = {0, 8, kLong};
  for (int k = 0; k < 3; k++) {
    MPI_Status status = fresh();
    memset(in, 0, sizeof in);
    fill(out, (uint64_t)(world_rank * 100 + k), (size_t)lengths[k]);
    int code = MPI_Sendrecv(out, lengths[k], MPI_BYTE, after(), 7, in, kLong, MPI_BYTE, before(), 7, comm, &status);
    tell("sendrecv", code, &status);
    check_in(before(), (size_t)lengths[k], k);

    MPI_Datatype columns;
    MPI_Type_vector(lengths[k] / 8, 4, 8, MPI_BYTE, &columns);
    MPI_Type_commit(&columns);
    memcpy(in, out, sizeof in);
    status = fresh();
    code = MPI_Sendrecv_replace(in, 1, columns, after(), 8, before(), MPI_ANY_TAG, comm, &status);
    tell("sendrecv_replace", code, &status);
    for (int i = 0; i < lengths[k] / 8 * 8; i++) {
      const int from = i % 8 < 4 ? before() : world_rank;
      CHECK(in[i] == (char)pattern((uint64_t)(from * 100 + k), (size_t)i), "byte %d", i);
    }
    MPI_Type_free(&columns);
    code = MPI_Sendrecv(out, 1, MPI_BYTE, after(), 9, in, 1, MPI_BYTE, before(), 9, comm, MPI_STATUS_IGNORE);
    tell("sendrecv, no status", code, NULL);
  }
}

static void modes(void) {
  char* attached = malloc(kLong + MPI_BSEND_OVERHEAD);
  MPI_Buffer_attach(attached, kLong + MPI_BSEND_OVERHEAD);
  int (*const sends[])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Bsend,
                                                                              MPI_Rsend};
  for (int k = 0; k < 8; k++) {
    const int bytes = k < 4 ? 8 : kLong / 2;
    MPI_Request request;
    MPI_Status status = fresh();
    memset(in, 0, sizeof in);
    fill(out, (uint64_t)(world_rank * 100 + k), (size_t)bytes);
    MPI_Irecv(in, kLong, MPI_BYTE, before(), k, comm, &request);
    MPI_Barrier(comm);
    tell("send", sends[k % 4](out, bytes, MPI_BYTE, after(), k, comm), NULL);
    tell("wait", MPI_Wait(&request, &status), &status);
    CHECK(request == MPI_REQUEST_NULL, "the request is not null");
    check_in(before(), (size_t)bytes, k);
  }
  int size = 0;
  MPI_Buffer_detach(&attached, &size);
  free(attached);
}

// Messages of one tag overtake each other never, also where short and long ones follow each other.
static void order(void) {
  MPI_Barrier(comm);
  for (int k = 0; k < 6; k++) {
    const int bytes = k % 2 ? 8 : kLong;
    MPI_Status status = fresh();
    fill(out, (uint64_t)(world_rank * 100 + k), (size_t)bytes);
    if (world_rank % 2) {
      tell("recv", MPI_Recv(in, kLong, MPI_BYTE, before(), 3, comm, &status), &status);
      check_in(before(), (size_t)bytes, k);
    } else if (after() % 2) {
      tell("send", MPI_Send(out, bytes, MPI_BYTE, after(), 3, comm), NULL);
    }
  }
  MPI_Barrier(comm);
}

static void several(void) {
  enum { kMany = 8 };
  MPI_Request requests[2 * kMany];
  MPI_Status statuses[2 * kMany];
  static char from[kMany][64], to[kMany][64];
  for (int way = 0; way < 4; way++) {
    MPI_Barrier(comm);
    for (int k = 0; k < kMany; k++) {
      memset(to[k], world_rank + k + way, 64);
      MPI_Irecv(from[k], 64, MPI_BYTE, before(), k, comm, &requests[k]);
      MPI_Isend(to[k], 64, MPI_BYTE, after(), k, comm, &requests[kMany + k]);
      statuses[k] = statuses[kMany + k] = fresh();
    }
    int found[2 * kMany] = {0}, left = 2 * kMany;
    if (way == 0) {
      tell("waitall", MPI_Waitall(left, requests, statuses), NULL);
      for (int k = 0; k < kMany; k++) tell("its status", MPI_SUCCESS, &statuses[k]);
    } else if (way == 1) {
      tell("waitall, no statuses", MPI_Waitall(left, requests, MPI_STATUSES_IGNORE), NULL);
    } else if (way == 2) {
      for (; left > 0; left--) {
        int index = -1;
        CHECK(MPI_Waitany(2 * kMany, requests, &index, &statuses[0]) == MPI_SUCCESS, "waitany");
        CHECK(index >= 0 && index < 2 * kMany && !found[index]++, "index %d", index);
        if (index < kMany) CHECK(statuses[0].MPI_TAG == index && statuses[0].MPI_SOURCE == before(), "status");
      }
    } else {
      while (left > 0) {
        int done = -1, indices[2 * kMany];
        CHECK(MPI_Waitsome(2 * kMany, requests, &done, indices, statuses) == MPI_SUCCESS && done > 0, "done %d", done);
        for (int k = 0; k < done; k++) {
          CHECK(!found[indices[k]]++, "index %d", indices[k]);
          if (indices[k] < kMany) CHECK(statuses[k].MPI_TAG == indices[k], "status");
        }
        left -= done;
      }
    }
    for (int k = 0; k < 2 * kMany; k++) CHECK(requests[k] == MPI_REQUEST_NULL, "request %d", k);
    for (int k = 0; k < kMany; k++) CHECK(from[k][63] == (char)(before() + k + way), "byte of %d", k);
  }
}

static void none(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status = fresh(), statuses[3] = {fresh(), fresh(), fresh()};
  int index = -1, done = -1, indices[3] = {-1, -1, -1};
  tell("wait for null", MPI_Wait(&requests[0], &status), &status);
  tell("waitall of nulls", MPI_Waitall(3, requests, statuses), &statuses[2]);
  tell("waitall of none", MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE), NULL);
  status = fresh();
  tell("waitany of nulls", MPI_Waitany(3, requests, &index, &status), &status);
  say("index %d", index == MPI_UNDEFINED);
  tell("waitsome of nulls", MPI_Waitsome(3, requests, &done, indices, statuses), NULL);
  say("done %d", done == MPI_UNDEFINED);

  status = fresh();
  tell("recv from none", MPI_Recv(in, 8, MPI_BYTE, MPI_PROC_NULL, 1, comm, &status), &status);
  tell("send to none", MPI_Send(out, 8, MPI_BYTE, MPI_PROC_NULL, 1, comm), NULL);
  status = fresh();
  tell("probe of none", MPI_Probe(MPI_PROC_NULL, 1, comm, &status), &status);
  MPI_Message message;
  status = fresh();
  tell("mprobe of none", MPI_Mprobe(MPI_PROC_NULL, 1, comm, &message, &status), &status);
  CHECK(message == MPI_MESSAGE_NO_PROC, "a message");
  status = fresh();
  tell("mrecv of none", MPI_Mrecv(in, 8, MPI_BYTE, &message, &status), &status);
  CHECK(message == MPI_MESSAGE_NULL, "a message is left");
  const int left = world_rank > 0 ? before() : MPI_PROC_NULL;
  const int right = after() > 0 ? after() : MPI_PROC_NULL;
  status = fresh();
  tell("sendrecv at the ends", MPI_Sendrecv(out, 8, MPI_BYTE, right, 2, in, 8, MPI_BYTE, left, 2, comm, &status),
       &status);
  status = fresh();
  tell("sendrecv_replace at the ends", MPI_Sendrecv_replace(in, 8, MPI_BYTE, right, 2, left, 2, comm, &status),
       &status);
}

// Rank 0 serves whoever asks, one after another.
static void served(void) {
  if (world_rank != 0) {
    MPI_Status status = fresh();
    for (int k = 0; k < 3; k++) {
      tell("ask", MPI_Send(out, 10 * k, MPI_BYTE, 0, world_rank, comm), NULL);
      tell("answer", MPI_Recv(in, 8, MPI_BYTE, 0, MPI_ANY_TAG, comm, &status), &status);
    }
    return;
  }
  for (int k = 0; k < 3 * (world_size - 1); k++) {
    MPI_Status probed, status;
    MPI_Message message;
    int bytes = -1;
    if (k % 2) {
      CHECK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &probed) == MPI_SUCCESS, "mprobe");
      MPI_Get_count(&probed, MPI_BYTE, &bytes);
      CHECK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status) == MPI_SUCCESS, "mrecv");
    } else {
      CHECK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &probed) == MPI_SUCCESS, "probe");
      MPI_Get_count(&probed, MPI_BYTE, &bytes);
      const int from = probed.MPI_SOURCE;
      CHECK(MPI_Recv(in, bytes, MPI_BYTE, from, probed.MPI_TAG, comm, &status) == MPI_SUCCESS, "recv");
    }
    CHECK(status.MPI_SOURCE == probed.MPI_SOURCE && status.MPI_TAG == status.MPI_SOURCE, "status");
    MPI_Send(in, 8, MPI_BYTE, status.MPI_SOURCE, 5, comm);
  }
}

// ---- Errors ----

static void wrong(void) {
  MPI_Status status, statuses[3];
  MPI_Request requests[3];
  int index = -1, done = -1, indices[3];
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Errhandler_free(&handler);
  tell("send to a wrong rank", MPI_Send(out, 1, MPI_BYTE, world_size, 1, comm), NULL);
  tell("send of a wrong count", MPI_Send(out, -1, MPI_BYTE, after(), 1, comm), NULL);
  tell("send of a wrong type", MPI_Ssend(out, 1, MPI_DATATYPE_NULL, after(), 1, comm), NULL);
  tell("recv of a wrong tag", MPI_Recv(in, 1, MPI_BYTE, before(), -77, comm, &status), NULL);
  tell("recv from a wrong rank", MPI_Recv(in, 1, MPI_BYTE, -77, 1, comm, &status), NULL);
  tell("probe of a wrong rank", MPI_Probe(world_size, 1, comm, &status), NULL);
  tell("sendrecv to a wrong rank",
       MPI_Sendrecv(out, 1, MPI_BYTE, world_size, 1, in, 1, MPI_BYTE, before(), 1, comm, &status), NULL);
  tell("sendrecv_replace to a wrong rank",
       MPI_Sendrecv_replace(in, 1, MPI_BYTE, world_size, 1, before(), 1, comm, &status), NULL);
  tell("sendrecv_replace of a wrong type",
       MPI_Sendrecv_replace(in, 1, MPI_DATATYPE_NULL, after(), 1, before(), 1, comm, &status), NULL);

  // Longer than what the receiver expects.
  MPI_Barrier(comm);
  tell("sendrecv, truncated", MPI_Sendrecv(out, 64, MPI_BYTE, after(), 1, in, 8, MPI_BYTE, before(), 1, comm, &status),
       NULL);
  MPI_Isend(out, 64, MPI_BYTE, after(), 2, comm, &requests[0]);
  tell("recv, truncated", MPI_Recv(in, 8, MPI_BYTE, before(), 2, comm, &status), NULL);
  tell("its send", MPI_Wait(&requests[0], MPI_STATUS_IGNORE), NULL);
  for (int way = 0; way < 4; way++) {
    MPI_Barrier(comm);
    for (int k = 0; k < 3; k++) statuses[k] = fresh();
    MPI_Irecv(in, 8, MPI_BYTE, before(), 3, comm, &requests[0]);
    MPI_Irecv(in + 100, 100, MPI_BYTE, before(), 4, comm, &requests[1]);
    MPI_Send(out, 64, MPI_BYTE, after(), 3, comm);
    if (way == 0) tell("wait, truncated", MPI_Wait(&requests[0], &status), NULL);
    if (way == 1) tell("waitany, truncated", MPI_Waitany(2, requests, &index, &status), NULL);
    if (way == 2) {
      tell("waitsome, truncated", MPI_Waitsome(2, requests, &done, indices, statuses), NULL);
      say("done %d index %d error %d", done, indices[0], class_of(statuses[0].MPI_ERROR));
    }
    MPI_Barrier(comm);  // only now the other message comes
    MPI_Send(out, 64, MPI_BYTE, after(), 4, comm);
    if (way == 3) {
      tell("waitall, truncated", MPI_Waitall(2, requests, statuses), NULL);
      say("its error %d", class_of(statuses[0].MPI_ERROR));
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);  // may be pending
    } else {
      status = fresh();
      tell("the other", MPI_Wait(&requests[1], &status), &status);
    }
  }
  // What has failed has left nothing behind.
  status = fresh();
  tell("afterwards", MPI_Sendrecv(out, 8, MPI_BYTE, after(), 1, in, 8, MPI_BYTE, before(), 1, comm, &status), &status);
}

// ---- Requests of other kinds ----

static int queries;
static int query(void* unused, MPI_Status* status) {
  (void)unused;
  queries++;
  MPI_Status_set_elements(status, MPI_BYTE, 12);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 1;
  status->MPI_TAG = 2;
  return MPI_SUCCESS;
}
static int release(void* unused) { return unused == NULL ? MPI_SUCCESS : MPI_ERR_OTHER; }
static int cancel(void* unused, int complete) { return unused == NULL && complete >= 0 ? MPI_SUCCESS : MPI_ERR_OTHER; }

static void kinds(void) {
  MPI_Request requests[2];
  MPI_Status status = fresh(), statuses[2];
  MPI_Irecv(in, 8, MPI_BYTE, before(), 99, comm, &requests[0]);
  MPI_Cancel(&requests[0]);
  tell("cancelled", MPI_Wait(&requests[0], &status), &status);

  MPI_Recv_init(in, 8, MPI_BYTE, before(), 6, comm, &requests[0]);
  MPI_Send_init(out, 8, MPI_BYTE, after(), 6, comm, &requests[1]);
  status = fresh();
  tell("inactive", MPI_Wait(&requests[0], &status), &status);
  for (int k = 0; k < 3; k++) {
    statuses[0] = statuses[1] = fresh();
    MPI_Startall(2, requests);
    tell("persistent", MPI_Waitall(2, requests, statuses), &statuses[0]);
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL, "persistent requests are gone");
  }
  int index = -1;
  status = fresh();
  tell("waitany of inactive", MPI_Waitany(2, requests, &index, &status), &status);
  say("index %d", index == MPI_UNDEFINED);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);

  MPI_Ibarrier(comm, &requests[0]);
  tell("ibarrier", MPI_Wait(&requests[0], MPI_STATUS_IGNORE), NULL);

  MPI_Grequest_start(query, release, cancel, NULL, &requests[0]);
  MPI_Grequest_complete(requests[0]);
  status = fresh();
  tell("generalized", MPI_Wait(&requests[0], &status), &status);
  say("queries %d", queries);
}

static void windows(void) {
  int *memory = NULL, value = world_rank + 1;
  MPI_Win window;
  MPI_Group all, group;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &window);
  *memory = 0;
  MPI_Barrier(comm);
  MPI_Comm_group(comm, &all);
  const int first = 0, others = world_size - 1;
  int* ranks = malloc((size_t)world_size * sizeof(int));
  for (int i = 0; i < others; i++) ranks[i] = i + 1;
  MPI_Group_incl(all, world_rank == 0 ? others : 1, world_rank == 0 ? ranks : &first, &group);
  if (world_rank == 0) {
    MPI_Win_post(group, 0, window);
    tell("win_wait", MPI_Win_wait(window), NULL);
    CHECK(*memory == world_size * (world_size + 1) / 2 - 1, "sum %d", *memory);
  } else {
    MPI_Win_start(group, 0, window);
    MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_complete(window);
  }
  MPI_Group_free(&group);
  MPI_Group_free(&all);
  free(ranks);
  MPI_Win_free(&window);
}

// ---- How much time a wait takes ----

static double cpu_s(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void wait_in(const char* call) {
  MPI_Status status;
  MPI_Message message;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int index, done, indices[2];
  if (strncmp(call, "wait", 4) == 0) MPI_Irecv(in, 8, MPI_BYTE, 0, 1, comm, &requests[1]);
  if (!strcmp(call, "recv")) MPI_Recv(in, 8, MPI_BYTE, 0, 1, comm, &status);
  if (!strcmp(call, "ssend")) MPI_Ssend(out, 8, MPI_BYTE, 0, 1, comm);
  if (!strcmp(call, "sendrecv")) MPI_Sendrecv(out, 8, MPI_BYTE, 1, 2, in, 8, MPI_BYTE, 0, 1, comm, &status);
  if (!strcmp(call, "sendrecv_replace")) MPI_Sendrecv_replace(in, 8, MPI_BYTE, 1, 2, 0, 1, comm, &status);
  if (!strcmp(call, "probe")) MPI_Probe(0, 1, comm, &status);
  if (!strcmp(call, "mprobe")) {
    MPI_Mprobe(0, 1, comm, &message, &status);
    MPI_Mrecv(in, 8, MPI_BYTE, &message, &status);
  }
  if (!strcmp(call, "wait")) MPI_Wait(&requests[1], &status);
  if (!strcmp(call, "waitall")) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (!strcmp(call, "waitany")) MPI_Waitany(2, requests, &index, &status);
  if (!strcmp(call, "waitsome")) MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
}

static void sleeps(void) {
  static const char* const calls[] = {"recv",   "ssend", "sendrecv", "sendrecv_replace", "probe",
                                      "mprobe", "wait",  "waitall",  "waitany",          "waitsome"};
  if (world_rank == 1) printf("RESULT {\"rank\": 1, \"share\": {");
  for (int k = 0; k < 10; k++) {
    MPI_Barrier(comm);
    const double began = now_s(), cpu = cpu_s();
    if (world_rank == 0) {
      sleep_ms(150);
      if (!strcmp(calls[k], "ssend")) {
        MPI_Recv(in, 8, MPI_BYTE, 1, 1, comm, MPI_STATUS_IGNORE);
      } else {
        MPI_Send(out, 8, MPI_BYTE, 1, 1, comm);
      }
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      const int replies = !strncmp(calls[k], "sendrecv", 8);
      if (replies) MPI_Irecv(in + 100, 8, MPI_BYTE, 1, 2, comm, &request);
      wait_in(calls[k]);
      printf("%s\"%s\": %.4f", k ? ", " : "", calls[k], (cpu_s() - cpu) / (now_s() - began));
      if (replies) MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (!strcmp(calls[k], "probe")) MPI_Recv(in, 8, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
    }
  }
  if (world_rank == 1) printf("}}\n");
}

// ---- Threads ----

static void* thread_main(void* argument) {
  const int tag = *(int*)argument;
  char mine[1000], its[1000];
  for (int k = 0; k < 100; k++) {
    MPI_Status status;
    MPI_Request requests[2];
    memset(mine, world_rank + tag + k, sizeof mine);
    if (k % 3 == 0) {
      MPI_Sendrecv(mine, 1000, MPI_BYTE, after(), tag, its, 1000, MPI_BYTE, before(), tag, comm, &status);
    } else if (k % 3 == 1) {
      MPI_Isend(mine, 1000, MPI_BYTE, after(), tag, comm, &requests[0]);
      MPI_Irecv(its, 1000, MPI_BYTE, before(), tag, comm, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Message message;
      MPI_Isend(mine, 1000, MPI_BYTE, after(), tag, comm, &requests[0]);
      MPI_Mprobe(before(), tag, comm, &message, &status);
      MPI_Mrecv(its, 1000, MPI_BYTE, &message, &status);
      MPI_Wait(&requests[0], &status);
    }
    CHECK(its[999] == (char)(before() + tag + k), "thread %d, message %d", tag, k);
  }
  return NULL;
}

static void threads(void) {
  enum { kThreads = 3 };
  pthread_t all[kThreads];
  int tags[kThreads];
  for (int t = 0; t < kThreads; t++) {
    tags[t] = t;
    pthread_create(&all[t], NULL, thread_main, &tags[t]);
  }
  for (int t = 0; t < kThreads; t++) pthread_join(all[t], NULL);
  if (world_rank == 0) printf("RESULT {\"threads\": %d}\n", kThreads);
}

static void timed_ring(int times) {
  double began = 0;
  for (int k = -times / 10; k < times; k++) {
    if (k == 0) began = now_s();
    MPI_Sendrecv(out, 8, MPI_BYTE, after(), 7, in, 8, MPI_BYTE, before(), 7, comm, MPI_STATUS_IGNORE);
  }
  if (world_rank == 0) printf("RESULT {\"us\": %.3f}\n", 1e6 * (now_s() - began) / times);
}

// Launchers mix long lines of several ranks.
static void print_all(void) {
  if (world_rank != 0) {
    MPI_Send(said, (int)said_bytes + 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    return;
  }
  for (int r = 0; r < world_size; r++) {
    if (r != 0) MPI_Recv(said, sizeof said, MPI_CHAR, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("RESULT {\"rank\": %d, \"said\": [%s]}\n", r, said);
  }
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "all";
  start(&argc, &argv, strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (!strcmp(what, "sleeps")) {
    sleeps();
  } else if (!strcmp(what, "threads")) {
    threads();
  } else if (!strcmp(what, "ring")) {
    timed_ring(atoi(argv[2]));
  } else {
    ring();
    modes();
    order();
    several();
    none();
    served();
    MPI_Barrier(comm);  // rank 0 takes any message until here
    kinds();
    wrong();
    ring();
    windows();
    print_all();
  }
  fflush(stdout);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
