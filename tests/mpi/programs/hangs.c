// SPDX-License-Identifier: BSD-3-Clause
// Three ranks that hang: hangs KIND. A comment names the line at which a rank waits for what never
// comes, or stays. The test ends the program, or it ends itself after a minute.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD

static int rank, size;
static double value[4];

static void sum(void) { MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_SUM, WORLD); }

// Rank 1 never sends.
static void recv(void) {
  if (rank == 0) MPI_Recv(value, 1, MPI_DOUBLE, 1, 99, WORLD, MPI_STATUS_IGNORE);  // hangs: recv
  sum();
}

__attribute__((noinline)) static void spin(void) {
  volatile long turns = 0;
  for (;;) turns++;  // hangs: loop
}

static void loop(void) {
  if (rank == 1) spin();  // called: loop
  MPI_Bcast(value, 1, MPI_DOUBLE, 1, WORLD);
}

static void sleeps(void) {
  if (rank == 2) {
    char byte;
    int ends[2];
    if (pipe(ends) == 0 && read(ends[0], &byte, 1) == 1) value[0] = byte;  // hangs: sleeps
  }
  sum();
}

static void tag(void) {
  if (rank == 0) MPI_Ssend(value, 1, MPI_DOUBLE, 1, 5, WORLD);                    // hangs: tag
  if (rank == 1) MPI_Recv(value, 1, MPI_DOUBLE, 0, 6, WORLD, MPI_STATUS_IGNORE);  // expects: tag
}

static void ring(void) {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Recv(value, 1, MPI_DOUBLE, right, 3, WORLD, MPI_STATUS_IGNORE);  // hangs: ring
  MPI_Send(value, 1, MPI_DOUBLE, left, 3, WORLD);
}

static void sends(void) {
  const int count = 1 << 20;
  double* const many = calloc((size_t)count, sizeof *many);
  MPI_Send(many, count, MPI_DOUBLE, (rank + 1) % size, 3, WORLD);  // hangs: sends
  MPI_Recv(many, count, MPI_DOUBLE, (rank + size - 1) % size, 3, WORLD, MPI_STATUS_IGNORE);
}

// The message with tag 1 is missing.
static void waitall(void) {
  MPI_Request requests[3];
  if (rank == 0) {
    for (int i = 0; i < 3; i++) MPI_Irecv(&value[i], 1, MPI_DOUBLE, 1, i, WORLD, &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);  // hangs: waitall
  }
  if (rank == 1) {
    for (int i = 0; i < 3; i += 2) MPI_Send(&value[i], 1, MPI_DOUBLE, 0, i, WORLD);
  }
  sum();
}

static void probe(void) {
  if (rank == 0) MPI_Probe(MPI_ANY_SOURCE, 7, WORLD, MPI_STATUS_IGNORE);  // hangs: probe
  sum();
}

static void polls(void) {
  int there = rank != 0;
  while (!there) {
    MPI_Iprobe(1, 7, WORLD, &there, MPI_STATUS_IGNORE);  // hangs: polls
  }
  sum();
}

static void waits(void) {
  MPI_Request request;
  if (rank == 0) {
    MPI_Irecv(value, 1, MPI_DOUBLE, 1, 4, WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);  // hangs: waits
  }
  MPI_Barrier(WORLD);
  if (rank == 1) MPI_Send(value, 1, MPI_DOUBLE, 0, 4, WORLD);
}

static void fence(void) {
  MPI_Win window;
  MPI_Win_create(value, sizeof value, 1, MPI_INFO_NULL, WORLD, &window);
  MPI_Win_fence(0, window);
  if (rank == 2) MPI_Recv(value, 1, MPI_DOUBLE, 0, 8, WORLD, MPI_STATUS_IGNORE);  // missing: fence
  MPI_Win_fence(0, window);                                                       // hangs: fence
}

// Rank 1 keeps its lock.
static void lock(void) {
  MPI_Win window;
  int here = 1;
  MPI_Win_create(value, sizeof value, 1, MPI_INFO_NULL, WORLD, &window);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);  // holds: lock
    MPI_Put(&value[1], 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, window);
    MPI_Win_flush(0, window);
    MPI_Send(&here, 1, MPI_INT, 2, 0, WORLD);
  }
  if (rank == 2) {
    MPI_Recv(&here, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&value[2], 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(WORLD);
}

// Rank 2 leaves the loop one turn early, and waits elsewhere.
static void early(void) {
  const int turns = rank == 2 ? 4 : 5, left = (rank + size - 1) % size, right = (rank + 1) % size;
  for (int i = 0; i < turns; i++) {
    MPI_Sendrecv(&value[0], 1, MPI_DOUBLE, right, i, &value[1], 1, MPI_DOUBLE, left, i, WORLD,  // hangs: early
                 MPI_STATUS_IGNORE);
  }
  MPI_Barrier(WORLD);  // left: early
}

static void file(void) {
  MPI_File out;
  char name[64];
  snprintf(name, sizeof name, "hangs.out");
  MPI_File_open(WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &out);
  if (rank == 1) MPI_Recv(value, 1, MPI_DOUBLE, 2, 8, WORLD, MPI_STATUS_IGNORE);  // missing: file
  MPI_File_write_ordered(out, value, 1, MPI_DOUBLE, MPI_STATUS_IGNORE);
  MPI_File_set_size(out, 64);  // hangs: file
}

static void comm(void) {
  MPI_Comm other;
  MPI_Comm_dup(WORLD, &other);
  if (rank == 0) MPI_Ssend(value, 1, MPI_DOUBLE, 1, 5, other);                    // hangs: comm
  if (rank == 1) MPI_Recv(value, 1, MPI_DOUBLE, 0, 5, WORLD, MPI_STATUS_IGNORE);  // expects: comm
}

static void split(void) {
  MPI_Comm half;
  if (rank == 1) MPI_Recv(value, 1, MPI_DOUBLE, 0, 8, WORLD, MPI_STATUS_IGNORE);  // missing: split
  MPI_Comm_split(WORLD, rank % 2, 0, &half);                                      // hangs: split
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*hang)(void);
  } kinds[] = {{"recv", recv},   {"loop", loop},   {"sleeps", sleeps},   {"tag", tag},
               {"ring", ring},   {"sends", sends}, {"waitall", waitall}, {"probe", probe},
               {"waits", waits}, {"fence", fence}, {"lock", lock},       {"early", early},
               {"file", file},   {"comm", comm},   {"split", split},     {"polls", polls}};
  alarm(60);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &size);
  if (argc < 3 || strcmp(argv[2], "silent") != 0) MPI_Barrier(WORLD);
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i].name, argv[1]) == 0) kinds[i].hang();
  }
  MPI_Barrier(WORLD);
  MPI_Finalize();
  return 0;
}
