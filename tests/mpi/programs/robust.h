// SPDX-License-Identifier: BSD-3-Clause
// What the robustness programs share: checks that name the rank, the host's own functions, and
// which path a call took.
#pragma once
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int world_rank = -1, world_size = 0;

#define CHECK(condition, ...)                                                              \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "rank %d: %s:%d: %s: ", world_rank, __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                                        \
      fprintf(stderr, "\n");                                                               \
      MPI_Abort(MPI_COMM_WORLD, 77);                                                       \
    }                                                                                      \
  } while (0)

static inline void start(int* argc, char*** argv, int level) {
  int provided = 0;
  MPI_Init_thread(argc, argv, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (provided < level) {
    if (world_rank == 0) printf("SKIP thread level %d not provided\n", level);
    MPI_Finalize();
    exit(0);
  }
}

static inline double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void sleep_ms(double milliseconds) { usleep((useconds_t)(1000 * milliseconds)); }

// The host MPI's own function, whatever is preloaded in front of it.
static int find_mpi(struct dl_phdr_info* info, size_t size, void* found) {
  (void)size;
  const char* base = strrchr(info->dlpi_name, '/');
  base = base ? base + 1 : info->dlpi_name;
  if (strncmp(base, "libmpi.so", 9) && strncmp(base, "libmpich.so", 11) && strncmp(base, "libmpi_abi.so", 13)) return 0;
  *(const char**)found = info->dlpi_name;
  return 1;
}

static inline void* host_function(const char* name) {
  const char* library = NULL;
  dl_iterate_phdr(find_mpi, &library);
  if (!library) return NULL;
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle ? dlsym(handle, name) : NULL;
}

// How this thread's last collective went: "inline", "cico", "deferred", "host", or "none" without
// the library.
static inline const char* last_path(void) {
  const char* (*ask)(void) = NULL;
  *(void**)&ask = dlsym(RTLD_DEFAULT, "stretto_last_path");
  return ask ? ask() : "none";
}

// Whether it returned before its data were there.
static inline int is_early(void) { return !strcmp(last_path(), "deferred"); }

static inline int path_is_ours(const char* path) { return strcmp(path, "host") && strcmp(path, "none"); }

// Bytes that name their origin, so that a stale or misplaced byte shows.
static inline unsigned char pattern(uint64_t seed, size_t i) {
  uint64_t x = seed * 0x9e3779b97f4a7c15ull + (uint64_t)i * 0xbf58476d1ce4e5b9ull;
  return (unsigned char)((x >> 29) ^ (x >> 53));
}
static inline void fill(void* buffer, uint64_t seed, size_t bytes) {
  unsigned char* b = buffer;
  for (size_t i = 0; i < bytes; i++) b[i] = pattern(seed, i);
}
static inline long mismatch(const void* buffer, uint64_t seed, size_t bytes) {
  const unsigned char* b = buffer;
  for (size_t i = 0; i < bytes; i++)
    if (b[i] != pattern(seed, i)) return (long)i;
  return -1;
}
