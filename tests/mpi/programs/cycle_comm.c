// SPDX-License-Identifier: BSD-3-Clause
// Communicators that come and go: create, use, free, `cycles` times.
//   cycle_comm dup|split|mixed|unused|kept  cycles
//     dup, split   one kind of creation; split makes halves of changing size
//     mixed        both, with eight alive at a time, freed in another order than made
//     unused       created and freed without a single collective
//     kept         up to 100 communicators at once, all used in turn
// The root of the last Bcast frees at once, while the others are still inside it. Prints RESULT
// with what the process holds (resident KiB, descriptors, mappings), after the first tenth and at
// the end: the maximum over ranks.
#include <dirent.h>

#include "robust.h"

enum { kAlive = 8, kKept = 100 };

typedef struct {
  long resident_kib, descriptors, mappings;
} Holding;

static long lines(const char* path) {
  FILE* f = fopen(path, "r");
  long n = 0;
  for (int c; f && (c = fgetc(f)) != EOF;) n += c == '\n';
  if (f) fclose(f);
  return n;
}

static long entries(const char* path) {
  DIR* d = opendir(path);
  long n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

static Holding holding(void) {
  long pages = 0, resident = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%ld %ld", &pages, &resident) == 2, "statm");
  fclose(f);
  Holding mine = {resident * (sysconf(_SC_PAGESIZE) / 1024), entries("/proc/self/fd"), lines("/proc/self/maps")}, most;
  MPI_Allreduce(&mine, &most, 3, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static MPI_Comm create(const char* how, int n) {
  MPI_Comm made;
  if (!strcmp(how, "split") || (!strcmp(how, "mixed") && n % 2)) {
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < 1 + n % world_size, -world_rank, &made);
    return made;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return made;
}

static void use(MPI_Comm comm, int n) {
  int size, rank;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  int root = n % size;
  uint64_t all[64], word = (uint64_t)n * 100 + (uint64_t)rank;
  CHECK(size <= 64, "at most 64 ranks");
  MPI_Barrier(comm);
  MPI_Allgather(&word, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, comm);
  for (int r = 0; r < size; r++) CHECK(all[r] == (uint64_t)n * 100 + (uint64_t)r, "cycle %d: block %d", n, r);
  char big[5000];
  int bytes = n % 7 == 0 ? (int)sizeof big : 16;
  if (rank == root) fill(big, (uint64_t)n, (size_t)bytes);
  MPI_Bcast(big, bytes, MPI_BYTE, root, comm);
  CHECK(mismatch(big, (uint64_t)n, (size_t)bytes) < 0, "cycle %d: bcast", n);
}

static void run(const char* how, int from, int to) {
  MPI_Comm alive[kKept];
  int held = 0, most = !strcmp(how, "mixed") ? kAlive : !strcmp(how, "kept") ? kKept : 1;
  for (int n = from; n < to; n++) {
    alive[held] = create(how, n);
    if (strcmp(how, "unused")) use(alive[held], n);
    if (++held < most) continue;
    for (int i = 0; !strcmp(how, "kept") && i < held; i++) use(alive[(i * 7) % held], n + i);
    // Odd ones first, then the even ones.
    for (int i = 1; i < held; i += 2) MPI_Comm_free(&alive[i]);
    for (int i = 0; i < held; i += 2) MPI_Comm_free(&alive[i]);
    held = 0;
  }
  while (held) MPI_Comm_free(&alive[--held]);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  const char* how = argc > 1 ? argv[1] : "dup";
  int cycles = argc > 2 ? atoi(argv[2]) : 1000;
  use(MPI_COMM_WORLD, 0);
  run(how, 0, cycles / 10);
  Holding before = holding();
  double began = now_s();
  run(how, cycles / 10, cycles);
  double took = now_s() - began;
  Holding after = holding();
  use(MPI_COMM_WORLD, 1);
  if (world_rank == 0)
    printf(
        "RESULT {\"seconds\": %.4f, \"resident_kib\": [%ld, %ld], \"descriptors\": [%ld, %ld], \"mappings\": [%ld, "
        "%ld], "
        "\"path\": \"%s\"}\n",
        took, before.resident_kib, after.resident_kib, before.descriptors, after.descriptors, before.mappings,
        after.mappings, last_path());
  MPI_Finalize();
  return 0;
}
