// SPDX-License-Identifier: BSD-3-Clause
// Collectives with requests for test programs: any kind, with arguments and data that follow from
// random numbers, nonblocking or persistent, and all ways to end requests.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 12, kLongest = 20000 };

static int rank, size, wrong;

static void expect(int right, const char* what, int k) {
  if (right) return;
  if (++wrong < 5) fprintf(stderr, "rank %d of %d: %s %d is wrong\n", rank, size, what, k);
}

// ---- Random numbers: the same on all ranks, or each rank's own ----

static unsigned next(unsigned long long* state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(*state >> 33);
}

// ---- One call ----

enum Kind {
  kBarrier,
  kBcast,
  kGather,
  kGatherv,
  kScatter,
  kScatterv,
  kAllgather,
  kAllgatherv,
  kAlltoall,
  kAlltoallv,
  kAlltoallw,
  kReduce,
  kAllreduce,
  kReduceScatter,
  kReduceScatterBlock,
  kScan,
  kExscan,
  kUserAllreduce,
  kUserReduce,
  kUserReduceScatter,
  kUserScan,
  kUserExscan,
  kMaxloc,
  kVector,
  kKinds
};

struct Call {
  enum Kind kind;
  int k, root, count, in_place;
  int *send, *receive, *counts, *displs;
  MPI_Datatype* types;
  MPI_Request request;
};

static int value(int k, int r, int i) { return k * 7919 + r * 31 + i % 1000; }
static int part_of(const struct Call* c, int r) { return c->count + r % 3; }

static pthread_t caller;  // the thread that may be in MPI calls; 0: several
static void user_sum(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  expect(caller == 0 || pthread_equal(caller, pthread_self()), "thread of the operation", 0);
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
}
static MPI_Op user_op;
static MPI_Datatype pairs;  // every other int of two

static int most_of(const struct Call* c) { return (c->count + 2) * size * 2 + 2; }

// The parts of an Alltoallv: rank r sends part_of((r + p) % size) to p.
static void lay_out_pairs(struct Call* c) {
  const int unit = c->kind == kAlltoallw ? (int)sizeof(int) : 1;
  for (int p = 0, to = 0, from = 0; p < size; ++p) {
    c->counts[p] = c->counts[size + p] = part_of(c, (rank + p) % size);
    c->displs[p] = to * unit;
    c->displs[size + p] = from * unit;
    to += c->counts[p];
    from += c->counts[size + p];
  }
}

static void make_room(struct Call* c) {
  c->send = malloc(sizeof(int) * (unsigned)most_of(c));
  c->receive = malloc(sizeof(int) * (unsigned)most_of(c));
  c->counts = malloc(sizeof(int) * (unsigned)size * 2);
  c->displs = malloc(sizeof(int) * (unsigned)size * 2);
  c->types = malloc(sizeof(MPI_Datatype) * (unsigned)size);
  for (int p = 0, at = 0; p < size; ++p) {
    c->counts[p] = part_of(c, p);
    c->displs[p] = at;
    at += c->counts[p];
    c->types[p] = MPI_INT;
  }
  if (c->kind == kAlltoallv || c->kind == kAlltoallw) lay_out_pairs(c);
}

// What the call sends, and what stands where it receives.
static void fill(struct Call* c, int k) {
  const int n = c->count, is_root = rank == c->root;
  int *s = c->send, *r = c->receive;
  c->k = k;
  for (int i = 0; i < most_of(c); ++i) s[i] = value(k, rank, i), r[i] = -1;
  if (is_root && c->kind == kBcast) memcpy(r, s, sizeof(int) * (unsigned)n);
  if (is_root && c->kind == kVector) memcpy(r, s, sizeof(int) * 2 * (unsigned)n);
  if (!c->in_place) return;
  if (c->kind == kAllgather || (c->kind == kGather && is_root)) memcpy(r + rank * n, s, sizeof(int) * (unsigned)n);
  if (c->kind == kAllgatherv) memcpy(r + c->displs[rank], s, sizeof(int) * (unsigned)part_of(c, rank));
  if (c->kind == kAlltoall) memcpy(r, s, sizeof(int) * (unsigned)(n * size));
  if (c->kind == kAllreduce || c->kind == kUserAllreduce) memcpy(r, s, sizeof(int) * (unsigned)n);
}

// MAKE(Bcast, bcast, arguments) makes the nonblocking call, or the persistent request.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define MAKE(name, lower, ...) \
  (persistent ? MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, q) : MPI_I##lower(__VA_ARGS__, q))
