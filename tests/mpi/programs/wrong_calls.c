// SPDX-License-Identifier: BSD-3-Clause
// Calls that contradict each other, one kind after the other, each on a communicator of its own
// with MPI_ERRORS_RETURN.
//   wrong_calls KIND...
// The last rank is the odd one out. Every kind ends with a Barrier on its communicator, so that a
// rank whose call needed no peer meets the others. Prints for each kind and rank the classes of the
// errors seen, of the call and of the Barrier.
#include "robust.h"

enum { kMany = 1 << 20 };
static MPI_Comm comm;
static int odd;
static char *give, *take;

static const char* class_name(int code) {
  static const struct {
    int value;
    const char* name;
  } kNames[] = {
      {MPI_SUCCESS, "SUCCESS"}, {MPI_ERR_TRUNCATE, "TRUNCATE"}, {MPI_ERR_COUNT, "COUNT"}, {MPI_ERR_TYPE, "TYPE"},
      {MPI_ERR_ROOT, "ROOT"},   {MPI_ERR_BUFFER, "BUFFER"},     {MPI_ERR_ARG, "ARG"},     {MPI_ERR_OP, "OP"},
      {MPI_ERR_OTHER, "OTHER"}};
  int class = -1;
  MPI_Error_class(code, &class);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++)
    if (class == kNames[i].value) return kNames[i].name;
  return "another class";
}

static void concatenate(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; i++) ((int*)inout)[i] += ((int*)in)[i];
}

// ---- The kinds: lengths differ from kind to kind, so a message tells its kind ----

static int collective(void) { return odd ? MPI_Bcast(give, 11, MPI_BYTE, 0, comm) : MPI_Barrier(comm); }
static int bcast_root(void) { return MPI_Bcast(give, 12, MPI_BYTE, odd ? 2 : 0, comm); }
static int reduce_root(void) { return MPI_Reduce(give, take, 13, MPI_INT, MPI_SUM, odd ? 1 : 0, comm); }
static int gather_root(void) { return MPI_Gather(give, 14, MPI_BYTE, take, 14, MPI_BYTE, odd ? 2 : 0, comm); }
static int scatter_root(void) { return MPI_Scatter(give, 15, MPI_BYTE, take, 15, MPI_BYTE, odd ? 2 : 0, comm); }
static int long_bcast_root(void) { return MPI_Bcast(give, 600000, MPI_BYTE, odd ? 2 : 0, comm); }
static int allreduce_op(void) { return MPI_Allreduce(give, take, 16, MPI_DOUBLE, odd ? MPI_MAX : MPI_SUM, comm); }
static int scan_op(void) { return MPI_Scan(give, take, 17, MPI_LONG, odd ? MPI_PROD : MPI_SUM, comm); }
static int user_op(void) {
  MPI_Op op;
  MPI_Op_create(concatenate, 1, &op);
  const int code = MPI_Allreduce(give, take, 18, MPI_INT, odd ? op : MPI_SUM, comm);
  MPI_Op_free(&op);
  return code;
}
static int allreduce_type(void) {
  return odd ? MPI_Allreduce(give, take, 38, MPI_INT, MPI_SUM, comm)
             : MPI_Allreduce(give, take, 19, MPI_DOUBLE, MPI_SUM, comm);
}
static int allreduce_count(void) { return MPI_Allreduce(give, take, odd ? 20 : 21, MPI_INT, MPI_SUM, comm); }
static int long_allreduce_count(void) { return MPI_Allreduce(give, take, odd ? 22 : 22000, MPI_DOUBLE, MPI_SUM, comm); }
static int reduce_scatter_counts(void) {
  const int usual[3] = {23, 1, 2}, other[3] = {1, 23, 2};
  return MPI_Reduce_scatter(give, take, odd ? other : usual, MPI_INT, MPI_SUM, comm);
}
static int bcast_type(void) { return MPI_Bcast(give, odd ? 48 : 24, odd ? MPI_INT : MPI_DOUBLE, 0, comm); }
static int gather_type(void) {
  return MPI_Gather(give, odd ? 50 : 25, odd ? MPI_FLOAT : MPI_LONG, take, 25, MPI_LONG, 0, comm);
}
static int bytes_for_doubles(void) { return MPI_Bcast(give, odd ? 208 : 26, odd ? MPI_BYTE : MPI_DOUBLE, 0, comm); }
static int same_signature(void) {
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  const int code = MPI_Bcast(give, odd ? 54 : 27, odd ? MPI_INT : pair, 0, comm);
  MPI_Type_free(&pair);
  return code;
}
static int truncated(void) { return MPI_Bcast(give, odd ? 14 : 28, MPI_BYTE, 0, comm); }
static int alltoallv_counts(void) {
  int send[3] = {29, 29, 29}, receive[3] = {29, odd ? 28 : 29, 29}, places[3] = {0, 100, 200};
  return MPI_Alltoallv(give, send, places, MPI_BYTE, take, receive, places, MPI_BYTE, comm);
}
static int a_call_left_out(void) {
  const int code = odd ? MPI_SUCCESS : MPI_Bcast(give, 30, MPI_BYTE, 0, comm);
  const int next = MPI_Allreduce(give, take, 31, MPI_INT, MPI_SUM, comm);
  if (odd) MPI_Barrier(comm);  // as many calls as the others, so that all come to an end
  return code != MPI_SUCCESS ? code : next;
}
static int order(void) {
  const int code =
      odd ? MPI_Bcast(give, 32, MPI_BYTE, 0, comm) : MPI_Allgather(give, 33, MPI_BYTE, take, 33, MPI_BYTE, comm);
  const int next =
      odd ? MPI_Allgather(give, 33, MPI_BYTE, take, 33, MPI_BYTE, comm) : MPI_Bcast(give, 32, MPI_BYTE, 0, comm);
  return code != MPI_SUCCESS ? code : next;
}
static int negative_count(void) { return MPI_Allgather(give, odd ? -1 : 34, MPI_BYTE, take, 34, MPI_BYTE, comm); }
static int no_such_root(void) { return MPI_Reduce(give, take, 35, MPI_INT, MPI_SUM, odd ? 99 : 0, comm); }
static int null_type(void) {
  return MPI_Allgather(give, 36, odd ? MPI_DATATYPE_NULL : MPI_BYTE, take, 36, MPI_BYTE, comm);
}
static int freed_type(void) {
  MPI_Datatype type;
  MPI_Type_contiguous(4, MPI_INT, &type);
  MPI_Type_commit(&type);
  if (odd) MPI_Type_free(&type);
  const int code = MPI_Allgather(give, 37, type, take, 4 * 37, MPI_INT, comm);
  if (!odd) MPI_Type_free(&type);
  return code;
}
// The handler of this communicator alone returns errors.
static int uncommitted_type(void) {
  MPI_Datatype type;
  MPI_Type_contiguous(4, MPI_INT, &type);
  if (!odd) MPI_Type_commit(&type);
  const int code = MPI_Allgather(give, 43, type, take, 4 * 43, MPI_INT, comm);
  MPI_Type_free(&type);
  return code;
}
static int uncommitted_operands(void) {
  MPI_Datatype type;
  MPI_Op op;
  MPI_Type_contiguous(1, MPI_INT, &type);
  MPI_Op_create(concatenate, 1, &op);
  const int code = MPI_Allreduce(give, take, 44, type, op, comm);
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  return code;
}
static int null_buffer(void) { return MPI_Allreduce(odd ? NULL : give, take, 39, MPI_INT, MPI_SUM, comm); }
static int null_op(void) { return MPI_Allreduce(give, take, 40, MPI_INT, odd ? MPI_OP_NULL : MPI_SUM, comm); }
static int op_not_for_type(void) {
  const int code = MPI_Allreduce(give, take, 41, MPI_DOUBLE, odd ? MPI_BAND : MPI_SUM, comm);
  if (odd) MPI_Barrier(comm);  // the MPI refuses before the rank meets any other
  return code;
}
static int misplaced_in_place(void) {
  return MPI_Allgather(give, 42, MPI_BYTE, odd ? MPI_IN_PLACE : take, 42, MPI_BYTE, comm);
}

