// SPDX-License-Identifier: BSD-3-Clause
// What the first collective costs in address space, and what of shared memory a core dump would
// have.
//   memory_use [MiB that RLIMIT_AS leaves after MPI_Init; 0: no limit]
// Prints a RESULT per rank: growth of the address space (VmSize), bytes of our mappings, those of
// them that are dumped, and the path.
#include <sys/resource.h>

#include "robust.h"

static long mapped_kib(void) {
  char line[256];
  long kib = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "VmSize: %ld", &kib);
  if (file) fclose(file);
  return kib;
}

// Sizes of the memory files' mappings in all, and of those that dumps have.
static void segments_kib(long* all, long* dumped) {
  char line[512];
  long size = 0;
  int ours = 0;
  FILE* file = fopen("/proc/self/smaps", "r");
  *all = *dumped = 0;
  while (file && fgets(line, sizeof line, file)) {
    unsigned long begin, end;
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
      ours = strstr(line, "/memfd:stretto") != NULL && strstr(line, "/memfd:stretto-stats") == NULL;
      size = (long)((end - begin) / 1024);
    } else if (ours && !strncmp(line, "VmFlags:", 8)) {
      *all += size;
      if (!strstr(line, " dd")) *dumped += size;
    }
  }
  if (file) fclose(file);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  long left = argc > 1 ? atol(argv[1]) : 0, all, dumped;
  enum { kBytes = 100000 };
  char* buffer = malloc(kBytes);
  int (*host_barrier)(MPI_Comm);
  *(void**)&host_barrier = host_function("PMPI_Barrier");
  for (int i = 0; i < 10; i++) host_barrier(MPI_COMM_WORLD);
  long before = mapped_kib();
  if (left != 0) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = ((rlim_t)before << 10) + ((rlim_t)left << 20);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "cannot limit the address space");
  }
  const char* path = "none";
  for (int i = 0; i < 5; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    memset(buffer, world_rank == 0 ? i + 1 : 0, kBytes);
    MPI_Bcast(buffer, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    path = last_path();
    for (int k = 0; k < kBytes; k++) CHECK(buffer[k] == i + 1, "wrong data");
  }
  long after = mapped_kib();
  segments_kib(&all, &dumped);
  printf("RESULT {\"rank\": %d, \"growth_kib\": %ld, \"segments_kib\": %ld, \"dumped_kib\": %ld, \"path\": \"%s\"}\n",
         world_rank, after - before, all, dumped, path);
  MPI_Finalize();
  return 0;
}
