// SPDX-License-Identifier: BSD-3-Clause
// Counts the instructions of short collectives on rank 0, whose peers come first. So it never
// waits, and the counts are the same in every run. x86-64 alone.
//
// The process that the launcher starts on rank 0 traces a child, which is the rank. The child stops
// at two breakpoints around a call, and takes single steps between them.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWarm = 50, kCounted = 8 };
static const char* const kNames[] = {"barrier",   "bcast",  "scatter",   "gather",        "gatherv",
                                     "allgather", "reduce", "allreduce", "reduce_scatter"};
enum { kCalls = sizeof kNames / sizeof *kNames };

// The label: other code may have int3's byte before an instruction, too.
__attribute__((noinline)) static void breakpoint(void) {
  __asm__ volatile("int3\n.globl behind_breakpoint\nbehind_breakpoint:" ::: "memory");
}
extern const char behind_breakpoint[];

static void call(int which) {
  static char given[8] = {1}, taken[64];
  static const int counts[2] = {8, 8}, starts[2] = {0, 8}, ones[2] = {1, 1};
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (which) {
    case 0: MPI_Barrier(comm); break;
    case 1: MPI_Bcast(taken, 8, MPI_BYTE, 1, comm); break;
    case 2: MPI_Scatter(taken, 8, MPI_BYTE, taken + 32, 8, MPI_BYTE, 1, comm); break;
    case 3: MPI_Gather(given, 8, MPI_BYTE, taken, 8, MPI_BYTE, 0, comm); break;
    case 4: MPI_Gatherv(given, 8, MPI_BYTE, taken, counts, starts, MPI_BYTE, 0, comm); break;
    case 5: MPI_Allgather(given, 8, MPI_BYTE, taken, 8, MPI_BYTE, comm); break;
    case 6: MPI_Reduce(given, taken, 1, MPI_DOUBLE, MPI_SUM, 0, comm); break;
    case 7: MPI_Allreduce(given, taken, 1, MPI_DOUBLE, MPI_SUM, comm); break;
    default: MPI_Reduce_scatter(taken, taken + 32, ones, MPI_DOUBLE, MPI_SUM, comm); break;
  }
}

static void run(int counts) {
  int rank;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int which = 0; which < kCalls; ++which) {
    for (int i = 0; i < kWarm; ++i) call(which);
    for (int i = 0; i < kCounted; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 0) usleep(3000);
      if (counts) breakpoint();
      call(which);
      if (counts) breakpoint();
    }
  }
  MPI_Finalize();
}

static int at_breakpoint(pid_t child) {
  struct user_regs_struct registers;
  ptrace(PTRACE_GETREGS, child, NULL, &registers);
  return registers.rip == (unsigned long long)behind_breakpoint;
}

// From one breakpoint to the next.
static long steps(pid_t child) {
  int status = 0;
  for (long count = 1;; ++count) {
    if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
      return -1;
    if (at_breakpoint(child)) return count;
  }
}

static int trace(pid_t child) {
  long least[kCalls];
  int status = 0, stops = 0;
  for (waitpid(child, &status, 0); WIFSTOPPED(status); waitpid(child, &status, 0)) {
    const int signal = WSTOPSIG(status), which = stops / kCounted;
    if (signal == SIGTRAP && at_breakpoint(child) && which < kCalls) {
      const long count = steps(child);
      if (count < 0) break;
      if (stops % kCounted == 0 || count < least[which]) least[which] = count;
      ++stops;
    }
    ptrace(PTRACE_CONT, child, NULL, (void*)(long)(signal == SIGTRAP || signal == SIGSTOP ? 0 : signal));
  }
  const int counted = stops == kCalls * kCounted;  // else this process may not trace
  printf("RESULT {");
  for (int which = 0; counted && which < kCalls; ++which)
    printf("%s\"%s\": %ld", which ? ", " : "", kNames[which], least[which]);
  printf("}\n");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void) {
  const char* const rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
  if (rank == NULL || strcmp(rank, "0") != 0) {
    run(0);
    return 0;
  }
  const pid_t child = fork();
  if (child != 0) return trace(child);
  const int counts = ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
  if (counts) raise(SIGSTOP);
  run(counts);
  return 0;
}
