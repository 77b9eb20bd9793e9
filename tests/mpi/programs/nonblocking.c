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
//   nonblocking errors          wrong arguments, and messages that are too long
// Prints RESULT with the number of wrong values, for each rank.
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

static void user_sum(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
}
static MPI_Op user_op;
static MPI_Datatype pairs;  // every other int of two

static void post(struct Call* c, MPI_Comm comm) {
  const int n = c->count, most = (n + 2) * size * 2 + 2, is_root = rank == c->root;
  int* s = c->send = malloc(sizeof(int) * most);
  int* r = c->receive = malloc(sizeof(int) * most);
  c->counts = malloc(sizeof(int) * size * 2);
  c->displs = malloc(sizeof(int) * size * 2);
  c->types = malloc(sizeof(MPI_Datatype) * size);
  for (int i = 0; i < most; ++i) s[i] = value(c->k, rank, i), r[i] = -1;
  for (int p = 0, at = 0; p < size; ++p) {
    c->counts[p] = part_of(c, p);
    c->displs[p] = at;
    at += c->counts[p];
    c->types[p] = MPI_INT;
  }
  void* own = c->in_place ? MPI_IN_PLACE : (void*)s;
  MPI_Request* q = &c->request;
  switch (c->kind) {
    case kBarrier: MPI_Ibarrier(comm, q); break;
    case kBcast:
      if (is_root) memcpy(r, s, sizeof(int) * n);
      MPI_Ibcast(r, n, MPI_INT, c->root, comm, q);
      break;
    case kGather:
      if (c->in_place && is_root) memcpy(r + rank * n, s, sizeof(int) * n);
      MPI_Igather(is_root ? own : s, n, MPI_INT, r, n, MPI_INT, c->root, comm, q);
      break;
    case kGatherv:
      MPI_Igatherv(s, part_of(c, rank), MPI_INT, r, c->counts, c->displs, MPI_INT, c->root, comm, q);
      break;
    case kScatter: MPI_Iscatter(s, n, MPI_INT, r, n, MPI_INT, c->root, comm, q); break;
    case kScatterv:
      MPI_Iscatterv(s, c->counts, c->displs, MPI_INT, r, part_of(c, rank), MPI_INT, c->root, comm, q);
      break;
    case kAllgather:
      if (c->in_place) memcpy(r + rank * n, s, sizeof(int) * n);
      MPI_Iallgather(own, n, MPI_INT, r, n, MPI_INT, comm, q);
      break;
    case kAllgatherv:
      if (c->in_place) memcpy(r + c->displs[rank], s, sizeof(int) * part_of(c, rank));
      MPI_Iallgatherv(own, part_of(c, rank), MPI_INT, r, c->counts, c->displs, MPI_INT, comm, q);
      break;
    case kAlltoall:
      if (c->in_place) memcpy(r, s, sizeof(int) * n * size);
      MPI_Ialltoall(own, n, MPI_INT, r, n, MPI_INT, comm, q);
      break;
    case kAlltoallv:
    case kAlltoallw:
      for (int p = 0, to = 0, from = 0; p < size; ++p) {  // rank r sends part_of((r + p) % size) to p
        c->counts[p] = part_of(c, (rank + p) % size);
        c->displs[p] = to;
        to += c->counts[p];
        c->counts[size + p] = c->counts[p];
        c->displs[size + p] = from;
        from += c->counts[size + p];
      }
      if (c->kind == kAlltoallv) {
        MPI_Ialltoallv(s, c->counts, c->displs, MPI_INT, r, c->counts + size, c->displs + size, MPI_INT, comm, q);
        break;
      }
      for (int p = 0; p < 2 * size; ++p) c->displs[p] *= (int)sizeof(int);
      MPI_Ialltoallw(s, c->counts, c->displs, c->types, r, c->counts + size, c->displs + size, c->types, comm, q);
      break;
    case kReduce: MPI_Ireduce(s, r, n, MPI_INT, MPI_SUM, c->root, comm, q); break;
    case kAllreduce:
      if (c->in_place) memcpy(r, s, sizeof(int) * n);
      MPI_Iallreduce(own, r, n, MPI_INT, MPI_SUM, comm, q);
      break;
    case kReduceScatter: MPI_Ireduce_scatter(s, r, c->counts, MPI_INT, MPI_SUM, comm, q); break;
    case kReduceScatterBlock: MPI_Ireduce_scatter_block(s, r, n, MPI_INT, MPI_SUM, comm, q); break;
    case kScan: MPI_Iscan(s, r, n, MPI_INT, MPI_SUM, comm, q); break;
    case kExscan: MPI_Iexscan(s, r, n, MPI_INT, MPI_SUM, comm, q); break;
    case kUserAllreduce: MPI_Iallreduce(s, r, n, MPI_INT, user_op, comm, q); break;
    case kMaxloc: MPI_Iallreduce(s, r, n / 2, MPI_2INT, MPI_MAXLOC, comm, q); break;
    case kVector:
      if (is_root) memcpy(r, s, sizeof(int) * 2 * n);
      MPI_Ibcast(r, n, pairs, c->root, comm, q);
      break;
    default: break;
  }
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
    case kReduce: return !is_root || i >= n || r[i] == sum(k, 0, size, i);
    case kAllreduce:
    case kUserAllreduce: return i >= n || r[i] == sum(k, 0, size, i);
    case kReduceScatter: return i >= part_of(c, rank) || r[i] == sum(k, 0, size, c->displs[rank] + i);
    case kReduceScatterBlock: return i >= n || r[i] == sum(k, 0, size, rank * n + i);
    case kScan: return i >= n || r[i] == sum(k, 0, rank + 1, i);
    case kExscan: return rank == 0 || i >= n || r[i] == sum(k, 0, rank, i);
    case kMaxloc: return i >= n / 2 * 2 || r[i] == value(k, size - 1, i);
    case kVector: return i >= 2 * n || r[i] == (is_root || i % 2 == 0 ? value(k, c->root, i) : -1);
    default: return 1;
  }
}

