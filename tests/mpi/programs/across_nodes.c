// SPDX-License-Identifier: BSD-3-Clause
// Collectives between nodes, call after call.
//   across_nodes scatter BYTES   60 Scatters of so many bytes a rank; from the 51st on the root
//                                passes MPI_IN_PLACE
//   across_nodes mixed SEED      200 calls of many kinds; root, length and MPI_IN_PLACE vary
//   across_nodes kill RANK       Allreduces; the rank is killed before its 200th. A rank that
//                                gets an error prints the error's name
#include <signal.h>

#include "robust.h"

#define EXPECT(condition, call)                                            \
  if (!(condition)) {                                                      \
    fprintf(stderr, "rank %d, call %d: wrong data\n", world_rank, (call)); \
    MPI_Abort(MPI_COMM_WORLD, 2);                                          \
  }

static char *all, *mine;

static void scatter(int call, int root, int bytes, int in_place) {
  for (int i = 0; world_rank == root && i < bytes * world_size; ++i) all[i] = (char)(call + i / bytes);
  memset(mine, 'x', (size_t)bytes);
  MPI_Scatter(all, bytes, MPI_CHAR, in_place && world_rank == root ? MPI_IN_PLACE : mine, bytes, MPI_CHAR, root,
              MPI_COMM_WORLD);
  for (int i = 0; i < bytes && !(in_place && world_rank == root); ++i)
    EXPECT(mine[i] == (char)(call + world_rank), call);
}

static void gatherv(int call, int root, int bytes, int in_place) {
  int counts[64], places[64], at = 0;
  for (int r = 0; r < world_size; ++r) {
    counts[r] = (r + call) % 3 * bytes / 2;
    places[r] = at;
    at += counts[r];
  }
  char* const own = in_place && world_rank == root ? all + places[world_rank] : mine;
  memset(own, call + world_rank, (size_t)counts[world_rank]);
  MPI_Gatherv(in_place && world_rank == root ? MPI_IN_PLACE : mine, counts[world_rank], MPI_CHAR, all, counts, places,
              MPI_CHAR, root, MPI_COMM_WORLD);
  for (int r = 0; r < world_size && world_rank == root; ++r) {
    for (int i = 0; i < counts[r]; ++i) EXPECT(all[places[r] + i] == (char)(call + r), call);
  }
}

static void allreduce(int call, int bytes, int in_place) {
  const int count = bytes / (int)sizeof(int);
  int *from = (int*)mine, *to = (int*)all;
  for (int i = 0; i < count; ++i) from[i] = to[i] = call + i + world_rank;
  MPI_Allreduce(in_place ? MPI_IN_PLACE : from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) EXPECT(to[i] == world_size * (call + i) + world_size * (world_size - 1) / 2, call);
}

static int killed(int victim) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int call = 0; call < 5000; ++call) {
    int in = call, out = 0;
    if (world_rank == victim && call == 200) kill(getpid(), SIGKILL);
    const int code = MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS) continue;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "HEARD rank %d: %s\n", world_rank, text);
    fflush(stderr);
    sleep_ms(500);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return 9;
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const int number = atoi(argv[2]);
  MPI_Barrier(MPI_COMM_WORLD);  // then members have agreed on what serves them
  if (!strcmp(argv[1], "kill")) return killed(number);
  const int most = 20000;
  all = malloc((size_t)most * (size_t)world_size);
  mine = malloc((size_t)most);
  unsigned state = (unsigned)number;
  for (int call = 0; call < 60 && !strcmp(argv[1], "scatter"); ++call) scatter(call, 0, number, call >= 50);
  for (int call = 0; call < 200 && !strcmp(argv[1], "mixed"); ++call) {
    static const int kBytes[] = {8, 5000, 5000, 12000};
    state = state * 1103515245 + 12345;
    const int kind = state >> 8 & 3, root = (int)(state >> 12) % world_size & 1, in_place = state >> 16 & 1,
              bytes = kBytes[state >> 20 & 3];
    if (kind == 0)
      allreduce(call, bytes, in_place);
    else if (kind == 1)
      gatherv(call, root, bytes, in_place);
    else
      scatter(call, root, bytes, in_place);
  }
  if (world_rank == 0) printf("RESULT {\"right\": 1}\n");
  MPI_Finalize();
  return 0;
}
