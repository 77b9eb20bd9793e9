// SPDX-License-Identifier: BSD-3-Clause
// Every collective with one buffer for both directions, which MPI forbids. Where the root alone has
// both buffers, the root alone calls. It prints the error classes in the order of the calls:
//   RESULT {"classes": [...]}, a line for each rank
// Then come calls with right arguments, whose results must be right.
#include "robust.h"

enum { kCalls = 15 };

static int classes[kCalls], calls;

static void note(int code) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  classes[calls++] = class;
}

// What each rank refuses alone has begun on no rank.
static void all_alias(int* b, int* counts, int* displs, MPI_Datatype* types) {
  const MPI_Comm world = MPI_COMM_WORLD;
  note(MPI_Allgather(b + world_rank, 1, MPI_INT, b, 1, MPI_INT, world));
  note(MPI_Allgatherv(b + world_rank, 1, MPI_INT, b, counts, displs, MPI_INT, world));
  note(MPI_Alltoall(b, 1, MPI_INT, b, 1, MPI_INT, world));
  note(MPI_Alltoallv(b, counts, displs, MPI_INT, b, counts, displs, MPI_INT, world));
  note(MPI_Alltoallw(b, counts, displs, types, b, counts, displs, types, world));
  note(MPI_Allreduce(b, b, 1, MPI_INT, MPI_SUM, world));
  note(MPI_Reduce_scatter(b, b, counts, MPI_INT, MPI_SUM, world));
  note(MPI_Reduce_scatter_block(b, b, 1, MPI_INT, MPI_SUM, world));
  note(MPI_Scan(b, b, 1, MPI_INT, MPI_SUM, world));
  note(MPI_Exscan(b, b, 1, MPI_INT, MPI_SUM, world));
}

// The others do not make the call.
static void root_aliases(int* b, int* counts, int* displs) {
  const MPI_Comm world = MPI_COMM_WORLD;
  note(MPI_Gather(b, 1, MPI_INT, b, 1, MPI_INT, 0, world));
  note(MPI_Gatherv(b, 1, MPI_INT, b, counts, displs, MPI_INT, 0, world));
  note(MPI_Scatter(b, 1, MPI_INT, b, 1, MPI_INT, 0, world));
  note(MPI_Scatterv(b, counts, displs, MPI_INT, b, 1, MPI_INT, 0, world));
  note(MPI_Reduce(b, b, 1, MPI_INT, MPI_SUM, 0, world));
}

// They begin at one address and have nothing in common, or the call has no data: MPI allows that.
static void not_aliased(int* b) {
  int one = world_rank, all[64] = {0};
  CHECK(MPI_Allreduce(b, b, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "a call without data");
  CHECK(MPI_Allgather(b, 0, MPI_INT, b, 0, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS, "a call without data");
  CHECK(MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS, "Allgather");
  for (int r = 0; r < world_size; r++) CHECK(all[r] == r, "Allgather gave %d", all[r]);
  CHECK(MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "Gather");
  CHECK(MPI_Bcast(&one, 1, MPI_INT, world_size - 1, MPI_COMM_WORLD) == MPI_SUCCESS, "Bcast");
  CHECK(one == world_size - 1, "Bcast gave %d", one);
}

int main(int argc, char** argv) {
  int b[64] = {0}, counts[64], displs[64], me = 0, sum = 0;
  MPI_Datatype types[64];
  start(&argc, &argv, MPI_THREAD_SINGLE);
  for (int i = 0; i < 64; i++) counts[i] = 1, displs[i] = i, types[i] = MPI_INT;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 4; i++) MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  all_alias(b, counts, displs, types);
  if (world_rank == 0 && classes[0] != MPI_SUCCESS) root_aliases(b, counts, displs);
  not_aliased(b);
  char line[16 * kCalls] = "";
  for (int i = 0; i < calls; i++) snprintf(line + strlen(line), 16, "%s%d", i ? ", " : "", classes[i]);
  printf("RESULT {\"classes\": [%s]}\n", line);
  MPI_Finalize();
  return 0;
}