enum { kHasPersistent = 1 };
#else
#define MAKE(name, lower, ...) MPI_I##lower(__VA_ARGS__, q)
enum { kHasPersistent = 0 };
#endif

static void make(struct Call* c, MPI_Comm comm, int persistent) {
  const int n = c->count, is_root = rank == c->root;
  int *s = c->send, *r = c->receive, *counts = c->counts, *displs = c->displs;
  void* own = c->in_place ? MPI_IN_PLACE : (void*)s;
  MPI_Request* q = &c->request;
  (void)persistent;
  switch (c->kind) {
    case kBarrier: MAKE(Barrier, barrier, comm); break;
    case kBcast: MAKE(Bcast, bcast, r, n, MPI_INT, c->root, comm); break;
    case kGather: MAKE(Gather, gather, is_root ? own : s, n, MPI_INT, r, n, MPI_INT, c->root, comm); break;
    case kGatherv:
      MAKE(Gatherv, gatherv, s, part_of(c, rank), MPI_INT, r, counts, displs, MPI_INT, c->root, comm);
      break;
    case kScatter: MAKE(Scatter, scatter, s, n, MPI_INT, r, n, MPI_INT, c->root, comm); break;
    case kScatterv:
      MAKE(Scatterv, scatterv, s, counts, displs, MPI_INT, r, part_of(c, rank), MPI_INT, c->root, comm);
      break;
    case kAllgather: MAKE(Allgather, allgather, own, n, MPI_INT, r, n, MPI_INT, comm); break;
    case kAllgatherv:
      MAKE(Allgatherv, allgatherv, own, part_of(c, rank), MPI_INT, r, counts, displs, MPI_INT, comm);
      break;
    case kAlltoall: MAKE(Alltoall, alltoall, own, n, MPI_INT, r, n, MPI_INT, comm); break;
    case kAlltoallv:
      MAKE(Alltoallv, alltoallv, s, counts, displs, MPI_INT, r, counts + size, displs + size, MPI_INT, comm);
      break;
    case kAlltoallw:
      MAKE(Alltoallw, alltoallw, s, counts, displs, c->types, r, counts + size, displs + size, c->types, comm);
      break;
    case kReduce: MAKE(Reduce, reduce, s, r, n, MPI_INT, MPI_SUM, c->root, comm); break;
    case kAllreduce: MAKE(Allreduce, allreduce, own, r, n, MPI_INT, MPI_SUM, comm); break;
    case kReduceScatter: MAKE(Reduce_scatter, reduce_scatter, s, r, c->counts, MPI_INT, MPI_SUM, comm); break;
    case kReduceScatterBlock: MAKE(Reduce_scatter_block, reduce_scatter_block, s, r, n, MPI_INT, MPI_SUM, comm); break;
    case kScan: MAKE(Scan, scan, s, r, n, MPI_INT, MPI_SUM, comm); break;
    case kExscan: MAKE(Exscan, exscan, s, r, n, MPI_INT, MPI_SUM, comm); break;
    case kUserAllreduce: MAKE(Allreduce, allreduce, own, r, n, MPI_INT, user_op, comm); break;
    case kUserReduce: MAKE(Reduce, reduce, s, r, n, MPI_INT, user_op, c->root, comm); break;
    case kUserReduceScatter: MAKE(Reduce_scatter, reduce_scatter, s, r, counts, MPI_INT, user_op, comm); break;
    case kUserScan: MAKE(Scan, scan, s, r, n, MPI_INT, user_op, comm); break;
    case kUserExscan: MAKE(Exscan, exscan, s, r, n, MPI_INT, user_op, comm); break;
    case kMaxloc: MAKE(Allreduce, allreduce, s, r, n / 2, MPI_2INT, MPI_MAXLOC, comm); break;
    case kVector: MAKE(Bcast, bcast, r, n, pairs, c->root, comm); break;
    default: break;
  }
}

static void post(struct Call* c, MPI_Comm comm) {
  make_room(c);
  fill(c, c->k);
  make(c, comm, 0);
}

static int sum(int k, int from, int to, int i) {
  int all = 0;
  for (int p = from; p < to; ++p) all += value(k, p, i);
  return all;
}

