// SPDX-License-Identifier: BSD-3-Clause
// Collectives that may return early, against what each rank computes itself: early_calls SEED
// Reductions on predefined types, in place and not, long, short and empty, and Alltoallw. Ranks
// come late at random, and change what they have sent as soon as a call returns. A line for each
// collective and rank says how many bytes were wrong, and how many calls have returned early.
#include "robust.h"

enum { kMostBytes = 700000, kBehind = 64, kTypes = 9, kCounts = 4 };

typedef struct {
  MPI_Datatype type;
  size_t bytes;
  char kind;  // i: whole numbers, f: floating-point numbers, c: complex ones, p: pairs
} Type;

static Type types[kTypes];
static char *send, *receive, *expected, *sum, *other;
static int *counts, *displs;
static MPI_Datatype* blocks;
static unsigned draws;

static unsigned draw(unsigned below) {
  draws = draws * 1664525u + 1013904223u;
  return (draws >> 8) % below;
}

static void set_types(void) {
  const Type all[kTypes] = {{MPI_INT, 4, 'i'},    {MPI_DOUBLE, 8, 'f'},   {MPI_FLOAT, 4, 'f'},
                            {MPI_INT8_T, 1, 'i'}, {MPI_UINT64_T, 8, 'i'}, {MPI_C_DOUBLE_COMPLEX, 16, 'c'},
                            {MPI_2INT, 8, 'p'},   {MPI_SHORT, 2, 'i'},    {MPI_C_FLOAT_COMPLEX, 8, 'c'}};
  memcpy(types, all, sizeof types);
}

// Small numbers, whose sums are exact in any order.
static void fill_numbers(char* to, const Type* t, size_t elements, int rank) {
  for (size_t i = 0; i < elements; ++i) {
    const int value = (int)((i * 7 + (size_t)rank * 3 + draws) % 5);
    const double number = value;
    const float single = (float)value;
    char* at = to + i * t->bytes;
    if (t->kind == 'f') memcpy(at, t->bytes == 8 ? (const void*)&number : (const void*)&single, t->bytes);
    if (t->kind == 'i') {
      const uint64_t whole = (uint64_t)value;  // little endian, as all that is served
      memcpy(at, &whole, t->bytes);
    }
    for (int part = 0; part < 2 && t->kind == 'c'; ++part)
      memcpy(at + (size_t)part * t->bytes / 2, t->bytes == 16 ? (const void*)&number : (const void*)&single,
             t->bytes / 2);
    if (t->kind == 'p') {
      const int pair[2] = {value, (int)(i % 11) + rank};
      memcpy(at, pair, sizeof pair);
    }
  }
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

enum {
  kAllreduce,
  kReduce,
  kReduceScatter,
  kReduceScatterBlock,
  kScan,
  kExscan,
  kAlltoallw,
  kOwnFunction,
  kCollectives
};
static const char* const names[kCollectives] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block",
                                                "scan",      "exscan", "alltoallw",      "own function"};

// How many bytes of the result count on this rank; 0: none.
static size_t result_elements(int what, size_t each, int root) {
  switch (what) {
    case kReduce: return world_rank == root ? each * (size_t)world_size : 0;
    case kReduceScatter: return (size_t)counts[world_rank];
    case kReduceScatterBlock: return each;
    case kExscan: return world_rank == 0 ? 0 : each * (size_t)world_size;
    default: return each * (size_t)world_size;
  }
}

// What this rank is to get, from the contributions of all.
static void compute(int what, const Type* t, size_t each, MPI_Op op, size_t result) {
  const size_t all = each * (size_t)world_size, part = each * t->bytes;
  const int last = what == kScan ? world_rank : what == kExscan ? world_rank - 1 : world_size - 1;
  for (int r = 0; r <= last; ++r) {
    fill_numbers(r == 0 ? sum : other, t, all, r);
    if (what == kAlltoallw)
      memcpy(expected + (size_t)r * part, (r == 0 ? sum : other) + (size_t)world_rank * part, part);
    else if (r != 0)
      MPI_Reduce_local(other, sum, (int)all, t->type, op);
  }
  size_t before = what == kReduceScatterBlock ? (size_t)world_rank * part : 0;
  for (int r = 0; r < world_rank && what == kReduceScatter; ++r) before += (size_t)counts[r] * t->bytes;
  if (what != kAlltoallw) memcpy(expected, sum + before, result);
}

