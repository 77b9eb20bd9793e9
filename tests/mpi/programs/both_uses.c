// SPDX-License-Identifier: BSD-3-Clause
// Calls that return early and calls with requests, which share connections.
//   both_uses SEED N [killed]
// N calls of each kind at once, on MPI_COMM_WORLD and a duplicate, with random delays. Some buffers
// are freed while their data are under way. The heap keeps that memory, and Stretto gets it for
// buffers of its own. `killed`: the last rank ends in the middle, by a signal.
// Prints RESULT with the number of wrong values and of calls that returned early, for each rank.
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>

#include "calls_with_requests.h"

enum { kHeld = 4 };

static int early;

static int is_early(void) {
  const char* (*last_path)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "stretto_last_path");
  return last_path != NULL && strcmp(last_path(), "deferred") == 0;
}

// ---- A call that may return early ----

struct Long {
  int kind, k, root, count;  // of ints, from each rank
  int* buffer;               // null: there is no such call
};

static int parts_of(const struct Long* c) { return c->kind < 2 ? 1 : size; }

static struct Long draw_long(unsigned long long* alike, int k) {
  static const int counts[] = {20000, 50000, 77777, 200000};
  struct Long c = {.kind = (int)(next(alike) % 4), .k = k};
  c.root = (int)(next(alike) % (unsigned)size);
  c.count = counts[next(alike) % 4];
  return c;
}

static void make_long(struct Long* c, MPI_Comm comm) {
  const int n = c->count, all = n * parts_of(c), sent = c->kind == 3 ? all : n;
  int* const out = malloc(sizeof(int) * (unsigned)sent);
  int* const in = malloc(sizeof(int) * (unsigned)all);
  for (int i = 0; i < sent; ++i) out[i] = value(c->k, rank, i);
  for (int i = 0; i < all; ++i) in[i] = c->kind == 0 && rank == c->root ? out[i] : -1;
  switch (c->kind) {
    case 0: MPI_Bcast(in, n, MPI_INT, c->root, comm); break;
    case 1: MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, comm); break;
    case 2: MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, comm); break;
    default: MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, comm); break;
  }
  early += is_early();
  free(out);
  c->buffer = in;
}

static int is_long_right(const struct Long* c, int part, int i) {
  const int got = c->buffer[part * c->count + i];
  if (c->kind == 0) return got == value(c->k, c->root, i);
  if (c->kind == 1) return got == sum(c->k, 0, size, i);
  return got == value(c->k, part, c->kind == 2 ? i : rank * c->count + i);
}

// From the last part to the first, so that some are wanted before they come.
static void end_long(struct Long* c, int look) {
  int right = 1;
  if (c->buffer == NULL) return;
  for (int part = parts_of(c) - 1; look && part >= 0; --part)
    for (int i = 0; i < c->count; ++i) right = right && is_long_right(c, part, i);
  expect(right, "long call of kind", c->kind);
  free(c->buffer);
  c->buffer = NULL;
}

// ---- Both ----

static void both(unsigned seed, int count, int killed) {
  MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
  struct Long held[kHeld] = {{0}};
  unsigned long long alike = seed, own = seed * 97 + (unsigned)rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  for (int i = 0; i < 5; ++i) MPI_Barrier(comms[1]), MPI_Barrier(comms[0]);
  for (int k = 0; k < count;) {
    struct Call calls[kMost];
    MPI_Request requests[kMost];
    if (killed && rank == size - 1 && k > count / 2) raise(SIGKILL);
    const int outstanding = 1 + (int)(next(&alike) % (kMost - 1));
    for (int j = 0; j < outstanding; ++j, ++k) {
      calls[j] = draw(&alike, k);
      post(&calls[j], comms[next(&alike) % 2]);
      requests[j] = calls[j].request;
      if (next(&own) % 4 == 0) usleep(next(&own) % 2000);
      const unsigned at = next(&own) % kHeld;
      end_long(&held[at], 1);
      held[at] = draw_long(&alike, k);
      make_long(&held[at], comms[next(&alike) % 2]);
      if (next(&own) % 3 == 0) end_long(&held[at], 0);
      if (next(&own) % 3 == 0) end_some(requests, j + 1, next(&own) % 4, 0);
    }
    end_some(requests, outstanding, next(&own), 1);
    for (int j = 0; j < outstanding; ++j) compare(&calls[j]), give_back_room(&calls[j]);
  }
  MPI_Comm_free(&comms[1]);
  for (int i = 0; i < kHeld; ++i) end_long(&held[i], 1);
}

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  MPI_Init(&argc, &argv);
  random_begin();
  caller = pthread_self();
  both((unsigned)atoi(argv[1]), atoi(argv[2]), argc > 3);
  random_end();
  printf("RESULT {\"rank\": %d, \"wrong\": %d, \"early\": %d}\n", rank, wrong, early);
  MPI_Finalize();
  return 0;
}
