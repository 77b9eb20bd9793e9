// SPDX-License-Identifier: BSD-3-Clause
// What a loop over a buffer of huge pages loses when Alltoalls into this buffer return early.
//
//   overlap_pages MIB CALLS REPEAT
//
// The buffer has MIB MiB of huge pages. A loop reads one word of each cache line, in order. Its
// time is the least of REPEAT, before any call and after CALLS calls. In half of the runs a rank
// touches the data when all of them are there, in the other half at once, from the beginning to the
// end. Beside these stands the loop over as many small pages. A row has the figures of the rank
// that lost most.
#include <mpi.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

constexpr std::size_t kUnit = 2 << 20;

char* map(std::size_t bytes, int advice) {
  auto* const at =
      static_cast<char*>(mmap(nullptr, bytes + kUnit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  char* const begin = at + (kUnit - reinterpret_cast<std::uintptr_t>(at) % kUnit) % kUnit;
  (void)madvise(begin, bytes, advice);
  std::memset(begin, 1, bytes);
  return begin;
}

double huge_share(const char* at, std::size_t bytes) {
  std::ifstream maps("/proc/self/smaps");
  const auto from = reinterpret_cast<std::uintptr_t>(at);
  std::size_t huge = 0;
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      here = begin < from + bytes && from < end;
    else if (here && std::sscanf(line.c_str(), "AnonHugePages: %lu", &kib) == 1)
      huge += kib << 10;
  }
  return static_cast<double>(huge) / static_cast<double>(bytes);
}

double loop_us(const char* at, std::size_t bytes) {
  static volatile std::uint64_t kept;
  const double begin = now_ns();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes; i += 64) {
    std::uint64_t word;
    std::memcpy(&word, at + i, sizeof word);
    sum += word;
  }
  kept = sum;
  return (now_ns() - begin) * 1e-3;
}

double best_us(const char* at, std::size_t bytes, int repeat) {
  double best = 1e300;
  for (int i = 0; i < repeat; ++i) best = std::min(best, loop_us(at, bytes));
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  int me = 0, size = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const std::size_t bytes = static_cast<std::size_t>(std::atol(argv[1])) << 20;
  const int calls = std::atoi(argv[2]), repeat = std::atoi(argv[3]);
  const std::size_t block = bytes / static_cast<std::size_t>(size);
  char* const small = map(bytes, MADV_NOHUGEPAGE);
  char* const out = map(bytes, MADV_NOHUGEPAGE);
  for (const bool at_once : {false, true}) {
    char* const in = map(bytes, MADV_HUGEPAGE);
    const double share_before = huge_share(in, bytes);
    const double before = best_us(in, bytes, repeat), of_small = best_us(small, bytes, repeat);
    for (int call = 0; call < calls; ++call) {
      std::memset(out, call + 2, bytes);
      MPI_Alltoall(out, static_cast<int>(block), MPI_BYTE, in, static_cast<int>(block), MPI_BYTE, MPI_COMM_WORLD);
      if (at_once) (void)loop_us(in, bytes);
      char all = 0;
      MPI_Reduce(in + bytes - 1, me == 0 ? &all : nullptr, 1, MPI_CHAR, MPI_MAX, 0, MPI_COMM_WORLD);  // waits for it
      for (std::size_t i = 0; i < bytes; i += 4096)
        if (in[i] != static_cast<char>(call + 2)) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    // The slowest rank of all, with its own share of huge pages.
    struct {
      double ratio;
      int rank;
    } mine = {best_us(in, bytes, repeat) / before, me}, worst = {};
    double figures[5] = {before, mine.ratio * before, of_small, share_before, huge_share(in, bytes)};
    MPI_Allreduce(&mine, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(figures, 5, MPI_DOUBLE, worst.rank, MPI_COMM_WORLD);
    if (me == 0) {
      std::printf(
          "{\"event\": \"row\", \"bytes\": %zu, \"calls\": %d, \"touched\": \"%s\", \"before_us\": %.1f, "
          "\"after_us\": %.1f, \"small_us\": %.1f, \"huge_before\": %.3f, \"huge_after\": %.3f}\n",
          bytes, calls, at_once ? "at once" : "later", figures[0], figures[1], figures[2], figures[3], figures[4]);
      std::fflush(stdout);
    }
  }
  if (me == 0) std::printf("{\"event\": \"done\"}\n");
  MPI_Finalize();
  return 0;
}
