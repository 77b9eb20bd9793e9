// SPDX-License-Identifier: BSD-3-Clause
// MPI's progress rule: a rank that waits in a collective still owes its peers the rest of what it
// began.
//   progress_owed send|bsend|ssend|put|get|accumulate  [bytes [repetitions]]
// Even ranks owe, and the next odd rank takes. The debtor goes straight into the collective. Its
// partner arrives late and needs it. Ours and the host's own collective alternate. The time is the
// partner's, from its first call to the data.
//
// In one more variant the debtor sleeps. If that does not delay its partner, the host needs no
// progress from it. Prints RESULT with medians (maximum over partners), the delay by a sleeping
// debtor and the path that ours took.
#include "robust.h"

enum { kMost = 64, kIdleMs = 150 };
typedef enum { HOST, OURS, IDLE } Waiting;
static size_t bytes;
static char *buffer, *window_memory;
static MPI_Win window;
static int partner, debtor;
static const char* kind;

static int (*host_barrier)(MPI_Comm);
static int (*host_bcast)(void*, int, MPI_Datatype, int, MPI_Comm);

static int one_sided(void) { return !strcmp(kind, "put") || !strcmp(kind, "get") || !strcmp(kind, "accumulate"); }

// The collective in which the debtor waits: a Barrier, or for one-sided calls a Bcast whose root is
// the late partner.
static void collective(Waiting way) {
  char word[64] = "";
  int ours = way == OURS;
  if (way == IDLE && debtor) sleep_ms(30 + kIdleMs);
  if (!one_sided()) {
    if (ours)
      MPI_Barrier(MPI_COMM_WORLD);
    else
      host_barrier(MPI_COMM_WORLD);
    return;
  }
  // The root is a partner, so every debtor waits for it.
  if (ours)
    MPI_Bcast(word, sizeof word, MPI_CHAR, 1, MPI_COMM_WORLD);
  else
    host_bcast(word, sizeof word, MPI_CHAR, 1, MPI_COMM_WORLD);
}

static void owe(Waiting way, const char** path, uint64_t seed) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (!one_sided()) fill(buffer, seed, bytes);
  if (!strcmp(kind, "send")) MPI_Isend(buffer, (int)bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &request);
  if (!strcmp(kind, "ssend")) MPI_Issend(buffer, (int)bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &request);
  if (!strcmp(kind, "bsend")) MPI_Bsend(buffer, (int)bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD);
  collective(way);
  if (way == OURS) *path = last_path();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void reach(uint64_t seed) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, partner, 0, window);
  if (!strcmp(kind, "put")) {
    fill(buffer, seed, bytes);
    MPI_Put(buffer, (int)bytes, MPI_BYTE, partner, 0, (int)bytes, MPI_BYTE, window);
  } else if (!strcmp(kind, "get")) {
    MPI_Get(buffer, (int)bytes, MPI_BYTE, partner, 0, (int)bytes, MPI_BYTE, window);
  } else {
    for (size_t i = 0; i < bytes; i++) buffer[i] = 1;
    MPI_Accumulate(buffer, (int)bytes, MPI_BYTE, partner, 0, (int)bytes, MPI_BYTE, MPI_BXOR, window);
  }
  MPI_Win_flush(partner, window);
  MPI_Win_unlock(partner, window);
}

static double take(Waiting way, const char** path, uint64_t seed) {
  sleep_ms(30);
  double began = now_s();
  if (one_sided())
    reach(seed);
  else
    MPI_Recv(buffer, (int)bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  double took = now_s() - began;
  if (!one_sided()) CHECK(mismatch(buffer, seed, bytes) < 0, "received wrong data");
  collective(way);
  if (way == OURS) *path = last_path();
  return took;
}

// One exchange of every pair. Returns the longest of the partners' times.
static double round_trip(Waiting way, const char** path, uint64_t seed) {
  double took = 0, worst = 0;
  if (debtor)
    owe(way, path, seed);
  else
    took = take(way, path, seed);
  MPI_Allreduce(&took, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (!strcmp(kind, "put") && debtor) CHECK(mismatch(window_memory, seed, bytes) < 0, "the window has wrong data");
  if (!strcmp(kind, "get") && !debtor) CHECK(mismatch(buffer, 99, bytes) < 0, "got wrong data");
  return worst;
}

static int ascending(const void* a, const void* b) { return (*(double*)a > *(double*)b) - (*(double*)a < *(double*)b); }

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  kind = argc > 1 ? argv[1] : "send";
  bytes = argc > 2 ? (size_t)atol(argv[2]) : (size_t)16 << 20;
  int repetitions = argc > 3 ? atoi(argv[3]) : 5;
  CHECK(world_size % 2 == 0, "an even number of ranks");
  *(void**)&host_barrier = host_function("PMPI_Barrier");
  *(void**)&host_bcast = host_function("PMPI_Bcast");
  CHECK(host_barrier && host_bcast, "the host's functions");
  debtor = world_rank % 2 == 0;
  partner = debtor ? world_rank + 1 : world_rank - 1;
  buffer = calloc(bytes, 1);
  window_memory = calloc(bytes, 1);
  char* attached = NULL;
  if (!strcmp(kind, "bsend") && debtor) {
    attached = malloc(2 * bytes + MPI_BSEND_OVERHEAD + 4096);
    MPI_Buffer_attach(attached, (int)(2 * bytes + MPI_BSEND_OVERHEAD + 4096));
  }
  if (one_sided()) {
    fill(window_memory, 99, bytes);
    MPI_Win_create(window_memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  const char* path = "none";
  double times[2][kMost] = {{0}}, idle = 0;
  for (int n = -1; n < repetitions; n++)
    for (Waiting way = HOST; way <= OURS; way++) {
      double took = round_trip(way, &path, (uint64_t)(2 * n + (int)way + 5) * 64 + (uint64_t)(world_rank / 2));
      if (n >= 0) times[way][n] = took;
    }
  idle = round_trip(IDLE, &path, 7777 + (uint64_t)(world_rank / 2));
  for (int way = 0; way < 2; way++) qsort(times[way], (size_t)repetitions, sizeof(double), ascending);
  if (world_rank == 0)
    printf("RESULT {\"ours_s\": %.6f, \"host_s\": %.6f, \"idle_s\": %.6f, \"path\": \"%s\"}\n",
           times[OURS][repetitions / 2], times[HOST][repetitions / 2], idle, path);
  if (one_sided()) MPI_Win_free(&window);
  if (attached) {
    void* address;
    int bound;
    MPI_Buffer_detach(&address, &bound);
    free(attached);
  }
  free(buffer), free(window_memory);
  MPI_Finalize();
  return 0;
}
