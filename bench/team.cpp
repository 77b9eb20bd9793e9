// SPDX-License-Identifier: BSD-3-Clause
#include "team.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace bench {
namespace {

// Address space, not memory: pages are made when they are touched.
constexpr std::size_t kSegmentBytes = std::size_t{1} << 30;

int remember_host(dl_phdr_info* info, std::size_t, void* found) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash ? slash + 1 : info->dlpi_name;
  for (const char* prefix : {"libmpi.so", "libmpich.so", "libmpi_abi.so"}) {
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0) {
      *static_cast<const char**>(found) = info->dlpi_name;
      return 1;
    }
  }
  return 0;
}

int usable_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                     : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// How many processors the ranks have together: launchers bind each rank to its own set.
int usable_cpus_of_all(const HostLibrary& host) {
  cpu_set_t mine, together;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return usable_cpus();
  const auto allreduce = reinterpret_cast<decltype(&MPI_Allreduce)>(host.function("PMPI_Allreduce"));
  if (allreduce(&mine, &together, static_cast<int>(sizeof mine), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD) != MPI_SUCCESS)
    return usable_cpus();
  return CPU_COUNT(&together);
}

int no_query(void*, MPI_Status*) { return MPI_SUCCESS; }
int no_free(void*) { return MPI_SUCCESS; }
int no_cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "collectives: %s\n", text);
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 3);
  _exit(3);
}

HostLibrary find_host_library() {
  HostLibrary host;
  dl_iterate_phdr(remember_host, &host.path);
  if (!host.path) fail("no libmpi.so, libmpich.so or libmpi_abi.so among the loaded libraries");
  host.handle = dlopen(host.path, RTLD_NOLOAD | RTLD_LAZY);
  if (!host.handle) fail("cannot open %s: %s", host.path, dlerror());
  return host;
}

void* HostLibrary::function(const char* name) const {
  void* found = dlsym(handle, name);
  if (!found) fail("%s has no %s", path, name);
  return found;
}

Team::Team(const HostLibrary& host, const char* file) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  cpus_ = usable_cpus_of_all(host);
  oversubscribed_ = size_ > cpus_;
  // About 20 us of tight polling when every rank has a processor: `pause` alone takes 140 cycles on
  // some machines.
  tight_spins_ = oversubscribed_ ? 20 : 20000;
  // Two and a half flag transfers per rank.
  start_delay_ns_ = 300 + 100 * static_cast<std::uint64_t>(size_);
  host_test_ = reinterpret_cast<decltype(&MPI_Test)>(host.function("PMPI_Test"));
  host_complete_ = reinterpret_cast<decltype(&MPI_Grequest_complete)>(host.function("PMPI_Grequest_complete"));
  const auto start = reinterpret_cast<decltype(&MPI_Grequest_start)>(host.function("PMPI_Grequest_start"));
  start(no_query, no_free, no_cancel, nullptr, &never_);
  map_segment(host, file);
  arrivals_ = static_cast<Flag*>(allocate(sizeof(Flag) * static_cast<std::size_t>(size_)));
  flags_ = static_cast<Flag*>(allocate(sizeof(Flag) * kFlags));
  agreed_ = static_cast<double*>(allocate(sizeof(double)));
  times_ = static_cast<double*>(allocate(sizeof(double) * kMaxCalls * static_cast<std::size_t>(size_)));
}

namespace {

// Rank 0's memory file, which the others open through /proc. It has no name that could be left
// behind.
int open_memory_file(const HostLibrary& host, int rank) {
  const auto bcast = reinterpret_cast<decltype(&MPI_Bcast)>(host.function("PMPI_Bcast"));
  int where[2] = {static_cast<int>(getpid()), -1};
  if (rank == 0) where[1] = memfd_create("stretto-bench", MFD_CLOEXEC);
  bcast(where, 2, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) return where[1];
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", where[0], where[1]);
  return open(path, O_RDWR | O_CLOEXEC);
}

}  // namespace

void Team::map_segment(const HostLibrary& host, const char* file) {
  const int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : open_memory_file(host, rank_);
  if (fd < 0)
    fail("rank %d cannot open the shared file (%s): all ranks must run on one machine", rank_, std::strerror(errno));
  if (ftruncate(fd, static_cast<off_t>(kSegmentBytes)) != 0) fail("ftruncate: %s", std::strerror(errno));
  void* address = mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) fail("mmap: %s", std::strerror(errno));
  segment_ = static_cast<char*>(address);
  const auto allreduce = reinterpret_cast<decltype(&MPI_Allreduce)>(host.function("PMPI_Allreduce"));
  int ready = 1, all_ready = 0;
  // No rank closes before all have opened.
  allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  close(fd);
  if (file && rank_ == 0) unlink(file);
}

void* Team::allocate(std::size_t bytes) {
  void* result = segment_ + used_;
  used_ += (bytes + 4095) / 4096 * 4096;
  if (used_ > kSegmentBytes) fail("the shared segment is too small for %d ranks", size_);
  return result;
}

void Team::finish() {
  barrier();
  host_complete_(never_);
  poke_host();
}

void Team::poke_host() {
  int done = 0;
  host_test_(&never_, &done, MPI_STATUS_IGNORE);
}

void Team::wait_slowly(const Sequence& flag, std::uint64_t value, bool poke) {
  for (unsigned step = 0; flag.load(std::memory_order_acquire) < value; ++step) {
    if (poke && step % 4 == 3) poke_host();
    if (oversubscribed_ || step % 64 == 63) {
      sched_yield();
    } else {
      cpu_relax();
    }
  }
}

// Ranks 0 and 1 hand a number to and fro. A step is one way.
void Team::exchange_flags(int steps) {
  if (rank_ > 1) return;
  for (int i = 0; i < steps; ++i) {
    Sequence& flag = flags_[++flag_number_ % kFlags].value;
    if (rank_ == i % 2) {
      flag.store(flag_number_, std::memory_order_release);
    } else {
      wait_at_least(flag, flag_number_);
    }
  }
}

double Team::flag_ns() {
  return per_step_ns(oversubscribed_ ? 8 : 1000, [this](int steps) { exchange_flags(steps); });
}

double Team::agree(double mine) {
  barrier();  // the last agreement has been read
  if (rank_ == 0) *agreed_ = mine;
  barrier();
  return *agreed_;
}

bool Team::all(bool mine) {
  barrier();
  times(rank_)[0] = mine ? 1 : 0;
  barrier();
  bool result = true;
  for (int peer = 0; peer < size_; ++peer) result = result && times(peer)[0] != 0;
  barrier();
  return result;
}

}  // namespace bench
