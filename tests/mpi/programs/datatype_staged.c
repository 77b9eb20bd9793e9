// SPDX-License-Identifier: BSD-3-Clause
// Collectives on memory that a driver says is a device's: datatype_staged LIBRARY. The program
// loads LIBRARY (datatype_device.c) after the first collectives, as CUDA programs do. The memory is
// ordinary but protected during each call. The program traces every fault to the object that
// touched the memory. That must be the host's MPI_Pack or MPI_Unpack and never the preload library.
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "robust.h"

enum { PAGE = 4096, AREA = 64 * PAGE };

static char* device;
static volatile long faults, ours;

static int is_in(const void* address, const char* name) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, name);
}

// The first caller outside libc: memcpy's frames say nothing.
static const void* culprit(const void* place) {
  void* frames[40];
  int count = backtrace(frames, 40), i = 0;
  while (i < count && frames[i] != place) i++;
  while (i < count && is_in(frames[i], "libc.so")) i++;
  return i < count ? frames[i] : place;
}

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)signal_number;
  char* at = info->si_addr;
  if (at < device || at >= device + AREA) _exit(99);
  faults++;
  if (is_in(culprit((void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP]), "libstretto")) ours++;
  mprotect((void*)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
}

static void protect(void) { CHECK(!mprotect(device, AREA, PROT_NONE), "mprotect"); }
static void unprotect(void) { CHECK(!mprotect(device, AREA, PROT_READ | PROT_WRITE), "mprotect"); }

#define ON_DEVICE(call)                                  \
  do {                                                   \
    protect();                                           \
    CHECK((call) == MPI_SUCCESS, "a collective failed"); \
    unprotect();                                         \
  } while (0)

static void check(const void* at, uint64_t seed, size_t bytes, const char* what) {
  long bad = mismatch(at, seed, bytes);
  CHECK(bad < 0, "%s: byte %ld is wrong", what, bad);
}

static void contiguous(size_t bytes, const char** path) {
  char* block = device + PAGE;
  char* plain = malloc(bytes * (size_t)world_size);
  int root = world_size - 1, n = (int)bytes;
  memset(device, 0, AREA);
  if (world_rank == root) fill(block, 1, bytes);
  ON_DEVICE(MPI_Bcast(block, n, MPI_BYTE, root, MPI_COMM_WORLD));
  *path = last_path();
  check(block, 1, bytes, "bcast");

  fill(block, 10 + (uint64_t)world_rank, bytes);
  ON_DEVICE(MPI_Gather(block, n, MPI_BYTE, plain, n, MPI_BYTE, root, MPI_COMM_WORLD));
  for (int r = 0; world_rank == root && r < world_size; r++)
    check(plain + (size_t)r * bytes, 10 + (uint64_t)r, bytes, "gather from device");
  for (int r = 0; r < world_size; r++) fill(plain + (size_t)r * bytes, 20 + (uint64_t)r, bytes);
  ON_DEVICE(MPI_Scatter(plain, n, MPI_BYTE, block, n, MPI_BYTE, root, MPI_COMM_WORLD));
  check(block, 20 + (uint64_t)world_rank, bytes, "scatter to device");

  fill(block + (size_t)world_rank * bytes, 30 + (uint64_t)world_rank, bytes);
  ON_DEVICE(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, block, n, MPI_BYTE, MPI_COMM_WORLD));
  for (int r = 0; r < world_size; r++) check(block + (size_t)r * bytes, 30 + (uint64_t)r, bytes, "allgather in place");
  free(plain);
}

// Vectors of two ints out of three to a device, with gaps between blocks and an over-declared
// count.
static void irregular(void) {
  int counts[64], displs[64], at = 1;
  MPI_Datatype vector;
  MPI_Type_vector(5, 2, 3, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  int* ints = (int*)(device + PAGE);
  int mine[30];
  for (int i = 0; i < 30; i++) mine[i] = 1000 * world_rank + i;
  for (int r = 0; r < world_size; r++) {
    counts[r] = 3;
    displs[r] = at;
    at += 4;
  }
  memset(device, 0x55, AREA);
  ON_DEVICE(MPI_Allgatherv(mine, 10 * 3, MPI_INT, ints, counts, displs, vector, MPI_COMM_WORLD));
  for (int r = 0; r < world_size; r++) {
    for (int i = 0; i < 3 * 14; i++) {
      int element = i / 14, within = i % 14;
      int expected = within % 3 == 2 ? 0x55555555 : 1000 * r + element * 10 + within / 3 * 2 + within % 3;
      int seen = ints[displs[r] * 14 + i];
      CHECK(seen == expected, "allgatherv: rank %d int %d is %d, not %d", r, i, seen, expected);
    }
  }
  MPI_Type_free(&vector);
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  CHECK(argc == 2, "usage: datatype_staged LIBRARY");
  int warm = world_rank;
  MPI_Bcast(&warm, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  void* driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(driver, "%s", dlerror());
  void (*claim)(const void*, size_t) = NULL;
  *(void**)&claim = dlsym(driver, "claim_device_memory");
  device = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  claim(device, AREA);
  void* warm_up[2];
  backtrace(warm_up, 2);  // loads what it needs now, not in the handler
  struct sigaction action = {0};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);

  const char* path = "none";
  contiguous(1, &path);
  contiguous(40, &path);
  contiguous(3 * PAGE + 5, &path);
  irregular();
  printf("RESULT {\"rank\": %d, \"path\": \"%s\", \"faults\": %ld, \"ours\": %ld}\n", world_rank, path, faults, ours);
  MPI_Finalize();
  return 0;
}