static void check(struct Call* c) {
  int right = 1;
  for (int i = 0; i < (c->count + 2) * size; ++i) right = right && is_right(c, i);
  expect(right, "call of kind", c->kind);
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
    for (int j = 0; j < outstanding; ++j) check(&calls[j]);
  }
  MPI_Comm_free(&comms[1]);
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
    MPI_Request requests[3];
    int mine = rank, all = -1, *words = malloc(sizeof(int) * 300000), *got = malloc(sizeof(int) * 300000);
    for (int i = 0; i < 300000; ++i) words[i] = i;
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Iallreduce(words, got, 300000, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    if (rank != 0) MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
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
    if (rank == 0) MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    expect(all == size * (size - 1) / 2 && got[299999] == size * 299999, "turn", turn);
    free(words);
    free(got);
  }
  MPI_Comm_free(&comm);
}

static void freed(void) {
  for (int turn = 0; turn < 20; ++turn) {
    MPI_Comm comm;
    MPI_Request requests[2];
    int mine = rank, all = -1, *words = malloc(sizeof(int) * 50000);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 5; ++i) MPI_Barrier(comm);
    for (int i = 0; i < 50000; ++i) words[i] = rank == 0 ? i : -1;
    MPI_Ibcast(words, 50000, MPI_INT, 0, comm, &requests[0]);
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
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
  if (rank == 0 && code == MPI_SUCCESS) code = heard;  // MPIs drop the code
  expect(rank == 0 ? class_of(code) == MPI_ERR_TRUNCATE : code == MPI_SUCCESS, "truncation", code);
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
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Op_create(user_sum, 1, &user_op);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pairs);
  MPI_Type_commit(&pairs);
  if (!strcmp(what, "random")) random_calls((unsigned)atoi(argv[2]), atoi(argv[3]));
  if (!strcmp(what, "ahead")) ahead();
  if (!strcmp(what, "held")) held();
  if (!strcmp(what, "freed")) freed();
  if (!strcmp(what, "threads")) threads(atoi(argv[2]));
  if (!strcmp(what, "errors")) errors();
  MPI_Type_free(&pairs);
  MPI_Op_free(&user_op);
  printf("RESULT {\"rank\": %d, \"wrong\": %d}\n", rank, wrong);
  MPI_Finalize();
  return 0;
}
