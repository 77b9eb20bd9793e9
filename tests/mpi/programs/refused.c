// SPDX-License-Identifier: BSD-3-Clause
// Calls that MPI refuses at once, each made by one rank alone, with MPI_ERRORS_RETURN. All ranks
// then make right calls. They must be in step, as on every MPI.
//   refused [late]
// Prints for each rank what was not refused, and how many errors and wrong values came in the right
// calls. late: the faulty rank sleeps before it goes on.
#include "robust.h"

enum { kMost = 16 };
static MPI_Comm comm;
static int wrong_values, errors, not_refused;

// `right` is evaluated after the call.
#define EXPECT(call, right)    \
  do {                         \
    if ((call) != MPI_SUCCESS) \
      errors++;                \
    else if (!(right))         \
      wrong_values++;          \
  } while (0)

// ---- The wrong calls ----

enum { kRoot, kCount, kType, kOp, kBuffer, kInPlace, kArray, kMistakes };
static const char* const kNames[kMistakes] = {"root", "count", "type", "op", "buffer", "in_place", "array"};
enum { kBcast, kGather, kScatter, kAllgather, kAlltoallv, kReduce, kAllreduce, kReduceScatter, kScan, kCalls };
static const char* const kCallNames[kCalls] = {"bcast",  "gather",    "scatter",        "allgather", "alltoallv",
                                               "reduce", "allreduce", "reduce_scatter", "scan"};

static int applies(int call, int mistake) {
  const int rooted = call == kBcast || call == kGather || call == kScatter || call == kReduce;
  if (mistake == kRoot) return rooted;
  if (mistake == kOp) return call >= kReduce;
  if (mistake == kArray) return call == kAlltoallv;
  if (mistake == kInPlace) return call != kBcast && call != kScatter && call != kGather && call != kReduce;
  return 1;
}

static int refused_call(int call, int mistake) {
  static int buffer[kMost], other[kMost], counts[kMost], places[kMost];
  const int root = mistake == kRoot ? world_size + 70 : world_rank;
  const int count = mistake == kCount ? -1 : 1;
  const MPI_Datatype type = mistake == kType ? MPI_DATATYPE_NULL : MPI_INT;
  const MPI_Op op = mistake == kOp ? MPI_OP_NULL : MPI_SUM;
  int* const send = mistake == kBuffer ? NULL : buffer;
  void* const receive = mistake == kInPlace ? MPI_IN_PLACE : other;
  for (int r = 0; r < world_size; r++) counts[r] = count, places[r] = r;
  switch (call) {
    case kBcast: return MPI_Bcast(send, count, type, root, comm);
    case kGather: return MPI_Gather(send, count, type, receive, 1, MPI_INT, root, comm);
    case kScatter: return MPI_Scatter(send, count, type, receive, 1, MPI_INT, root, comm);
    case kAllgather: return MPI_Allgather(send, count, type, receive, 1, MPI_INT, comm);
    case kAlltoallv:
      return MPI_Alltoallv(send, mistake == kArray ? NULL : counts, places, type, receive, counts, places, MPI_INT,
                           comm);
    case kReduce: return MPI_Reduce(send, receive, count, type, op, root, comm);
    case kAllreduce: return MPI_Allreduce(send, receive, count, type, op, comm);
    case kReduceScatter: return MPI_Reduce_scatter(send, receive, counts, type, op, comm);
    default: return MPI_Scan(send, receive, count, type, op, comm);
  }
}

// ---- The right ones ----

static void right_calls(int round) {
  for (int k = 0; k < 3; k++) {
    const int root = k % world_size, value = 1000 * round + k;
    int x = world_rank == root ? value : -1, all[kMost], mine = value + world_rank, sum = -1;
    EXPECT(MPI_Bcast(&x, 1, MPI_INT, root, comm), x == value);
    for (int r = 0; r < world_size; r++) all[r] = -1;
    EXPECT(MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, comm),
           world_rank != root || all[world_size - 1] == value + world_size - 1);
    for (int r = 0; r < world_size; r++) all[r] = value + 2 * r;
    x = -1;
    EXPECT(MPI_Scatter(all, 1, MPI_INT, &x, 1, MPI_INT, root, comm), x == value + 2 * world_rank);
    EXPECT(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm),
           sum == world_size * value + world_size * (world_size - 1) / 2);
    sum = -1;
    EXPECT(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, comm),
           world_rank != root || sum == world_size * value + world_size * (world_size - 1) / 2);
    int counts[kMost], places[kMost], give[kMost], take[kMost], right = 1;
    for (int r = 0; r < world_size; r++)
      counts[r] = 1, places[r] = r, give[r] = value + 10 * world_rank + r, take[r] = -1;
    const int code = MPI_Alltoallv(give, counts, places, MPI_INT, take, counts, places, MPI_INT, comm);
    for (int r = 0; r < world_size; r++) right = right && take[r] == value + 10 * r + world_rank;
    EXPECT(code, right);
  }
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int k = 0; k < 8; k++) MPI_Barrier(comm);
  if (argc > 1) {
    if (world_rank == 1) {
      if (refused_call(kBcast, kRoot) == MPI_SUCCESS) not_refused++;
      sleep_ms(2500);
    }
    right_calls(1);
  }
  for (int call = 0, round = 0; call < kCalls && argc == 1; call++) {
    for (int mistake = 0; mistake < kMistakes; mistake++) {
      if (!applies(call, mistake)) continue;
      const int before = wrong_values + errors;
      if (world_rank == round % world_size && refused_call(call, mistake) == MPI_SUCCESS) {
        printf("rank %d: %s with a wrong %s is not refused\n", world_rank, kCallNames[call], kNames[mistake]);
        not_refused++;
      }
      right_calls(++round);
      if (wrong_values + errors != before)
        printf("rank %d: after %s with a wrong %s\n", world_rank, kCallNames[call], kNames[mistake]);
    }
  }
  printf("RESULT {\"rank\": %d, \"not_refused\": %d, \"errors\": %d, \"wrong_values\": %d, \"path\": \"%s\"}\n",
         world_rank, not_refused, errors, wrong_values, last_path());
  fflush(stdout);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
