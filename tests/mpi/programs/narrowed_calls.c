// SPDX-License-Identifier: BSD-3-Clause
// Functions with large counts that are not collectives, on an MPI that lacks them: the library
// shows them and calls the int functions.
//   RESULT {"right": true}
#include "robust.h"

static void messages(void) {
  MPI_Request request;
  const int next = (world_rank + 1) % world_size, before = (world_rank + world_size - 1) % world_size;
  int mine[3] = {world_rank, 2, 3}, other[3] = {-1, -1, -1};
  CHECK(MPI_Irecv_c(other, 3, MPI_INT, before, 1, MPI_COMM_WORLD, &request) == MPI_SUCCESS, "Irecv_c");
  CHECK(PMPI_Send_c(mine, 3, MPI_INT, next, 1, MPI_COMM_WORLD) == MPI_SUCCESS, "Send_c");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(other[0] == before && other[2] == 3, "Send_c gave %d", other[0]);
  CHECK(MPI_Sendrecv_replace_c(mine, 3, MPI_INT, next, 2, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS,
        "Sendrecv_replace_c");
  CHECK(mine[0] == before, "Sendrecv_replace_c gave %d", mine[0]);
}

static void packed(void) {
  char buffer[64];
  int in[2] = {7, 8}, out[2] = {0, 0};
  MPI_Count at = 0;
  MPI_Pack_c(in, 2, MPI_INT, buffer, sizeof buffer, &at, MPI_COMM_WORLD);
  CHECK(at == 2 * sizeof(int), "Pack_c went to %lld", (long long)at);
  const MPI_Count end = at;
  at = 0;
  MPI_Unpack_c(buffer, end, &at, out, 2, MPI_INT, MPI_COMM_WORLD);
  CHECK(at == end && out[0] == 7 && out[1] == 8, "Unpack_c went to %lld", (long long)at);
  MPI_Reduce_local_c(in, out, 2, MPI_INT, MPI_SUM);
  CHECK(out[0] == 14 && out[1] == 16, "Reduce_local_c gave %d", out[0]);
}

// The MPI itself refuses a count that is no int, by the handler of the right object.
static void too_many(void) {
  int class = 0, byte = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code = MPI_Send_c(&byte, (MPI_Count)1 << 40, MPI_BYTE, world_rank, 3, MPI_COMM_WORLD);
  MPI_Error_class(code, &class);
  CHECK(class == MPI_ERR_COUNT, "Send_c gave error class %d", class);
}

// A request needs its arrays after the call has returned.
static void arrays(void) {
  enum { kMost = 8, kCalls = 100 };
  MPI_Request requests[kCalls];
  static int in[kCalls][kMost];
  int out[kMost];
  for (int i = 0; i < kMost; i++) out[i] = world_rank * 100 + i;
  for (int k = 0; k < kCalls; k++) {
    MPI_Count counts[kMost];
    MPI_Aint displs[kMost];
    for (int i = 0; i < kMost; i++) counts[i] = 1, displs[i] = (i + k) % world_size;
    MPI_Ialltoallv_c(out, counts, displs, MPI_INT, in[k], counts, displs, MPI_INT, MPI_COMM_WORLD, &requests[k]);
    memset(counts, -1, sizeof counts);
  }
  MPI_Waitall(kCalls, requests, MPI_STATUSES_IGNORE);
  for (int k = 0; k < kCalls; k++) {
    for (int i = 0; i < world_size; i++) {
      const int right = i * 100 + (world_rank + k) % world_size;
      CHECK(in[k][(i + k) % world_size] == right, "Ialltoallv_c %d gave %d", k, in[k][(i + k) % world_size]);
    }
  }
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  CHECK(host_function("PMPI_Send_c") == NULL, "this MPI has large counts");
  messages();
  packed();
  too_many();
  arrays();
  if (world_rank == 0) printf("RESULT {\"right\": true}\n");
  MPI_Finalize();
  return 0;
}
