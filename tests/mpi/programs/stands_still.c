// SPDX-License-Identifier: BSD-3-Clause
// Data that do not come: stands_still HOW SECONDS
// All ranks make an Alltoall that returns early. Then the last rank is stopped for so many seconds,
// while its link has not taken all data. The others do with the data what HOW says:
//   touch      read them
//   write      hand them to a system call
//   send       hand them to a function of MPI
//   compute    leave them alone for so long
//   neighbour  rank 1 reads them, and rank 0 waits for rank 1 in a Barrier of these two
// In the end they all read them, and every byte must be right.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "robust.h"

static const int each = 16 << 20;

static char value(int from, int to, int i) { return (char)(from * 7 + to * 13 + i * 3); }

static long wrong_bytes(const char* in) {
  long wrong = 0;
  for (int from = 0; from < world_size; ++from) {
    for (int i = 0; i < each; ++i) wrong += in[(size_t)from * (size_t)each + (size_t)i] != value(from, world_rank, i);
  }
  return wrong;
}

// A process that stops this one when it is told to, and lets it go on after so long. Then it writes
// a byte to `resumed`. It is a child of a child, because nothing returns early in user mode while
// there are children.
static int start_stopper(double seconds, int* resumed) {
  int ends[2], back[2];
  CHECK(pipe(ends) == 0 && pipe(back) == 0, "pipe");
  const pid_t own = getpid(), child = fork();
  CHECK(child >= 0, "fork");
  if (child == 0) {
    char byte;
    if (fork() != 0) _exit(0);
    close(ends[1]);
    if (read(ends[0], &byte, 1) == 1) {
      kill(own, SIGSTOP);
      sleep_ms(1000 * seconds);
      kill(own, SIGCONT);
      if (write(back[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  waitpid(child, NULL, 0);
  close(ends[0]);
  close(back[1]);
  *resumed = back[0];
  return ends[1];
}

int main(int argc, char** argv) {
  const char* const how = argv[1];
  const double seconds = argc > 2 ? atof(argv[2]) : 3;
  int resumed = -1;
  const int stopper = start_stopper(seconds, &resumed);
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const size_t all = (size_t)each * (size_t)world_size;
  char *const out = malloc(all), *const in = malloc(all);
  memset(in, 1, all);
  for (int to = 0; to < world_size; ++to) {
    for (int i = 0; i < each; ++i) out[(size_t)to * (size_t)each + (size_t)i] = value(world_rank, to, i);
  }
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank / 2, world_rank, &pair);
  for (int i = 0; i < 4; ++i) MPI_Barrier(pair);
  MPI_Alltoall(out, 1000, MPI_BYTE, in, 1000, MPI_BYTE, MPI_COMM_WORLD);
  MPI_Alltoall(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
  CHECK(wrong_bytes(in) == 0, "the first call");
  memset(in, 1, all);
  MPI_Alltoall(out, each, MPI_BYTE, in, each, MPI_BYTE, MPI_COMM_WORLD);
  if (world_rank == world_size - 1) CHECK(write(stopper, "x", 1) == 1, "write");
  const int early = is_early();
  const double began = now_s();
  if (world_rank == world_size - 1) {
    char byte; /* it touches no data before it has been stopped */
    CHECK(read(resumed, &byte, 1) == 1, "read");
  } else if (strcmp(how, "write") == 0) {
    const int file = open("/dev/zero", O_WRONLY);
    CHECK(write(file, in, all) == (ssize_t)all, "write");
    close(file);
  } else if (strcmp(how, "send") == 0) {
    MPI_Send(in, (int)each, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  } else if (strcmp(how, "compute") == 0) {
    sleep_ms(1000 * seconds);
  } else if (strcmp(how, "neighbour") == 0 && world_rank == 0) {
    MPI_Barrier(pair);
  }
  const long wrong = wrong_bytes(in);
  if (strcmp(how, "neighbour") == 0 && world_rank == 1) MPI_Barrier(pair);
  printf("RESULT {\"rank\": %d, \"early\": %d, \"wrong\": %ld, \"seconds\": %.3f}\n", world_rank, early, wrong,
         now_s() - began);
  fflush(stdout);
  close(stopper);
  close(resumed);
  wait(NULL);
  MPI_Comm_free(&pair);
  MPI_Finalize();
  free(out);
  free(in);
  return wrong != 0;
}