static const struct {
  const char* name;
  int (*call)(void);
} kKinds[] = {
#define KIND(name) {#name, name}
    KIND(collective),
    KIND(bcast_root),
    KIND(reduce_root),
    KIND(gather_root),
    KIND(scatter_root),
    KIND(long_bcast_root),
    KIND(allreduce_op),
    KIND(scan_op),
    KIND(user_op),
    KIND(allreduce_type),
    KIND(allreduce_count),
    KIND(long_allreduce_count),
    KIND(reduce_scatter_counts),
    KIND(bcast_type),
    KIND(gather_type),
    KIND(bytes_for_doubles),
    KIND(same_signature),
    KIND(truncated),
    KIND(alltoallv_counts),
    KIND(a_call_left_out),
    KIND(order),
    KIND(negative_count),
    KIND(no_such_root),
    KIND(null_type),
    KIND(freed_type),
    KIND(uncommitted_type),
    KIND(uncommitted_operands),
    KIND(null_buffer),
    KIND(null_op),
    KIND(op_not_for_type),
    KIND(misplaced_in_place)};

static void run(const char* name) {
  size_t k = 0;
  while (k < sizeof kKinds / sizeof *kKinds && strcmp(kKinds[k].name, name)) k++;
  CHECK(k < sizeof kKinds / sizeof *kKinds, "unknown kind '%s'", name);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const double began = now_s();
  const int code = kKinds[k].call();
  const int then = MPI_Barrier(comm);
  printf("RESULT {\"kind\": \"%s\", \"rank\": %d, \"call\": \"%s\", \"then\": \"%s\", \"seconds\": %.3f}\n", name,
         world_rank, class_name(code), class_name(then), now_s() - began);
  fflush(stdout);
  MPI_Comm_free(&comm);
  sleep_ms(250);  // messages are limited per second
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  odd = world_rank == world_size - 1;
  give = calloc(kMany, 1), take = calloc(kMany, 1);
  for (int i = 1; i < argc; i++) run(argv[i]);
  free(give), free(take);
  MPI_Finalize();
  return 0;
}