static int is_right(const struct Call* c, int i) {
  const int n = c->count, k = c->k, *r = c->receive, is_root = rank == c->root;
  switch (c->kind) {
    case kBcast: return i >= n || r[i] == value(k, c->root, i);
    case kGather: return !is_root || i >= n * size || r[i] == value(k, i / n, i % n);
    case kScatter: return i >= n || r[i] == value(k, c->root, rank * n + i);
    case kScatterv: return i >= part_of(c, rank) || r[i] == value(k, c->root, c->displs[rank] + i);
    case kAllgather: return i >= n * size || r[i] == value(k, i / n, i % n);
    case kGatherv:
    case kAllgatherv: {
      if (c->kind == kGatherv && !is_root) return 1;
      int p = size - 1;
      while (p > 0 && i < c->displs[p]) --p;
      return i - c->displs[p] >= c->counts[p] || r[i] == value(k, p, i - c->displs[p]);
    }
    case kAlltoall: return i >= n * size || r[i] == value(k, i / n, rank * n + i % n);
    case kAlltoallv:
    case kAlltoallw: {
      for (int p = 0; p < size; ++p) {
        int begin = c->displs[size + p], sent = 0;
        if (c->kind == kAlltoallw) begin /= (int)sizeof(int);
        if (i < begin || i >= begin + c->counts[size + p]) continue;
        for (int to = 0; to < rank; ++to) sent += part_of(c, (p + to) % size);
        return r[i] == value(k, p, sent + i - begin);
      }
      return 1;
    }
    case kReduce:
    case kUserReduce: return !is_root || i >= n || r[i] == sum(k, 0, size, i);
    case kAllreduce:
    case kUserAllreduce: return i >= n || r[i] == sum(k, 0, size, i);
    case kReduceScatter:
    case kUserReduceScatter: return i >= part_of(c, rank) || r[i] == sum(k, 0, size, c->displs[rank] + i);
    case kReduceScatterBlock: return i >= n || r[i] == sum(k, 0, size, rank * n + i);
    case kScan:
    case kUserScan: return i >= n || r[i] == sum(k, 0, rank + 1, i);
    case kExscan:
    case kUserExscan: return rank == 0 || i >= n || r[i] == sum(k, 0, rank, i);
    case kMaxloc: return i >= n / 2 * 2 || r[i] == value(k, size - 1, i);
    case kVector: return i >= 2 * n || r[i] == (is_root || i % 2 == 0 ? value(k, c->root, i) : -1);
    default: return 1;
  }
}

static void compare(const struct Call* c) {
  int right = 1;
  for (int i = 0; i < (c->count + 2) * size; ++i) right = right && is_right(c, i);
  expect(right, "call of kind", c->kind);
}

static void give_back_room(struct Call* c) {
  free(c->send);
  free(c->receive);
  free(c->counts);
  free(c->displs);
  free(c->types);
}

static struct Call draw(unsigned long long* alike, int k) {
  static const int counts[] = {0, 1, 3, 17, 100, 700, 5000, kLongest};
  struct Call c = {.kind = next(alike) % kKinds, .k = k};
  c.root = (int)(next(alike) % (unsigned)size);
  c.count = counts[next(alike) % 8];
  if (c.count == kLongest && size > 4) c.count /= 4;
  if (c.kind == kVector) c.count /= 2;
  c.in_place = next(alike) % 3 == 0;
  return c;
}

// ---- Ends of requests ----

// Ends some of these requests in one of the ways of MPI. All of them in the last round.
static void end_some(MPI_Request* requests, int n, unsigned how, int all) {
  int flag = 0, index = 0, done = 0, indices[4 * kMost];
  if (all) how = how % 2 ? 5 : 6;
  switch (how % 7) {
    case 0: MPI_Test(&requests[how % (unsigned)n], &flag, MPI_STATUS_IGNORE); break;
    case 1: MPI_Testany(n, requests, &index, &flag, MPI_STATUS_IGNORE); break;
    case 2: MPI_Testsome(n, requests, &done, indices, MPI_STATUSES_IGNORE); break;
    case 3: MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE); break;
    case 4: MPI_Wait(&requests[how % (unsigned)n], MPI_STATUS_IGNORE); break;
    case 5:
      do MPI_Waitsome(n, requests, &done, indices, MPI_STATUSES_IGNORE);
      while (all && done != MPI_UNDEFINED);
      break;
    default: MPI_Waitall(n, requests, MPI_STATUSES_IGNORE); break;
  }
}

static void random_begin(void) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Op_create(user_sum, 1, &user_op);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pairs);
  MPI_Type_commit(&pairs);
}

static void random_end(void) {
  MPI_Type_free(&pairs);
  MPI_Op_free(&user_op);
}
