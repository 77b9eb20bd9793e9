// SPDX-License-Identifier: BSD-3-Clause
// How long a cache line takes from one processor to another, for `stretto kit measure`.
//
//   stretto-core-to-core < PAIRS
//
// PAIRS are two numbers of processors a line. For each pair, two threads hand a counter to and fro,
// and half a round trip counts. They do it in two ways:
//
//   flag       A thread reads until it sees the other's number, then writes its own. The line comes
//              to be read, and then changes its owner.
//   exchange   A thread tries to exchange the number until it succeeds. The line comes as its own.
//
// Rounds use lines of their own, because lines lie in slices of the last-level cache that are near
// or far. One JSON object a pair goes to stdout, with the medians of the rounds.
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

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Turn 2t+1 of a line begins trip t, turn 2t+2 is its way back. Acquire and release, as a flag that
// tells of data is used.
void pass_flag(Line& line, std::uint64_t await, std::uint64_t next) {
  while (line.turn.load(std::memory_order_acquire) != await) pause();
  line.turn.store(next, std::memory_order_release);
}

void exchange(Line& line, std::uint64_t await, std::uint64_t next) {
  for (std::uint64_t seen = await; !line.turn.compare_exchange_weak(seen, next); seen = await) pause();
}

using Pass = void(Line&, std::uint64_t, std::uint64_t);

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
  Pass* pass;
  std::atomic<int> state{0};  // 1: it is bound and answers; -1: it cannot be bound
};

void* answer(void* given) {
  auto& self = *static_cast<Answerer*>(given);
  const bool bound = bind_to(self.cpu);
  self.state.store(bound ? 1 : -1);
  for (std::uint64_t trip = 0; bound && trip < kAllTrips; ++trip) {
    self.pass(lines[trip / kTrips], 2 * (trip % kTrips) + 1, 2 * (trip % kTrips) + 2);
  }
  return nullptr;
}

// Nanoseconds of one way, the median of the rounds. Negative: a processor may not be used.
double measure(int asker, int answerer, Pass* pass) {
  for (Line& line : lines) line.turn.store(0);
  if (!bind_to(asker)) return -1;
  Answerer other{answerer, pass};
  pthread_t thread;
  if (pthread_create(&thread, nullptr, answer, &other) != 0) return -1;
  while (other.state.load() == 0) sched_yield();
  std::array<double, kRounds> ns{};
  if (other.state.load() > 0) {
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t begin = now_ns();
      for (std::uint64_t trip = 0; trip < kTrips; ++trip) pass(lines[round], 2 * trip, 2 * trip + 1);
      pass(lines[round], 2 * kTrips, 0);  // the last way back
      ns[static_cast<std::size_t>(round)] = static_cast<double>(now_ns() - begin) / (2 * kTrips);
    }
  }
  pthread_join(thread, nullptr);
  std::sort(ns.begin(), ns.end());
  return other.state.load() > 0 ? ns[kRounds / 2] : -1;
}

}  // namespace

int main() {
  int a, b;
  while (std::scanf("%d %d", &a, &b) == 2) {
    const double flag = measure(a, b, pass_flag), exchanged = measure(a, b, exchange);
    if (flag < 0 || exchanged < 0) {
      std::printf("{\"a\":%d,\"b\":%d,\"flag_ns\":null}\n", a, b);
    } else {
      std::printf("{\"a\":%d,\"b\":%d,\"flag_ns\":%.1f,\"exchange_ns\":%.1f}\n", a, b, flag, exchanged);
    }
    std::fflush(stdout);
  }
  return 0;
}
