// SPDX-License-Identifier: BSD-3-Clause
// Wrong calls under MPI_ERRORS_RETURN. Each is reported where the standard says, no rank hangs, and
// the communicator goes on working.
//   errors_calls CASE...
// Prints one RESULT per case and rank: the error class that the rank saw, by name ("SUCCESS" for
// none), and whether the next calls on the communicator gave right results. Rank 1 makes the
// mistake.
#include "robust.h"

enum { kBytes = 50000, kSmall = 24, kMany = 64 * kBytes };
static MPI_Comm comm;
static char *send_buffer, *receive_buffer;

static const char* class_name(int code) {
  static const struct {
    int value;
    const char* name;
  } kNames[] = {{MPI_SUCCESS, "SUCCESS"},   {MPI_ERR_TRUNCATE, "TRUNCATE"}, {MPI_ERR_COUNT, "COUNT"},
                {MPI_ERR_TYPE, "TYPE"},     {MPI_ERR_ROOT, "ROOT"},         {MPI_ERR_COMM, "COMM"},
                {MPI_ERR_BUFFER, "BUFFER"}, {MPI_ERR_ARG, "ARG"},           {MPI_ERR_OP, "OP"},
                {MPI_ERR_OTHER, "OTHER"},   {MPI_ERR_INTERN, "INTERN"},     {MPI_ERR_UNKNOWN, "UNKNOWN"}};
  static char other[32];
  int class = -1;
  MPI_Error_class(code, &class);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++)
    if (class == kNames[i].value) return kNames[i].name;
  snprintf(other, sizeof other, "class %d", class);
  return other;
}

// Receives `take` bytes on rank 1, where `give` bytes come. The others receive all.
static int truncated(const char* operation, int give, int take) {
  int mine = world_rank == 1 ? take : give;
  int counts[64], displs[64];
  for (int r = 0; r < world_size; r++) counts[r] = give, displs[r] = r * give;
  if (!strcmp(operation, "bcast")) return MPI_Bcast(receive_buffer, mine, MPI_BYTE, 0, comm);
  if (!strcmp(operation, "scatter"))
    return MPI_Scatter(send_buffer, give, MPI_BYTE, receive_buffer, mine, MPI_BYTE, 0, comm);
  if (!strcmp(operation, "scatterv"))
    return MPI_Scatterv(send_buffer, counts, displs, MPI_BYTE, receive_buffer, mine, MPI_BYTE, 0, comm);
  if (!strcmp(operation, "gather"))  // the root suffers: rank 1
    return MPI_Gather(send_buffer, give, MPI_BYTE, receive_buffer, take, MPI_BYTE, 1, comm);
  if (!strcmp(operation, "gatherv")) {
    counts[world_size - 1] = take;
    return MPI_Gatherv(send_buffer, give, MPI_BYTE, receive_buffer, counts, displs, MPI_BYTE, 1, comm);
  }
  if (!strcmp(operation, "allgather"))
    return MPI_Allgather(send_buffer, give, MPI_BYTE, receive_buffer, world_rank == 1 ? take : give, MPI_BYTE, comm);
  if (!strcmp(operation, "alltoall"))
    return MPI_Alltoall(send_buffer, give, MPI_BYTE, receive_buffer, mine, MPI_BYTE, comm);
  if (world_rank == 1) counts[0] = take;
  if (!strcmp(operation, "alltoallv")) {
    int all[64];
    for (int r = 0; r < world_size; r++) all[r] = give;
    return MPI_Alltoallv(send_buffer, all, displs, MPI_BYTE, receive_buffer, counts, displs, MPI_BYTE, comm);
  }
  if (!strcmp(operation, "alltoallw")) {
    int all[64];
    MPI_Datatype types[64];
    for (int r = 0; r < world_size; r++) all[r] = give, types[r] = MPI_BYTE;
    return MPI_Alltoallw(send_buffer, all, displs, types, receive_buffer, counts, displs, types, comm);
  }
  return MPI_Allgatherv(send_buffer, give, MPI_BYTE, receive_buffer, counts, displs, MPI_BYTE, comm);
}

