// SPDX-License-Identifier: BSD-3-Clause
// Calls with requests of any kind, until a rank is killed in their midst.
//   dead_peer WAY RANK WHEN FOLDER   the rank is killed when it has made kDeath calls (early), or
//                                    right after the next one (late)
// Each rank writes its errors to a file of FOLDER. Ways of the others:
//   wait        MPI_Wait of each call
//   test        MPI_Test in a loop
//   several     Waitall, Waitsome, Testall or Testany of four calls under way
//   persistent  MPI_Startall, MPI_Waitall, and at the end MPI_Request_free
//   freed       the communicator is freed while the call with the dead rank is under way
//   finalize    MPI_Finalize while that call is under way. HEARD is printed when all threads that
//               have come since MPI_Init have ended
//   fatal       as wait, with the handler that ends the job
//   host FILE   as test, but nobody is killed, and the calls do not end. FILE appears when all
//               ranks are in them. Errors go to the launcher
// A rank that gets an error prints HEARD and the error's text, and leaves. Wrong data end the job.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include "calls_with_requests.h"

enum { kDeath = 40, kCalls = 3000, kTogether = 4 };

static const char* way;
static MPI_Comm comm;
static int victim, is_late;
static const char* file;
static int threads_at_init;

static int is(const char* name) { return !strcmp(way, name); }

static void die_if(int k, int late) {
  if (file == NULL && k == kDeath && late == is_late && rank == victim) kill(getpid(), SIGKILL);
}

// The error of one of these statuses, if the code says that there is one.
static int of_statuses(int code, int n, const MPI_Status* statuses) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  if (error_class != MPI_ERR_IN_STATUS) return code;
  for (int i = 0; i < n; ++i) {
    if (statuses[i].MPI_ERROR != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_ERR_PENDING) return statuses[i].MPI_ERROR;
  }
  return code;
}

static int end_several(MPI_Request* requests, int n, int how) {
  MPI_Status statuses[kTogether];
  int code = MPI_SUCCESS, flag = 0, done = 0, index = 0, indices[kTogether];
  switch (how % 4) {
    case 0: return of_statuses(MPI_Waitall(n, requests, statuses), n, statuses);
    case 1:
      while (code == MPI_SUCCESS && done != MPI_UNDEFINED) code = MPI_Waitsome(n, requests, &done, indices, statuses);
      return of_statuses(code, done, statuses);
    case 2:
      while (code == MPI_SUCCESS && !flag) code = MPI_Testall(n, requests, &flag, statuses);
      return of_statuses(code, n, statuses);
    default:
      while (code == MPI_SUCCESS && index != MPI_UNDEFINED)
        code = MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE), index = flag ? index : 0;
      return code;
  }
}

static int end_one(MPI_Request* request) {
  int code = MPI_SUCCESS, flag = 0;
  if (!is("test") && !is("host")) return MPI_Wait(request, MPI_STATUS_IGNORE);
  while (code == MPI_SUCCESS && !flag) code = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  return code;
}

static void leave_with(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "HEARD rank %d: %s\n", rank, text);
  _exit(3);
}

static int threads_now(void) {
  int found = -2;  // . and ..
  DIR* const folder = opendir("/proc/self/task");
  while (readdir(folder) != NULL) ++found;
  closedir(folder);
  return found;
}

// The host may wait in MPI_Finalize for the dead rank.
static void* until_threads_have_ended(void* unused) {
  (void)unused;
  while (threads_now() - 1 > threads_at_init) usleep(20000);
  leave_with(MPI_SUCCESS);
  return NULL;
}

static void finalize(void) {
  pthread_t watcher;
  pthread_create(&watcher, NULL, until_threads_have_ended, NULL);
  MPI_Finalize();
  pthread_join(watcher, NULL);
}

static void compare_all(struct Call* calls, int n) {
  for (int j = 0; j < n; ++j) {
    compare(&calls[j]);
    give_back_room(&calls[j]);
  }
  if (wrong) MPI_Abort(MPI_COMM_WORLD, 2);
}

static void in_turn(void) {
  unsigned long long alike = 5;
  const int together = is("several") ? kTogether : 1;
  for (int k = 0; k < kCalls; k += together) {
    struct Call calls[kTogether];
    MPI_Request requests[kTogether];
    const int at_death = k <= kDeath && kDeath < k + together;
    for (int j = 0; j < together; ++j) {
      calls[j] = draw(&alike, k + j);
      if (at_death && !is_late && !is("several")) calls[j].kind = kAllreduce;  // needs all
      die_if(k + j, 0);
      post(&calls[j], comm);
      requests[j] = calls[j].request;
      die_if(k + j, 1);
    }
    if (at_death && is("freed")) MPI_Comm_free(&comm);
    if (at_death && is("finalize")) finalize();
    const int code = is("several") ? end_several(requests, together, k / together) : end_one(&requests[0]);
    if (code != MPI_SUCCESS) leave_with(code);
    compare_all(calls, together);
    if (file != NULL && k == kDeath && rank == 0) fclose(fopen(file, "w"));
    if (file != NULL && k + 1 == kCalls) k = kDeath;  // without end
    if (comm == MPI_COMM_NULL) return;
  }
}

static void persistent_rounds(void) {
  unsigned long long alike = 7;
  struct Call calls[kTogether];
  MPI_Request requests[kTogether];
  for (int j = 0; j < kTogether; ++j) {
    calls[j] = draw(&alike, j);
    if (j == 1) calls[j].kind = kAllreduce;
    make_room(&calls[j]);
    make(&calls[j], comm, 1);
    requests[j] = calls[j].request;
  }
  for (int k = 0; k < kCalls; ++k) {
    MPI_Status statuses[kTogether];
    for (int j = 0; j < kTogether; ++j) fill(&calls[j], k + j);
    die_if(k, 0);
    MPI_Startall(kTogether, requests);
    die_if(k, 1);
    const int code = of_statuses(MPI_Waitall(kTogether, requests, statuses), kTogether, statuses);
    for (int j = 0; j < kTogether && code != MPI_SUCCESS; ++j) MPI_Request_free(&requests[j]);
    if (code != MPI_SUCCESS) leave_with(code);
    for (int j = 0; j < kTogether; ++j) compare(&calls[j]);
    if (wrong) MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

static void write_errors_to(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/said.%d", folder, rank);
  const int to = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (to < 0 || dup2(to, 2) < 0) MPI_Abort(MPI_COMM_WORLD, 4);
  close(to);
}

int main(int argc, char** argv) {
  way = argv[1];
  MPI_Init(&argc, &argv);
  threads_at_init = threads_now();
  caller = pthread_self();
  random_begin();
  if (is("host"))
    file = argv[2];
  else
    victim = atoi(argv[2]), is_late = !strcmp(argv[3], "late"), write_errors_to(argv[4]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 5; ++i) MPI_Barrier(comm);  // then its members have agreed
  if (!is("fatal")) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  }
  if (is("persistent") && kHasPersistent)
    persistent_rounds();
  else
    in_turn();
  fprintf(stderr, "rank %d: no call has failed\n", rank);
  return 9;
}