static void call(int what, const Type* t, size_t each, MPI_Op op, int root, const void* from) {
  const int all = (int)each * world_size;
  switch (what) {
    case kAllreduce:
    case kOwnFunction: MPI_Allreduce(from, receive, all, t->type, op, MPI_COMM_WORLD); break;
    case kReduce: MPI_Reduce(from, receive, all, t->type, op, root, MPI_COMM_WORLD); break;
    case kReduceScatter: MPI_Reduce_scatter(from, receive, counts, t->type, op, MPI_COMM_WORLD); break;
    case kReduceScatterBlock: MPI_Reduce_scatter_block(from, receive, (int)each, t->type, op, MPI_COMM_WORLD); break;
    case kScan: MPI_Scan(from, receive, all, t->type, op, MPI_COMM_WORLD); break;
    case kExscan: MPI_Exscan(from, receive, all, t->type, op, MPI_COMM_WORLD); break;
    default: MPI_Alltoallw(from, counts, displs, blocks, receive, counts, displs, blocks, MPI_COMM_WORLD);
  }
}

// Returns how many bytes are wrong. All ranks draw alike, but for how late they come.
static long check_call(int what, const Type* t, size_t each, MPI_Op op, int root, int in_place, int* early) {
  const int all = (int)(each * (size_t)world_size);
  const size_t bytes = (size_t)all * t->bytes;
  for (int r = 0, at = 0; r < world_size; ++r) {
    // The same in all pairs of an Alltoallw; in a Reduce_scatter some parts are empty.
    counts[r] = what == kAlltoallw ? (int)each : r + 1 < world_size ? (int)(each / 2) * (r % 3) : all - at;
    displs[r] = at * (what == kAlltoallw ? (int)t->bytes : 1);
    blocks[r] = t->type;
    at += counts[r];
  }
  const size_t result = result_elements(what, each, root) * t->bytes;
  const int aside = in_place && (what != kReduce || world_rank == root);
  fill_numbers(send, t, (size_t)all, world_rank);
  memset(receive, 9, kMostBytes + kBehind);
  if (aside) memcpy(receive, send, bytes);
  memcpy(expected, receive, kMostBytes + kBehind);
  compute(what, t, each, op, result);
  if (rand() % 4 == 0) usleep((useconds_t)(rand() % 4000));
  call(what, t, each, op, root, aside ? MPI_IN_PLACE : send);
  *early += is_early();
  memset(send, 7, bytes);
  long wrong = 0;
  // In place, what lies behind the result of a Reduce_scatter is not defined.
  const size_t end = aside ? bytes : result;
  for (size_t i = kMostBytes + kBehind; i-- > 0;) wrong += (i < result || i >= end) && receive[i] != expected[i];
  return wrong;
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  draws = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  srand(draws + (unsigned)world_rank);
  set_types();
  char** const buffers[] = {&send, &receive, &expected, &sum, &other};
  for (int i = 0; i < 5; ++i) *buffers[i] = malloc(kMostBytes + kBehind);
  counts = malloc((size_t)world_size * sizeof(int));
  displs = malloc((size_t)world_size * sizeof(int));
  blocks = malloc((size_t)world_size * sizeof(MPI_Datatype));
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  const size_t lengths[kCounts] = {600000, 250001, 5000, 0};  // bytes of all
  for (int what = 0; what < kCollectives; ++what) {
    long wrong = 0;
    int early = 0;
    for (int i = 0; i < kTypes * kCounts; ++i) {
      const Type* const t = &types[what == kOwnFunction ? 0 : i % kTypes];
      const size_t each = lengths[i / kTypes] / t->bytes / (size_t)world_size;
      const MPI_Op op = what == kOwnFunction      ? own
                        : t->kind == 'p'          ? MPI_MAXLOC
                        : i % 2 && t->kind != 'c' ? MPI_MAX
                                                  : MPI_SUM;
      const int root = (int)draw((unsigned)world_size), in_place = (int)draw(2);
      wrong += check_call(what, t, each, op, root, in_place, &early);
    }
    printf("RESULT {\"case\": \"%s\", \"wrong\": %ld, \"early\": %d}\n", names[what], wrong, early);
    fflush(stdout);
  }
  MPI_Op_free(&own);
  MPI_Finalize();
  return 0;
}
