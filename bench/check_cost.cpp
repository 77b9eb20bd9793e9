// SPDX-License-Identifier: BSD-3-Clause
// What STRETTO_CHECK costs. It times Bcasts back to back between two ranks, on three communicators
// that differ in the level of checks. The root changes with every call, so that each is one way.
// Short rounds of the levels take turns. The figures are medians over the rounds. The difference to
// level 0 is that of the medians.
//   cmake --build build/release --target check-cost && build/release/check-cost
// Ranks are threads of one process, on a processor each. So this is the engine alone, without the
// MPI's part, which no level changes.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "threads/job.hpp"

namespace {

using namespace stretto;
using namespace stretto::test;

constexpr int kRanks = 2;
constexpr int kLevels = 3;
// Of communicators: where their lines lie in the last-level cache makes a difference of 20 ns, by
// luck.
constexpr int kSets = 16;
constexpr int kRounds = 31;
constexpr double kRoundNs = 300'000;

constexpr Run kEight{0, 8};
const Layout kDoubles = [] {
  Layout layout{8, 8, &kEight, 1, true};
  layout.signature.append(element_code(ElementKind::real, 8), 1);
  return layout;
}();

double now_ns() {
  return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

double per_call_ns(engine::Comm& comm, const Region& region, int calls) {
  (void)engine::barrier(comm);
  const double start = now_ns();
  for (int i = 0; i < calls; ++i) (void)engine::bcast(comm, region, i % kRanks, true);
  return (now_ns() - start) / calls;
}

struct Rounds {
  std::vector<double> ns[kLevels];
};

void measure(engine::Comm* const* comms, int rank, std::size_t bytes, Rounds& rounds) {
  std::vector<double> buffer(bytes / 8);
  const Region region{reinterpret_cast<char*>(buffer.data()), bytes / 8, &kDoubles};
  int calls = 0;
  for (engine::Comm* comm : {comms[0], comms[1], comms[2]}) {
    double one_ns = per_call_ns(*comm, region, 2000 / (1 + static_cast<int>(bytes >> 12)) * 2 + 2);
    // As many on both.
    (void)engine::bcast(*comm, {reinterpret_cast<char*>(&one_ns), 1, &kDoubles}, 0, true);
    calls = std::max(calls, static_cast<int>(kRoundNs / one_ns) / 2 * 2 + 2);
  }
  for (int n = 0; n < kRounds; ++n) {
    for (int i = 0; i < kLevels; ++i) {
      const int level = (n + i) % kLevels;
      const double ns = per_call_ns(*comms[level], region, calls);
      if (rank == 0) rounds.ns[level].push_back(ns);
    }
  }
}

void report(std::size_t bytes, const Rounds& rounds) {
  std::printf("%9zu", bytes);
  for (const auto& ns : rounds.ns) std::printf(" %10.1f", median(ns));
  for (int level = 1; level < kLevels; ++level) {
    const double usual = median(rounds.ns[0]);
    const double extra = median(rounds.ns[level]) - usual;
    std::printf("  %8.1f (%5.2f %%)", extra, 100 * extra / usual);
  }
  std::printf("\n");
}

// One engine for each level, and a communicator on each.
struct Contenders {
  engine::Process* processes[kLevels];
  engine::Comm* comms[kLevels];

  Contenders(std::vector<std::unique_ptr<Group>>& groups, int rank) {
    for (unsigned level = 0; level < kLevels; ++level) {
      engine::Settings settings;
      settings.check = level;
      processes[level] = engine::process_create(settings, {});
      engine::process_set_concurrent(*processes[level], false);
      comms[level] = make_comm(*processes[level], *groups[level], rank);
      if (!comms[level]) std::abort();
    }
  }
  ~Contenders() {
    for (engine::Comm* comm : comms) (void)engine::barrier(*comm), engine::comm_free(comm);
    for (engine::Process* process : processes) engine::process_destroy(process);
  }
  Contenders(const Contenders&) = delete;
  Contenders& operator=(const Contenders&) = delete;
};

constexpr std::size_t kSizes[] = {8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20};

}  // namespace

int main() {
  std::vector<std::unique_ptr<Group>> groups;
  for (int level = 0; level < kLevels; ++level) groups.push_back(std::make_unique<Group>(everybody(kRanks)));
  std::vector<Rounds> rounds(std::size(kSizes));
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      stay_on(rank);
      for (int set = 0; set < kSets; ++set) {
        const Contenders contenders(groups, rank);
        for (std::size_t s = 0; s < std::size(kSizes); ++s) measure(contenders.comms, rank, kSizes[s], rounds[s]);
      }
    });
  }
  ranks.clear();
  std::printf("%9s %10s %10s %10s  %19s %19s\n", "bytes", "level 0, ns", "1", "2", "1 more than 0", "2 more than 0");
  for (std::size_t s = 0; s < std::size(kSizes); ++s) report(kSizes[s], rounds[s]);
}