static int wrong_reduction(const char* operation, int count, MPI_Datatype type, MPI_Op op, int root) {
  int counts[64];
  for (int r = 0; r < world_size; r++) counts[r] = count;
  if (!strcmp(operation, "reduce")) return MPI_Reduce(send_buffer, receive_buffer, count, type, op, root, comm);
  if (!strcmp(operation, "allreduce")) return MPI_Allreduce(send_buffer, receive_buffer, count, type, op, comm);
  if (!strcmp(operation, "scan")) return MPI_Scan(send_buffer, receive_buffer, count, type, op, comm);
  if (!strcmp(operation, "exscan")) return MPI_Exscan(send_buffer, receive_buffer, count, type, op, comm);
  if (!strcmp(operation, "reduce_scatter"))
    return MPI_Reduce_scatter(send_buffer, receive_buffer, counts, type, op, comm);
  return MPI_Reduce_scatter_block(send_buffer, receive_buffer, count, type, op, comm);
}

// One argument of rank 1's call is wrong, if `wrong`.
static int call_with(int wrong, const char* which, const char* operation, int bytes) {
  int count = !wrong ? bytes : !strcmp(which, "count") ? -1 : !strcmp(which, "uneven") ? bytes / 2 : bytes;
  int last = !strcmp(which, "last_root");  // the root is the last rank
  int root = wrong && (last || !strcmp(which, "root")) ? world_size + 7 : last ? world_size - 1 : 0;
  MPI_Datatype type = wrong && !strcmp(which, "type") ? MPI_DATATYPE_NULL : MPI_BYTE;
  MPI_Op op = wrong && !strcmp(which, "op") ? MPI_OP_NULL : MPI_BOR;
  if (strstr(operation, "reduce") || strstr(operation, "scan"))
    return wrong_reduction(operation, count, type, op, root);
  if (!strcmp(operation, "bcast")) return MPI_Bcast(receive_buffer, count, type, root, comm);
  if (!strcmp(operation, "gather"))
    return MPI_Gather(send_buffer, count, type, receive_buffer, bytes, MPI_BYTE, root, comm);
  if (!strcmp(operation, "scatter"))
    return MPI_Scatter(send_buffer, bytes, MPI_BYTE, receive_buffer, count, type, root, comm);
  return MPI_Allgather(send_buffer, count, type, receive_buffer, bytes, MPI_BYTE, comm);
}

// A call that is refused is no call: rank 1 makes it again, with right arguments. A count that
// differs from the others' is the exception: MPI does not refuse it.
static int mistaken(const char* which, const char* operation, int bytes) {
  int wrong = world_rank == 1;
  int code = call_with(wrong, which, operation, bytes);
  if (!wrong || !strcmp(which, "uneven")) return code;
  if (call_with(0, which, operation, bytes)) return MPI_ERR_OTHER;
  return code;
}

static int null_and_empty(void) {
  int counts[64] = {0}, displs[64] = {0}, e = MPI_SUCCESS;
  for (int root = 0; root < world_size && !e; root++) {
    if (!e) e = MPI_Bcast(NULL, 0, MPI_INT, root, comm);
    if (!e) e = MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, root, comm);
    if (!e) e = MPI_Gatherv(NULL, 0, MPI_INT, NULL, counts, displs, MPI_INT, root, comm);
    if (!e) e = MPI_Scatter(NULL, 0, MPI_INT, NULL, 0, MPI_INT, root, comm);
    if (!e) e = MPI_Scatterv(NULL, counts, displs, MPI_INT, NULL, 0, MPI_INT, root, comm);
    if (!e) e = MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm);
    if (!e) e = MPI_Allgatherv(NULL, 0, MPI_INT, NULL, counts, displs, MPI_INT, comm);
    if (!e) e = MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm);
    if (!e) e = MPI_Alltoallv(NULL, counts, displs, MPI_INT, NULL, counts, displs, MPI_INT, comm);
    if (!e) e = MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, root, comm);
    if (!e) e = MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
    if (!e) e = MPI_Reduce_scatter(NULL, NULL, counts, MPI_INT, MPI_SUM, comm);
    if (!e) e = MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
    if (!e) e = MPI_Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
    if (!e) e = MPI_Exscan(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
  }
  return e;
}

