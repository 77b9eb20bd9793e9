// SPDX-License-Identifier: BSD-3-Clause
// How long a cache line takes from one processor to another, for `stretto kit measure`.
//
//   stretto-core-to-core < PAIRS
//
// PAIRS are two numbers of processors a line. For each pair, two threads hand a counter to and fro.
// Rounds use lines of their own, because lines lie in slices of the last-level cache that are near
// or far. One JSON object a pair goes to stdout: half a round trip, the median of the rounds and
// the shortest.
#include <pthread.h>
#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int kRounds = 32;
constexpr std::uint64_t kTrips = 100;  // in a round
constexpr std::uint64_t kAllTrips = kRounds * kTrips;

// Two cache lines, because the adjacent-line prefetcher fetches pairs.
struct alignas(128) Line {
  std::atomic<std::uint64_t> turn;
};
Line lines[kRounds];

// Turn 2t+1 of a line begins trip t, turn 2t+2 is its way back.
void pass(Line& line, std::uint64_t await, std::uint64_t next) {
  // Acquire and release: as a flag that tells of data is used.
  while (line.turn.load(std::memory_order_acquire) != await) {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
  line.turn.store(next, std::memory_order_release);
}

bool bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000U + static_cast<std::uint64_t>(t.tv_nsec);
}

struct Answerer {
  int cpu;
  std::atomic<int> state{0};  // 1: it is bound and answers; -1: it cannot be bound
};

void* answer(void* given) {
  auto& self = *static_cast<Answerer*>(given);
  const bool bound = bind_to(self.cpu);
  self.state.store(bound ? 1 : -1);
  for (std::uint64_t trip = 0; bound && trip < kAllTrips; ++trip) {
    pass(lines[trip / kTrips], 2 * (trip % kTrips) + 1, 2 * (trip % kTrips) + 2);
  }
  return nullptr;
}

// The times of the rounds, in nanoseconds for one way. False: a processor may not be used.
bool measure(int asker, int answerer, std::array<double, kRounds>& ns) {
  for (Line& line : lines) line.turn.store(0);
  if (!bind_to(asker)) return false;
  Answerer other{answerer};
  pthread_t thread;
  if (pthread_create(&thread, nullptr, answer, &other) != 0) return false;
  while (other.state.load() == 0) sched_yield();
  if (other.state.load() > 0) {
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t begin = now_ns();
      for (std::uint64_t trip = 0; trip < kTrips; ++trip) pass(lines[round], 2 * trip, 2 * trip + 1);
      pass(lines[round], 2 * kTrips, 0);  // the last way back
      ns[static_cast<std::size_t>(round)] = static_cast<double>(now_ns() - begin) / (2 * kTrips);
    }
  }
  pthread_join(thread, nullptr);
  return other.state.load() > 0;
}

}  // namespace

int main() {
  int a, b;
  while (std::scanf("%d %d", &a, &b) == 2) {
    std::array<double, kRounds> ns{};
    if (measure(a, b, ns)) {
      std::sort(ns.begin(), ns.end());
      std::printf("{\"a\":%d,\"b\":%d,\"ns\":%.1f,\"least_ns\":%.1f}\n", a, b, ns[kRounds / 2], ns[0]);
    } else {
      std::printf("{\"a\":%d,\"b\":%d,\"ns\":null,\"least_ns\":null}\n", a, b);
    }
    std::fflush(stdout);
  }
  return 0;
}
