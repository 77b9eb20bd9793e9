// SPDX-License-Identifier: BSD-3-Clause
// Calls of each kind, which the program counts itself. Rank r prints `COUNT r NAME n` for each.
//   recorded_calls [die|threads]     die: rank 1 ends by SIGKILL in the midst
//                                    threads: four threads of each rank call at once
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  const char* name;
  int count;
} g_counts[128];

static void counted(const char* name) {
  int i = 0;
  while (g_counts[i].name && strcmp(g_counts[i].name, name) != 0) i++;
  g_counts[i].name = name;
  g_counts[i].count++;
}
#define CALL(name, ...) (counted(#name), MPI_##name(__VA_ARGS__))

static int g_rank, g_size, g_right, g_left;
static double g_a[64], g_b[64], g_c[64 * 64];

static void messages(void) {
  MPI_Status status;
  MPI_Request some[3];
  if (g_rank % 2 == 0 && g_rank + 1 < g_size) {
    CALL(Send, g_a, 4, MPI_DOUBLE, g_rank + 1, 1, MPI_COMM_WORLD);
    CALL(Ssend, g_a, 1, MPI_DOUBLE, g_rank + 1, 2, MPI_COMM_WORLD);
    CALL(Isend, g_a, 0, MPI_DOUBLE, g_rank + 1, 3, MPI_COMM_WORLD, &some[0]);
    CALL(Wait, &some[0], MPI_STATUS_IGNORE);
    CALL(Send, g_a, 2, MPI_DOUBLE, g_rank + 1, 4, MPI_COMM_WORLD);
  } else if (g_rank % 2 == 1) {
    MPI_Message message;
    CALL(Recv, g_b, 8, MPI_DOUBLE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(Probe, g_rank - 1, 2, MPI_COMM_WORLD, &status);
    CALL(Recv, g_b, 8, MPI_DOUBLE, g_rank - 1, 2, MPI_COMM_WORLD, &status);
    CALL(Irecv, g_b, 8, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &some[0]);
    CALL(Waitall, 1, some, MPI_STATUSES_IGNORE);
    CALL(Mprobe, g_rank - 1, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    CALL(Mrecv, g_b, 8, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
  }
  CALL(Sendrecv, g_a, 3, MPI_DOUBLE, g_right, 5, g_b, 3, MPI_DOUBLE, g_left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CALL(Sendrecv_replace, g_b, 2, MPI_DOUBLE, g_right, 6, g_left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CALL(Send, g_a, 1, MPI_DOUBLE, MPI_PROC_NULL, 6, MPI_COMM_WORLD);
}

static void requests(void) {
  MPI_Request some[3];
  int index, flag = 0, count = 0, left = 3, indices[3];
  CALL(Irecv, g_b, 4, MPI_DOUBLE, g_left, 7, MPI_COMM_WORLD, &some[0]);
  CALL(Irecv, g_b + 8, 4, MPI_DOUBLE, g_left, 8, MPI_COMM_WORLD, &some[1]);
  CALL(Isend, g_a, 4, MPI_DOUBLE, g_right, 7, MPI_COMM_WORLD, &some[2]);
  CALL(Waitany, 3, some, &index, MPI_STATUS_IGNORE);
  CALL(Send, g_a, 4, MPI_DOUBLE, g_right, 8, MPI_COMM_WORLD);
  while (left > 1) {
    CALL(Waitsome, 3, some, &count, indices, MPI_STATUSES_IGNORE);
    left -= count;
  }
  CALL(Ibarrier, MPI_COMM_WORLD, &some[0]);
  while (!flag) CALL(Test, &some[0], &flag, MPI_STATUS_IGNORE);
  CALL(Send_init, g_a, 4, MPI_DOUBLE, g_right, 9, MPI_COMM_WORLD, &some[0]);
  CALL(Recv_init, g_b, 4, MPI_DOUBLE, g_left, 9, MPI_COMM_WORLD, &some[1]);
  for (int i = 0; i < 5; i++) {
    CALL(Startall, 2, some);
    CALL(Waitall, 2, some, MPI_STATUSES_IGNORE);
  }
  CALL(Request_free, &some[0]);
  CALL(Request_free, &some[1]);
}

static void collectives(MPI_Comm comm) {
  int rank, size, counts[64], starts[64];
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < size; i++) counts[i] = 1, starts[i] = i;
  CALL(Barrier, comm);
  CALL(Bcast, g_a, 5, MPI_DOUBLE, size - 1, comm);
  CALL(Gather, g_a, 2, MPI_DOUBLE, g_c, 2, MPI_DOUBLE, 0, comm);
  CALL(Gatherv, g_a, 1, MPI_DOUBLE, g_c, counts, starts, MPI_DOUBLE, 0, comm);
  CALL(Scatter, g_c, 2, MPI_DOUBLE, g_a, 2, MPI_DOUBLE, 0, comm);
  CALL(Scatterv, g_c, counts, starts, MPI_DOUBLE, g_a, 1, MPI_DOUBLE, 0, comm);
  CALL(Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, g_c, 1, MPI_DOUBLE, comm);
  CALL(Allgatherv, g_a, 1, MPI_DOUBLE, g_c, counts, starts, MPI_DOUBLE, comm);
  CALL(Alltoall, g_c, 1, MPI_DOUBLE, g_c + 2048, 1, MPI_DOUBLE, comm);
  CALL(Alltoallv, g_c, counts, starts, MPI_DOUBLE, g_c + 2048, counts, starts, MPI_DOUBLE, comm);
  CALL(Reduce, g_a, g_b, 3, MPI_DOUBLE, MPI_SUM, 0, comm);
  CALL(Allreduce, g_a, g_b, 3, MPI_DOUBLE, MPI_SUM, comm);
  CALL(Reduce_scatter, g_c, g_b, counts, MPI_DOUBLE, MPI_SUM, comm);
  CALL(Reduce_scatter_block, g_c, g_b, 1, MPI_DOUBLE, MPI_SUM, comm);
  CALL(Scan, g_a, g_b, 3, MPI_DOUBLE, MPI_SUM, comm);
  CALL(Exscan, g_a, g_b, 3, MPI_DOUBLE, MPI_SUM, comm);
  CALL(Iallreduce, g_a, g_b, 3, MPI_DOUBLE, MPI_SUM, comm, &request);
  CALL(Wait, &request, MPI_STATUS_IGNORE);
}

static void communicators(void) {
  MPI_Comm made, grid;
  const int all = g_size, wraps = 1;
  for (int i = 0; i < 6; i++) {
    CALL(Comm_split, MPI_COMM_WORLD, g_rank % 2, -g_rank, &made);
    CALL(Allreduce, g_a, g_b, 3, MPI_DOUBLE, MPI_SUM, made);
    CALL(Comm_free, &made);
  }
  // Nobody but its members makes it.
  MPI_Group world, two;
  const int pair[2] = {0, 1};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 2, pair, &two);
  if (g_rank < 2) {
    CALL(Comm_create_group, MPI_COMM_WORLD, two, 5, &made);
    CALL(Barrier, made);
    CALL(Comm_free, &made);
  }
  MPI_Group_free(&two);
  MPI_Group_free(&world);
  CALL(Comm_split, MPI_COMM_WORLD, g_rank == 0 ? MPI_UNDEFINED : 0, 0, &made);
  if (made != MPI_COMM_NULL) {
    CALL(Barrier, made);
    CALL(Comm_free, &made);
  }
  CALL(Cart_create, MPI_COMM_WORLD, 1, &all, &wraps, 0, &grid);
  CALL(Neighbor_allgather, g_a, 1, MPI_DOUBLE, g_c, 1, MPI_DOUBLE, grid);
  CALL(Neighbor_alltoall, g_c, 1, MPI_DOUBLE, g_c + 2048, 1, MPI_DOUBLE, grid);
  CALL(Comm_free, &grid);
}

static void windows(void) {
  MPI_Win window;
  CALL(Win_create, g_c, sizeof g_c, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  CALL(Win_fence, 0, window);
  CALL(Put, g_a, 2, MPI_DOUBLE, g_right, 0, 2, MPI_DOUBLE, window);
  CALL(Win_fence, 0, window);
  MPI_Group world, left, right;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &g_left, &left);
  MPI_Group_incl(world, 1, &g_right, &right);
  CALL(Win_post, left, 0, window);
  CALL(Win_start, right, 0, window);
  CALL(Put, g_a, 2, MPI_DOUBLE, g_right, 0, 2, MPI_DOUBLE, window);
  CALL(Win_complete, window);
  CALL(Win_wait, window);
  MPI_Group_free(&left);
  MPI_Group_free(&right);
  MPI_Group_free(&world);
  CALL(Win_free, &window);
}

// Each thread sends around on a communicator of its own.
static void* calls_of_thread(void* comm) {
  double out = 1, in = 0;
  for (int i = 0; i < 300; i++) {
    MPI_Sendrecv(&out, 1, MPI_DOUBLE, g_right, i % 7, &in, 1, MPI_DOUBLE, g_left, i % 7, *(MPI_Comm*)comm,
                 MPI_STATUS_IGNORE);
  }
  return NULL;
}

static int threads(int argc, char** argv) {
  int level;
  MPI_Comm comms[4];
  pthread_t all[4];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  g_right = (g_rank + 1) % g_size;
  g_left = (g_rank + g_size - 1) % g_size;
  for (int i = 0; i < 4; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, calls_of_thread, &comms[i]);
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
  for (int i = 0; i < 4; i++) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return level == MPI_THREAD_MULTIPLE ? 0 : 77;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "threads") == 0) return threads(argc, argv);
  const int dies = argc > 1 && strcmp(argv[1], "die") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  g_right = (g_rank + 1) % g_size;
  g_left = (g_rank + g_size - 1) % g_size;
  for (int i = 0; i < 3; i++) {
    messages();
    requests();
    collectives(MPI_COMM_WORLD);
  }
  if (dies) {
    CALL(Barrier, MPI_COMM_WORLD);
    if (g_rank == 1) raise(SIGKILL);
    for (;;) pause();
  }
  communicators();
  windows();
  for (int i = 0; g_counts[i].name; i++) printf("COUNT %d MPI_%s %d\n", g_rank, g_counts[i].name, g_counts[i].count);
  MPI_Finalize();
  return 0;
}