// Arguments that only the root may look at are nonsense elsewhere.
static int ignored_elsewhere(void) {
  int counts[64], displs[64], root = 1, at = world_rank == root, e;
  for (int r = 0; r < world_size; r++) counts[r] = 100, displs[r] = 100 * r;
  e = MPI_Gatherv(send_buffer, 100, MPI_BYTE, at ? receive_buffer : NULL, at ? counts : NULL, at ? displs : NULL,
                  at ? MPI_BYTE : MPI_DATATYPE_NULL, root, comm);
  if (!e)
    e = MPI_Scatterv(at ? send_buffer : NULL, at ? counts : NULL, at ? displs : NULL, at ? MPI_BYTE : MPI_DATATYPE_NULL,
                     receive_buffer, 100, MPI_BYTE, root, comm);
  if (!e)
    e = MPI_Gather(send_buffer, 100, MPI_BYTE, at ? receive_buffer : NULL, at ? 100 : -5,
                   at ? MPI_BYTE : MPI_DATATYPE_NULL, root, comm);
  if (!e)
    e = MPI_Scatter(at ? send_buffer : NULL, at ? 100 : -5, at ? MPI_BYTE : MPI_DATATYPE_NULL, receive_buffer, 100,
                    MPI_BYTE, root, comm);
  return e;
}

// Received blocks are declared longer than what comes. The receivers of a Scatterv's and a
// Gatherv's blocks may do so.
static int over_declared(void) {
  int counts[64], displs[64], e;
  for (int r = 0; r < world_size; r++) counts[r] = 100 * (r + 1), displs[r] = 9000 * r;
  e = MPI_Scatterv(send_buffer, counts, displs, MPI_BYTE, receive_buffer, 9000, MPI_BYTE, 0, comm);
  for (int r = 0; r < world_size; r++) counts[r] = 9000;
  if (!e)
    e = MPI_Gatherv(send_buffer, 100 * (world_rank + 1), MPI_BYTE, receive_buffer, counts, displs, MPI_BYTE, 0, comm);
  return e;
}

static int goes_on(void) {
  for (int n = 0; n < 3; n++) {
    int root = n % world_size;
    if (world_rank == root) fill(receive_buffer, 31u + (unsigned)n, kBytes);
    if (MPI_Bcast(receive_buffer, kBytes, MPI_BYTE, root, comm) ||
        mismatch(receive_buffer, 31u + (unsigned)n, kBytes) >= 0)
      return 0;
    long mine = world_rank * 3 + n, all[64];
    if (MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, comm)) return 0;
    for (int r = 0; r < world_size; r++)
      if (all[r] != r * 3 + n) return 0;
    if (MPI_Barrier(comm)) return 0;
  }
  return 1;
}

// One case on a communicator of its own: "what:operation:bytes", with "!" in front if it is the
// first call there.
static void run(const char* text) {
  char what[32] = "", operation[32] = "";
  int bytes = kBytes, fresh = text[0] == '!';
  sscanf(text + fresh, "%31[^:]:%31[^:]:%d", what, operation, &bytes);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (!fresh) MPI_Barrier(comm);
  int e = -1;
  if (!strcmp(what, "truncate"))
    e = truncated(operation, bytes, bytes / 2);
  else if (!strcmp(what, "empty"))
    e = null_and_empty();
  else if (!strcmp(what, "ignored"))
    e = ignored_elsewhere();
  else if (!strcmp(what, "over"))
    e = over_declared();
  else
    e = mistaken(what, operation, bytes);
  const char* path = last_path();
  const char* seen = class_name(e);
  char message[MPI_MAX_ERROR_STRING] = "";
  int length = 0, readable = MPI_Error_string(e, message, &length) == MPI_SUCCESS && length > 0;
  int on = goes_on();
  printf(
      "RESULT {\"case\": \"%s\", \"rank\": %d, \"seen\": \"%s\", \"readable\": %d, \"goes_on\": %d, \"path\": "
      "\"%s\"}\n",
      text, world_rank, seen, readable, on, path);
  fflush(stdout);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  send_buffer = calloc(kMany, 1), receive_buffer = calloc(kMany, 1);
  for (int i = 1; i < argc; i++) run(argv[i]);
  free(send_buffer), free(receive_buffer);
  MPI_Finalize();
  return 0;
}
